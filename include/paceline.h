/* Paceline: the one public header.
 *
 * A program that embeds the engine includes this file and links libpaceline; nothing under src/ is public.
 * Names: pl_x is public, pl__x is shared between modules of the library, everything else is static. */
#ifndef PACELINE_H
#define PACELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a call came to. 0 is success, every failure is negative. */
typedef enum pl_status {
    PL_OK = 0,
    PL_EINVAL = -1,    /* a caller's argument, setting or request field has a bad value */
    PL_EFORMAT = -2,   /* bytes from outside (a file, a request body) break their format */
    PL_EIO = -3,       /* the operating system refused a read, write, map, bind, ... */
    PL_ENOMEM = -4,    /* memory could not be had */
    PL_ELIMIT = -5,    /* a named cap was reached */
    PL_ENOTFOUND = -6, /* a file, tensor, request or model that is not there */
    PL_ECANCELED = -7, /* the caller gave the work up */
    PL_EBUSY = -8,     /* not now: queue full, still loading, shutting down */
    PL_EFAULT = -9     /* a contradiction inside the engine: a fault of ours or of the device */
} pl_status;

/* The error object. The function where a failure starts fills it once; every caller above passes it on untouched. */
typedef struct pl_error {
    pl_status status;
    char message[512]; /* one sentence: what, where, what was expected, what was found; UTF-8, no newline */
    char param[128];   /* request field, setting, tensor or flag at fault; "" when there is none */
    int64_t offset;    /* byte offset in the input at fault, -1 when there is none */
} pl_error;

/* A short lower-case name for a status, "ok" or "bad-value" for example. Static storage, never NULL. */
const char *pl_status_name(pl_status status);

/* ---- opening a checkpoint --------------------------------------------------------------------------------------- */

/* One opened checkpoint and the engine thread that makes its replies. Any number of threads may submit to one
 * instance. */
typedef struct pl_instance pl_instance;

/* "Not said" for a field of type int, and NAN for a double: what the checkpoint's generation_config.json says holds,
 * else the value given beside the field. */
#define PL_DEFAULT (-2147483647 - 1)

typedef struct pl_options {
    const char *model_dir;  /* a checkpoint folder in the release layout; required */
    int threads;            /* that compute; 0: all that this process may use. No token depends on it */
    int context;            /* most tokens of a prompt and its reply; 0: what the model was made for, 32768 at most */
    int queue;              /* most submissions that wait; 0: 64 */
    const char *cache_dir;  /* where computed token maps are kept; NULL: $XDG_CACHE_HOME/paceline, ~/.cache/paceline */
    const char *seed_salt;  /* mixed into the seeds of requests without one; "random": fresh ones; NULL: none */
    bool drafts;            /* let the drafter work ahead; it changes the pace, never a token */
    int parallel;           /* replies made at once; 0: 1 */
    int plain_streams;      /* no drafts while so many replies or more are made at once; 0: always; PL_DEFAULT: 3 */
    int depth_joint;        /* drafts of several replies: 0, 1, 2 (docs/environment.md); PL_DEFAULT: 1 */
    const char *accept_log; /* a file that gets a line of JSON for every round; NULL: none */
    bool round_profile;     /* say in the log where a round's time goes */
    /* For requests that do not say themselves. */
    double temperature; /* 0 to 2; NAN: 1 */
    double top_p;       /* above 0, at most 1; NAN: 1 */
    double min_p;       /* 0 to 1; NAN: 0 */
    int top_k;          /* 0: all; PL_DEFAULT: all */
    int max_tokens;     /* 0: 8192, and 65536 when the model thinks */
    int thinking;       /* 1, 0, or PL_DEFAULT: on */
    int effort;         /* 1 to 100; 0: 75 */
    /* Progress of the opening, or NULL: done of total bytes of what. Called on the opening thread. */
    void (*progress)(void *arg, const char *what, uint64_t done, uint64_t total);
    void *progress_arg;
} pl_options;

/* Everything at its default; drafts on. Call it before setting fields. */
void pl_options_init(pl_options *options);

/* Open a checkpoint. On PL_OK the caller owns *instance. Long: the weights' scales are read once. PL_ENOTFOUND,
 * PL_EFORMAT (the checkpoint), PL_EINVAL (an option, named in param), PL_EIO, PL_ENOMEM; *instance is NULL then. */
pl_status pl_open(pl_instance **instance, const pl_options *options, pl_error *err);

/* Cancel what still runs, end the engine thread, free everything. Its jobs must have been closed. NULL is allowed. */
void pl_close(pl_instance *instance);

/* ---- asking for a reply ----------------------------------------------------------------------------------------- */

/* One reply on its way. Used by one thread at a time; pl_cancel alone may be called from another. */
typedef struct pl_job pl_job;

/* A request. Exactly one of messages, text and ids is set. Everything is copied or read before pl_submit returns. */
typedef struct pl_query {
    const char *messages; /* a JSON array of chat messages as in docs/api.md, messages_len bytes */
    size_t messages_len;
    const char *text; /* text_len bytes of UTF-8: one user message of a chat, or with raw the text to continue */
    size_t text_len;
    const int32_t *ids; /* ids_len token ids, the whole prompt as it is */
    size_t ids_len;

    const char *system; /* with text, not raw: a system message before it; NULL: none */
    bool raw;           /* with text: no chat form; spellings of control tokens are matched (never in a chat) */
    bool bos;           /* with raw: the begin-of-sentence token first */
    int thinking;       /* chats: 1, 0, or PL_DEFAULT: the instance's */
    int effort;         /* chats: 1 to 100, or 0: the instance's */

    int max_tokens;                   /* 0: the instance's; cut to what the context leaves */
    double temperature, top_p, min_p; /* NAN: the instance's */
    int top_k;                        /* PL_DEFAULT: the instance's */
    double repetition_penalty, frequency_penalty, presence_penalty; /* NAN: none */
    bool seeded; /* seed counts; else a seed is made from the prompt and the salt */
    int64_t seed;
    const char *const *stops; /* n_stops (at most 16) NUL-terminated strings that end the reply */
    size_t n_stops;
    bool ignore_eos;  /* the end token does not end the reply */
    bool draft;       /* the drafter may work ahead */
    int top_logprobs; /* PL_DEFAULT: no logprobs; else how many likeliest tokens to list a token, 0 to 20 */
} pl_query;

/* Everything at its default; draft on. Call it before setting fields. */
void pl_query_init(pl_query *query);

/* Hand a request in. On PL_OK the caller owns *job. Any thread. PL_EINVAL with the field in param; PL_ELIMIT (param
 * "prompt") when the prompt leaves no room in the context; PL_EBUSY when the queue is full; PL_EFAULT when the engine
 * has failed; PL_ENOMEM. *job is NULL then. */
pl_status pl_submit(pl_instance *instance, const pl_query *query, pl_job **job, pl_error *err);

/* Give the reply up. It still ends with PL_EVENT_FINISHED. Any thread, while the job is open. */
void pl_cancel(pl_job *job);

/* Done with it: cancelled if it still runs, freed. NULL is allowed. */
void pl_job_close(pl_job *job);

/* ---- reading a reply -------------------------------------------------------------------------------------------- */

typedef enum pl_event_kind {
    PL_EVENT_STARTED, /* its turn has come */
    PL_EVENT_PREFILL, /* more of the prompt has run: prefilled of prompt_tokens */
    PL_EVENT_TOKEN,   /* one more token */
    PL_EVENT_FINISHED /* the last event */
} pl_event_kind;

typedef enum pl_reason {
    PL_REASON_STOP,      /* the end token or a stop string */
    PL_REASON_LENGTH,    /* max_tokens or the context */
    PL_REASON_CANCELLED, /* pl_cancel, or the instance closed */
    PL_REASON_ERROR      /* see error */
} pl_reason;

typedef struct pl_event {
    pl_event_kind kind;
    size_t prompt_tokens, prefilled;

    /* TOKEN */
    int32_t token;
    float logprob; /* natural logarithm of its probability at temperature 1; only when asked for, like the next three */
    int tops;
    const int32_t *top;
    const float *top_logprob;

    /* TOKEN and FINISHED: text that became certain, whole UTF-8 characters, no NUL behind it; empty, never NULL, when
     * there is none. Valid until the next pl_poll of this job. */
    const char *reasoning; /* the model's thinking */
    size_t reasoning_len;
    const char *text; /* the answer */
    size_t text_len;

    /* FINISHED */
    pl_reason reason;
    size_t tokens, reasoning_tokens; /* of the reply, its end token included; of these, spent on thinking */
    const char *token_sha;           /* SHA-256 of all ids of the reply as 4-byte little-endian, 64 hex digits */
    double queued_s, prefill_s, first_token_s, decode_s; /* waiting; prompt; submission to first token; first to last */
    /* How it was made: launches it was in, of them those without drafts; rows; drafts verified, and of them kept. */
    uint64_t rounds, plain_rounds, rows, drafted, accepted;
    uint64_t asks, copied, copied_kept; /* of the drafter; drafts verified that came from its own text, of them kept */
    const pl_error *error;              /* PL_REASON_ERROR, else NULL */
} pl_event;

/* The next event, waiting for it at most timeout_ms (0: not at all, negative: for ever). A reader may take its time:
 * events wait for it and hold nothing up. PL_EBUSY when the time ran out, PL_ENOTFOUND after PL_EVENT_FINISHED. */
pl_status pl_poll(pl_job *job, pl_event *event, int timeout_ms, pl_error *err);

#ifdef __cplusplus
}
#endif
#endif
