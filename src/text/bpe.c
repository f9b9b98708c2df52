#include "text/bpe.h"

#include <stdlib.h>
#include <string.h>

enum {
    SHORT_PIECE = 48,      /* bytes up to which a scan for the lowest rank beats a heap */
    CACHE_SLOTS = 1 << 12, /* words kept a call */
    CACHE_BYTES = 26,      /* longest word kept */
    CACHE_IDS = 5,         /* most ids of a word kept */
    CACHE_FROM = 1024      /* bytes of text from which the cache pays */
};

static const uint32_t NONE = UINT32_MAX;

typedef struct word {
    unsigned char len; /* 0: empty */
    unsigned char ids_len;
    char bytes[CACHE_BYTES];
    int32_t ids[CACHE_IDS];
} word;

/* One symbol of a long piece, at the byte where it starts. */
typedef struct symbol {
    int32_t id; /* -1: swallowed by the one on its left */
    uint32_t prev, next;
} symbol;

struct pl__bpe_work {
    word *cache;     /* CACHE_SLOTS, or NULL */
    symbol *symbols; /* [symbols_room] */
    uint64_t *heap;  /* [2 * symbols_room] rank << 32 | position, lowest first */
    size_t symbols_room;
    size_t heap_len;
};

static uint32_t slot_of(const pl__bpe *bpe, int32_t left, int32_t right)
{
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    return (uint32_t)(key * 0x9e3779b97f4a7c15u >> 32) & bpe->mask;
}

static uint32_t rank_of(const pl__bpe *bpe, int32_t left, int32_t right)
{
    for (uint32_t at = slot_of(bpe, left, right);; at = (at + 1) & bpe->mask) {
        const pl__merge *m = &bpe->slots[at];
        if ((m->left == left && m->right == right) || m->rank == NONE)
            return m->rank;
    }
}

pl_status pl__bpe_init(pl__bpe *bpe, uint32_t ranks, pl_error *err)
{
    uint32_t slots = 16;
    while (slots / 2 < ranks)
        slots *= 2;
    *bpe = (pl__bpe){.mask = slots - 1};
    bpe->slots = malloc(slots * sizeof *bpe->slots);
    bpe->merged = malloc((ranks + (size_t)1) * sizeof *bpe->merged);
    if (!bpe->slots || !bpe->merged) {
        pl__bpe_free(bpe);
        return pl_fail(err, PL_ENOMEM, "no memory for %u merges of a tokenizer", ranks);
    }
    for (uint32_t i = 0; i < slots; i++)
        bpe->slots[i] = (pl__merge){.left = -1, .right = -1, .rank = NONE, .id = -1};
    for (int i = 0; i < 256; i++)
        bpe->byte_id[i] = -1;
    return PL_OK;
}

void pl__bpe_free(pl__bpe *bpe)
{
    free(bpe->slots);
    free(bpe->merged);
    *bpe = (pl__bpe){0};
}

size_t pl__bpe_bytes(const pl__bpe *bpe)
{
    return ((size_t)bpe->mask + 1) * sizeof *bpe->slots + (bpe->ranks + (size_t)1) * sizeof *bpe->merged;
}

bool pl__bpe_add(pl__bpe *bpe, int32_t left, int32_t right, int32_t id)
{
    uint32_t at = slot_of(bpe, left, right);
    for (; bpe->slots[at].rank != NONE; at = (at + 1) & bpe->mask)
        if (bpe->slots[at].left == left && bpe->slots[at].right == right)
            return false;
    bpe->slots[at] = (pl__merge){.left = left, .right = right, .rank = bpe->ranks, .id = id};
    bpe->merged[bpe->ranks++] = id;
    return true;
}

pl__bpe_work *pl__bpe_work_open(size_t text_len)
{
    pl__bpe_work *work = calloc(1, sizeof *work);
    if (work && text_len >= CACHE_FROM) /* it goes on without the cache when there is no memory for one */
        work->cache = calloc(CACHE_SLOTS, sizeof *work->cache);
    return work;
}

void pl__bpe_work_close(pl__bpe_work *work)
{
    if (!work)
        return;
    free(work->cache);
    free(work->symbols);
    free(work->heap);
    free(work);
}

/* At most SHORT_PIECE bytes: ids[] holds the result, its length is returned. */
static int merge_short(const pl__bpe *bpe, const char *piece, int n, int32_t ids[SHORT_PIECE])
{
    uint32_t rank[SHORT_PIECE]; /* of the pair (i, i + 1) */
    for (int i = 0; i < n; i++)
        ids[i] = bpe->byte_id[(unsigned char)piece[i]];
    for (int i = 0; i + 1 < n; i++)
        rank[i] = rank_of(bpe, ids[i], ids[i + 1]);
    while (n > 1) {
        int best = 0;
        for (int i = 1; i + 1 < n; i++)
            if (rank[i] < rank[best])
                best = i;
        if (rank[best] == NONE)
            break;
        ids[best] = bpe->merged[rank[best]];
        n--;
        memmove(ids + best + 1, ids + best + 2, (size_t)(n - best - 1) * sizeof *ids);
        if (n - best > 1) {
            memmove(rank + best, rank + best + 1, (size_t)(n - best - 1) * sizeof *rank);
            rank[best] = rank_of(bpe, ids[best], ids[best + 1]);
        }
        if (best > 0)
            rank[best - 1] = rank_of(bpe, ids[best - 1], ids[best]);
    }
    return n;
}

static void heap_push(pl__bpe_work *work, uint64_t value)
{
    size_t at = work->heap_len++;
    while (at > 0 && work->heap[(at - 1) / 2] > value) {
        work->heap[at] = work->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    work->heap[at] = value;
}

static uint64_t heap_pop(pl__bpe_work *work)
{
    uint64_t top = work->heap[0], value = work->heap[--work->heap_len];
    size_t at = 0, n = work->heap_len;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= n)
            break;
        if (child + 1 < n && work->heap[child + 1] < work->heap[child])
            child++;
        if (work->heap[child] >= value)
            break;
        work->heap[at] = work->heap[child];
        at = child;
    }
    work->heap[at] = value;
    return top;
}

/* Note the pair that starts at `left`, if it has a merge. */
static void push_pair(const pl__bpe *bpe, pl__bpe_work *work, uint32_t left)
{
    uint32_t right = work->symbols[left].next;
    if (right == NONE)
        return;
    uint32_t rank = rank_of(bpe, work->symbols[left].id, work->symbols[right].id);
    if (rank != NONE)
        heap_push(work, (uint64_t)rank << 32 | left);
}

/* The heap starts with at most n - 1 pairs; each of at most n - 1 merges takes one out and adds two at most. */
static pl_status long_room(pl__bpe_work *work, size_t n, pl_error *err)
{
    if (n <= work->symbols_room)
        return PL_OK;
    free(work->symbols);
    free(work->heap);
    work->symbols_room = 0;
    work->symbols = malloc(n * sizeof *work->symbols);
    work->heap = malloc(2 * n * sizeof *work->heap);
    if (!work->symbols || !work->heap)
        return pl_fail(err, PL_ENOMEM, "no memory to tokenize an unbroken run of %zu bytes", n);
    work->symbols_room = n;
    return PL_OK;
}

static void merge_long(const pl__bpe *bpe, pl__bpe_work *work, const char *piece, uint32_t n)
{
    symbol *s = work->symbols;
    for (uint32_t i = 0; i < n; i++)
        s[i] = (symbol){bpe->byte_id[(unsigned char)piece[i]], i == 0 ? NONE : i - 1, i + 1 == n ? NONE : i + 1};
    work->heap_len = 0;
    for (uint32_t i = 0; i < n; i++)
        push_pair(bpe, work, i);
    while (work->heap_len > 0) {
        uint64_t top = heap_pop(work);
        uint32_t at = (uint32_t)top, rank = (uint32_t)(top >> 32), right = s[at].next;
        /* Out of date: one half was merged elsewhere meanwhile. */
        if (s[at].id < 0 || right == NONE || rank_of(bpe, s[at].id, s[right].id) != rank)
            continue;
        s[at].id = bpe->merged[rank];
        s[at].next = s[right].next;
        s[right].id = -1;
        if (s[at].next != NONE)
            s[s[at].next].prev = at;
        push_pair(bpe, work, at);
        if (s[at].prev != NONE)
            push_pair(bpe, work, s[at].prev);
    }
}

static pl_status encode_long(const pl__bpe *bpe, pl__bpe_work *work, const char *piece, size_t len, pl_ids *out,
                             pl_error *err)
{
    PL_TRY(long_room(work, len, err));
    merge_long(bpe, work, piece, (uint32_t)len);
    for (uint32_t at = 0; at != NONE; at = work->symbols[at].next)
        PL_TRY(pl_ids_push(out, work->symbols[at].id, err));
    return PL_OK;
}

static word *cache_slot(pl__bpe_work *work, const char *piece, size_t len)
{
    uint64_t h = len;
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)piece[i]) * 0x100000001b3u;
    return &work->cache[(h ^ h >> 29) % CACHE_SLOTS];
}

pl_status pl__bpe_encode(const pl__bpe *bpe, pl__bpe_work *work, const char *piece, size_t len, pl_ids *out,
                         pl_error *err)
{
    if (len == 1)
        return pl_ids_push(out, bpe->byte_id[(unsigned char)piece[0]], err);
    if (len > SHORT_PIECE)
        return encode_long(bpe, work, piece, len, out, err);
    word *seen = work->cache && len <= CACHE_BYTES ? cache_slot(work, piece, len) : NULL;
    if (seen && seen->len == len && memcmp(seen->bytes, piece, len) == 0)
        return pl_ids_add(out, seen->ids, seen->ids_len, err);
    int32_t ids[SHORT_PIECE];
    int n = merge_short(bpe, piece, (int)len, ids);
    if (seen && n <= CACHE_IDS) {
        seen->len = (unsigned char)len;
        seen->ids_len = (unsigned char)n;
        memcpy(seen->bytes, piece, len);
        memcpy(seen->ids, ids, (size_t)n * sizeof *ids);
    }
    return pl_ids_add(out, ids, (size_t)n, err);
}
