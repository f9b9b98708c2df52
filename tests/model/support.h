/* What the model's tests share: reference arrays, opened checkpoints, counted differences. */
#ifndef PL_TESTS_MODEL_SUPPORT_H
#define PL_TESTS_MODEL_SUPPORT_H

#include "base/bf16.h"
#include "base/check.h"
#include "model/drafter.h"

#define TINY "tests/vectors/tiny-a/"
#define NANO "models/nano"

/* A reference array, whole, in fresh memory (free with free). Fails the test when it is missing or not `count` long. */
void *load_array(const char *path, size_t size, size_t count);
int32_t *load_i32(const char *path, size_t count);
float *load_f32(const char *path, size_t count);
pl_bf16 *load_bf16(const char *path, size_t count);

/* The ids of tiny-a's prompt "p0" .. "p5"; the length at *count. Free with free. */
int32_t *load_prompt(const char *name, int *count);

/* A checkpoint and a model on it. tiny-a and nano bring their token maps. settings may hold zeros. */
typedef struct fixture {
    pl_checkpoint *checkpoint;
    uint32_t *token_map;
    pl_model *model;
} fixture;
void open_fixture(fixture *f, const char *dir, pl_model_settings settings);
/* The checkpoint and its token map only. */
void open_checkpoint(fixture *f, const char *dir);
/* Close the model and open it again with other settings. */
void reopen_model(fixture *f, pl_model_settings settings);
void close_fixture(fixture *f);

/* A random checkpoint in the folder `dir` (make_folder), from the text of a config; its tokenizer and map included. */
void make_checkpoint(const char *dir, const char *config, size_t len, const char *where, uint64_t seed);
void remove_folder(const char *dir);

/* Run tokens[from..to) of slot 0 in pieces, with logits of every row written to out [to-from][V] (NULL: none
 * wanted). */
void run_rows(pl_model *model, const int32_t *tokens, int from, int to, float *out);

/* Largest and mean absolute difference, and the index of the largest in b. */
typedef struct difference {
    double max, mean;
} difference;
difference compare(const float *a, const float *b, size_t count);
int best_of(const float *row, int count);
float margin_of(const float *row, int count);

/* A pseudo-random 32-bit word (xorshift), from a seed that the tests print. */
uint32_t next_random(uint64_t *state);
uint64_t print_seed(void);

#endif
