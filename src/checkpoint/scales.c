/* One pass over all scale bytes: NaN is refused, bytes outside the exact range are noted.
 *
 * A quantised product is exact in float32 for scale bytes 18..246 (FP8) and 10..252 (FP4); docs/architecture.md. */
#include "checkpoint/open.h"

#include "base/log.h"
#include "base/threads.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    PIECE = 4 << 20,  /* bytes of one task */
    ROUND = 64 << 20, /* bytes between two calls of progress, about */
    MOST_LINES = 16   /* warnings, before the rest is only counted */
};

typedef struct piece {
    pl__entry *entry;
    uint64_t at;
    size_t n;
} piece;

typedef struct job {
    piece *piece;
    size_t pieces;
    uint64_t bytes;
} job;

typedef unsigned char bytes16 __attribute__((vector_size(16), aligned(1), may_alias));

static bool is_scale(const pl__entry *e)
{
    return (e->flags & PL__KNOWN) &&
           (e->role == PL_ROLE_SCALE_BLOCK || e->role == PL_ROLE_SCALE_ROW || e->role == PL_ROLE_TABLE_SCALE);
}

/* Smallest and largest byte of n >= 1. */
static void extremes(const unsigned char *p, size_t n, unsigned char *low, unsigned char *high)
{
    size_t i = 0;
    *low = *high = p[0];
    if (n >= 16) {
        bytes16 lo = *(const bytes16 *)p, hi = lo;
        for (; i + 16 <= n; i += 16) {
            bytes16 v = *(const bytes16 *)(p + i);
            bytes16 less = (bytes16)(v < lo), more = (bytes16)(v > hi);
            lo = (v & less) | (lo & ~less);
            hi = (v & more) | (hi & ~more);
        }
        for (int k = 0; k < 16; k++) {
            *low = lo[k] < *low ? lo[k] : *low;
            *high = hi[k] > *high ? hi[k] : *high;
        }
    }
    for (; i < n; i++) {
        *low = p[i] < *low ? p[i] : *low;
        *high = p[i] > *high ? p[i] : *high;
    }
}

/* Give the whole pages inside the range back: an Engram's scales are gigabytes that a reply reads a few hundred bytes
 * of. */
static void give_back(const unsigned char *p, size_t n, int advice)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = ((uintptr_t)p + page - 1) & ~(page - 1), last = ((uintptr_t)p + n) & ~(page - 1);
    if (first < last)
        (void)madvise((void *)first, last - first, advice); /* only a hint */
}

static void check_piece(void *arg, size_t task, int thread)
{
    (void)thread;
    const piece *p = (const piece *)arg + task;
    const unsigned char *data = p->entry->data + p->at;
    unsigned char low, high;
    extremes(data, p->n, &low, &high);
    bool fp4 = p->entry->role == PL_ROLE_SCALE_ROW;
    uint8_t flags = 0;
    if (low < (fp4 ? 10 : 18) || high > (fp4 ? 252 : 246))
        flags |= PL__WIDE;
    if (high == 255)
        flags |= PL__NAN;
    if (flags)
        __atomic_fetch_or(&p->entry->flags, flags, __ATOMIC_RELAXED);
    if (p->entry->role == PL_ROLE_TABLE_SCALE)
        give_back(data, p->n, MADV_DONTNEED);
}

static pl_status cut(pl_checkpoint *c, job *j, pl_error *err)
{
    size_t room = 0;
    for (size_t i = 0; i < c->index.tensors.count; i++)
        if (is_scale(&c->entry[i]))
            room += (size_t)((c->entry[i].bytes + PIECE - 1) / PIECE);
    j->piece = malloc((room ? room : 1) * sizeof *j->piece);
    if (!j->piece)
        return pl_fail(err, PL_ENOMEM, "no memory to check %zu scales", room);
    for (size_t i = 0; i < c->index.tensors.count; i++) {
        pl__entry *e = &c->entry[i];
        for (uint64_t at = 0; is_scale(e) && at < e->bytes; at += PIECE) {
            size_t n = e->bytes - at < PIECE ? (size_t)(e->bytes - at) : PIECE;
            j->piece[j->pieces++] = (piece){e, at, n};
            j->bytes += n;
        }
    }
    return PL_OK;
}

static pl_status run(const job *j, int threads, pl_progress_fn *progress, void *arg, pl_error *err)
{
    pl_pool *pool;
    PL_TRY(pl_pool_open(&pool, j->bytes <= PIECE ? 1 : threads > 0 ? threads : pl_cpu_count(), err));
    uint64_t done = 0;
    for (size_t first = 0; first < j->pieces;) {
        size_t last = first;
        uint64_t round = 0;
        while (last < j->pieces && round < ROUND)
            round += j->piece[last++].n;
        pl_pool_run(pool, last - first, check_piece, j->piece + first);
        first = last;
        done += round;
        if (progress)
            progress(arg, "checking scale bytes", done, j->bytes);
    }
    pl_pool_close(pool);
    return PL_OK;
}

static pl_status report(const pl_checkpoint *c, pl_error *err)
{
    size_t wide = 0;
    for (size_t i = 0; i < c->index.tensors.count; i++) {
        const pl__entry *e = &c->entry[i];
        const char *name = pl__entry_name(c, e);
        if (e->flags & PL__NAN) {
            const unsigned char *at = memchr(e->data, 255, (size_t)e->bytes);
            return pl_fail_param(err, PL_EFORMAT, name,
                                 "%s: tensor %s: expected scale bytes 0 to 254, found 255 (NaN) at byte %lld",
                                 pl__entry_path(c, e), name, at ? (long long)(at - e->data) : -1LL);
        }
        if (!(e->flags & PL__WIDE))
            continue;
        if (wide++ < MOST_LINES)
            pl_log(PL_LOG_WARNING,
                   "%s: tensor %s: a scale byte lies outside the exact range (%s): it takes the wide path",
                   pl__entry_path(c, e), name, e->role == PL_ROLE_SCALE_ROW ? "10 to 252" : "18 to 246");
    }
    if (wide > MOST_LINES)
        pl_log(PL_LOG_WARNING, "%s: %zu more tensors with such scale bytes", c->dir, wide - MOST_LINES);
    return PL_OK;
}

pl_status pl__scales_check(pl_checkpoint *c, int threads, pl_progress_fn *progress, void *arg, pl_error *err)
{
    job j = {0};
    pl_status status = cut(c, &j, err);
    if (status == PL_OK)
        status = run(&j, threads, progress, arg, err);
    free(j.piece);
    if (status != PL_OK)
        return status;
    /* Rows are looked up one by one from here on: no read-ahead. */
    for (size_t i = 0; i < c->index.tensors.count; i++)
        if ((c->entry[i].flags & PL__KNOWN) && c->entry[i].part == PL_PART_ENGRAM_TABLES)
            give_back(c->entry[i].data, (size_t)c->entry[i].bytes, MADV_RANDOM);
    return report(c, err);
}
