/* The prompts a bench sends: groups by what their text is like, read from bench/prompts.json.
 *
 *     {"groups": {"code": [{"name": "fibonacci-raw", "form": "completion", "prompt": "..."}, ...], ...}}
 *
 * form: "completion" (POST /completions, the text as it stands) or "chat" (POST /chat/completions, one user message,
 * thinking off). */
#ifndef PL_BENCH_PROMPTS_H
#define PL_BENCH_PROMPTS_H

#include "base/status.h"

#include <jansson.h>

enum { PL_BENCH_PROMPTS_FILE_MAX = 4 << 20, PL_BENCH_SETS_MAX = 64, PL_BENCH_SET_MAX = 256, PL_BENCH_NAME_MAX = 63 };

typedef struct pl_bench_prompt {
    const char *name, *text;
    bool chat;
} pl_bench_prompt;

/* Prompts that a cell's requests take in turn: a group, or one prompt by its name. */
typedef struct pl_bench_set {
    const char *name;
    pl_bench_prompt prompt[PL_BENCH_SET_MAX];
    int n;
} pl_bench_set;

typedef struct pl_bench_prompts {
    json_t *file;      /* owns all text */
    pl_bench_set *set; /* [sets] the groups, in the file's order */
    int sets;
} pl_bench_prompts;

/* PL_ENOTFOUND, PL_EIO, PL_ELIMIT, PL_ENOMEM; PL_EFORMAT naming what is wrong. Free with pl_bench_prompts_free, also
 * after a failure. */
pl_status pl_bench_prompts_read(pl_bench_prompts *p, const char *path, pl_error *err);
/* The same from n bytes; `path` is for messages. */
pl_status pl_bench_prompts_parse(pl_bench_prompts *p, const char *path, const char *text, size_t n, pl_error *err);
void pl_bench_prompts_free(pl_bench_prompts *p);

/* The group of that name, or a set of the one prompt of that name; false when there is neither. */
bool pl_bench_prompts_find(const pl_bench_prompts *p, const char *name, pl_bench_set *set);

#endif
