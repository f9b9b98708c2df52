/* One request and the evidence its reply leaves: when its text came, how many tokens it has, which tokens they are.
 *
 * A reply counts as complete when its stream said everything a stream says: a finish_reason, the usage, [DONE], and
 * the response's own end. It is verified when it is complete and names the hash of its tokens (`token_sha`, at the top
 * level, in a choice or in a block `paceline` or `tensorfold`). A hash of the text is kept for every reply but verifies
 * nothing: other tokens may spell the same text. */
#ifndef PL_BENCH_REPLY_H
#define PL_BENCH_REPLY_H

#include "base/buf.h"
#include "base/sha256.h"
#include "bench/response.h"
#include "bench/sse.h"

#include <jansson.h>

enum {
    PL_BENCH_BLOCK_MAX = 65536, /* bytes of a server's own block that is kept */
    PL_BENCH_PIECES_MAX = 1 << 20,
    PL_BENCH_PLAIN_MAX = 1 << 20, /* bytes kept of a body that is no stream */
    PL_BENCH_FEWEST_PIECES = 4    /* of text; with fewer a rate of decoding means nothing */
};

typedef struct pl_bench_reply {
    bool ended, failed; /* failed: see error */
    bool whole;         /* the response came to its end */
    char error[512];
    int status;           /* HTTP */
    int64_t sent, closed; /* nanoseconds of the monotonic clock; 0: not yet */
    int64_t *piece;       /* [pieces] when each piece of text came; owned */
    size_t pieces, room;  /* room is private */
    bool done;            /* [DONE] came */
    char finish_reason[32];
    int64_t prompt_tokens, cached_tokens, tokens; /* of the usage; -1: not said */
    char token_sha[65];
    bool hash_conflict;                           /* two different hashes in one reply: as good as none */
    char output_sha256[65], reasoning_sha256[65]; /* of the text; "" without reasoning */
    json_t *block;                                /* the server's own block, or NULL; owned */
    pl_buf plain;                                 /* a body that is no event stream */
    /* private */
    pl_sha256 output, reasoning;
    bool has_reasoning;
    pl_bench_response response;
    pl_bench_sse sse;
    int64_t now;
} pl_bench_reply;

void pl_bench_reply_init(pl_bench_reply *r);
void pl_bench_reply_free(pl_bench_reply *r);

/* Bytes of the connection, which came at `now`; its end. A failure of any kind ends the reply: ended and failed are
 * set, error says why. True once the reply has ended. */
bool pl_bench_reply_bytes(pl_bench_reply *r, const char *bytes, size_t n, int64_t now);
bool pl_bench_reply_closed(pl_bench_reply *r, int64_t now);
void pl_bench_reply_fail(pl_bench_reply *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

bool pl_bench_reply_complete(const pl_bench_reply *r);
bool pl_bench_reply_verified(const pl_bench_reply *r);
/* Complete, with enough pieces over some time to have a rate. */
bool pl_bench_reply_measured(const pl_bench_reply *r);

/* What is kept of it in a receipt. A new reference, NULL without memory. */
json_t *pl_bench_reply_json(const pl_bench_reply *r);

/* A number, or null where it is NAN. A new reference. */
json_t *pl_bench_real(double value);

#endif
