/* One POST to a completion endpoint, read and checked: what to make, and how the client wants it told. */
#ifndef PL_SERVER_CALL_H
#define PL_SERVER_CALL_H

#include "api/spec.h"
#include "server/errors.h"

enum {
    PL_CALL_CHOICES_MAX = 16,     /* n */
    PL_CALL_PROMPTS_MAX = 64,     /* prompts of one completion request */
    PL_CALL_REPLIES_MAX = 128,    /* both together */
    PL_CALL_TOKENS_MAX = 16 << 20 /* prompt tokens of all replies */
};

/* What a reader must know of the server. All of it outlives the call. */
typedef struct pl_call_env {
    const pl_tokenizer *tokenizer;
    int vocab;
    int context;
    int32_t bos; /* -1: none */
    bool thinks; /* defaults of a chat */
    int effort;
    const char *name; /* of the model */
    bool strict_name; /* another name is 404 */
} pl_call_env;

typedef struct pl_call {
    bool chat;
    pl_spec *spec; /* [prompts], owned */
    size_t prompts;
    size_t n; /* choices a prompt */
    bool stream;
    bool include_usage; /* the stream's last chunk */
    bool echo;          /* completions: the prompt's text first */
} pl_call;

/* Read a request body. On PL_OK the caller frees *call with pl_call_free; else *refusal says what to answer. */
pl_status pl_call_read(pl_call *call, bool chat, const char *body, size_t len, const pl_call_env *env,
                       pl_refusal *refusal);
void pl_call_free(pl_call *call);

/* ---- shared by the readers of the two endpoints ------------------------------------------------------------------ */

/* A field that changes the reply and is not honoured: PL_EINVAL, told apart from a malformed one by its code. */
pl_status pl__call_unsupported(const char *param, const char *why, pl_error *err);
bool pl__call_is_unsupported(const pl_error *err);

/* The fields that both endpoints have, but for the prompt, logprobs and n: into spec. */
pl_status pl__fields_read(const pl_json *root, const pl_call_env *env, pl_spec *spec, pl_error *err);
/* stream, stream_options, n: into call. */
pl_status pl__fields_delivery(const pl_json *root, pl_call *call, pl_error *err);

/* A field or its absence (null counts as absent): *found tells. PL_EINVAL naming the field. */
pl_status pl__field_bool(const pl_json *root, const char *name, bool *value, bool *found, pl_error *err);
pl_status pl__field_int(const pl_json *root, const char *name, int64_t min, int64_t max, int64_t *value, bool *found,
                        pl_error *err);
pl_status pl__field_real(const pl_json *root, const char *name, double min, double max, double *value, bool *found,
                         pl_error *err);

pl_status pl__chat_read(const pl_json *root, const pl_call_env *env, pl_call *call, pl_error *err);
pl_status pl__completion_read(const pl_json *root, const pl_call_env *env, pl_call *call, pl_error *err);

#endif
