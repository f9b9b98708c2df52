/* The bench clients' reader on any bytes: the HTTP response, its chunks, the event stream, the events. Two readings of
 * the same bytes in different pieces must come to the same reply; a reply that counts as verified must have said all it
 * takes. */
#include "bench/reply.h"

#include <stdlib.h>
#include <string.h>

static void read_all(pl_bench_reply *r, const uint8_t *data, size_t size, size_t first, size_t step)
{
    pl_bench_reply_init(r);
    size_t piece = first ? first : step, at = 0;
    int64_t now = 1;
    while (at < size && !r->ended) {
        size_t n = size - at < piece ? size - at : piece;
        char *copy = malloc(n); /* of its own: reading past it is found */
        memcpy(copy, data + at, n);
        (void)pl_bench_reply_bytes(r, copy, n, now++);
        free(copy);
        at += n;
        piece = step;
    }
    if (!r->ended)
        (void)pl_bench_reply_closed(r, now);
    if (!r->ended)
        abort();
}

static void check(const pl_bench_reply *r)
{
    size_t n = strlen(r->token_sha);
    if (r->failed != (r->error[0] != '\0') || r->pieces > PL_BENCH_PIECES_MAX || (n && (n < 12 || n > 64)))
        abort();
    if (pl_bench_reply_verified(r) &&
        (r->failed || !r->done || !r->whole || !r->finish_reason[0] || r->tokens < 0 || !n || r->hash_conflict))
        abort();
    if (r->done && r->status != 200)
        abort();
    if (pl_bench_reply_measured(r) && r->pieces < PL_BENCH_FEWEST_PIECES)
        abort();
    json_t *json = pl_bench_reply_json(r);
    if (!json)
        abort();
    json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static pl_bench_reply whole, cut;
    if (size < 2)
        return 0;
    read_all(&whole, data + 2, size - 2, 0, size);
    read_all(&cut, data + 2, size - 2, data[0], (size_t)data[1] + 1);
    check(&whole);
    check(&cut);
    if (whole.failed != cut.failed || whole.whole != cut.whole || whole.status != cut.status ||
        whole.done != cut.done || whole.tokens != cut.tokens || whole.pieces != cut.pieces ||
        whole.hash_conflict != cut.hash_conflict || strcmp(whole.token_sha, cut.token_sha) != 0 ||
        strcmp(whole.output_sha256, cut.output_sha256) != 0 ||
        strcmp(whole.reasoning_sha256, cut.reasoning_sha256) != 0 ||
        strcmp(whole.finish_reason, cut.finish_reason) != 0 || whole.plain.len != cut.plain.len)
        abort();
    pl_bench_reply_free(&whole);
    pl_bench_reply_free(&cut);
    return 0;
}
