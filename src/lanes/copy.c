#include "lanes/copy.h"

#include <string.h>

enum { PLACES = 8 /* looked at for the longest match */, STEPS = 64 /* most along a chain */, MATCH_MOST = 32 };

static uint32_t slots_for(int context)
{
    uint32_t slots = 256;
    while (slots < (uint32_t)context && slots < (1u << 30))
        slots *= 2;
    return slots;
}

size_t pl__copy_bytes(int context)
{
    return ((size_t)slots_for(context) + (size_t)context) * sizeof(int32_t);
}

void pl__copy_init(pl__copy *copy, int context, void *memory)
{
    *copy = (pl__copy){.context = context, .mask = slots_for(context) - 1, .newest = memory};
    copy->before = copy->newest + copy->mask + 1;
    pl__copy_reset(copy);
}

void pl__copy_reset(pl__copy *copy)
{
    copy->count = 0;
    memset(copy->newest, 0xff, ((size_t)copy->mask + 1) * sizeof *copy->newest);
}

/* Of the run that ends at `last`. */
static uint32_t hash(const int32_t *token, int last)
{
    uint64_t h = 0;
    for (int i = 0; i < PL_COPY_MATCH; i++)
        h = (h ^ (uint32_t)token[last - i]) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(h >> 32);
}

void pl__copy_extend(pl__copy *copy, const int32_t *token, int n)
{
    for (int i = copy->count; i < n; i++) {
        copy->before[i] = -1;
        if (i < PL_COPY_MATCH - 1)
            continue;
        int32_t *newest = &copy->newest[hash(token, i) & copy->mask];
        copy->before[i] = *newest;
        *newest = i;
    }
    copy->count = n > copy->count ? n : copy->count;
}

/* Tokens that agree going back from two places, a the earlier. */
static int agree(const int32_t *token, int a, int b)
{
    int n = 0;
    while (n < MATCH_MOST && a - n >= 0 && token[a - n] == token[b - n])
        n++;
    return n;
}

int pl__copy_find(const pl__copy *copy, const int32_t *token, int n, int32_t *draft, int most, int *match)
{
    *match = 0;
    if (n < PL_COPY_MATCH + 1 || most < 1)
        return 0;
    int best = -1, at = copy->before[n - 1];
    /* A chain also holds other runs of the same hash; they must not hide the places of this one. */
    for (int looked = 0, steps = 0; at >= 0 && looked < PLACES && steps < STEPS; steps++, at = copy->before[at]) {
        int found = agree(token, at, n - 1);
        looked += found >= PL_COPY_MATCH;
        if (found > *match) {
            *match = found;
            best = at;
        }
    }
    if (*match < PL_COPY_MATCH) {
        *match = 0;
        return 0;
    }
    /* Past the end it goes on with what it proposed itself: a loop repeats. */
    for (int k = 0; k < most; k++) {
        int from = best + 1 + k;
        draft[k] = from < n ? token[from] : draft[from - n];
    }
    return most;
}
