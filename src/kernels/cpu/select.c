#include "kernels/cpu/select.h"

#include <string.h>

/* Four counts side by side: equal keys that follow one another then do not wait for each other's store. */
typedef struct histogram {
    uint32_t count[4][256];
} histogram;

static void fold(histogram *h)
{
    for (int i = 0; i < 256; i++)
        h->count[0][i] += h->count[1][i] + h->count[2][i] + h->count[3][i];
}

/* The bin in which the keep-th greatest falls; *keep becomes its rank inside the bin. */
static unsigned bin_of(const histogram *h, size_t *keep)
{
    unsigned bin = 255;
    while (bin > 0 && h->count[0][bin] < *keep)
        *keep -= h->count[0][bin--];
    return bin;
}

pl__cut pl__select(const uint16_t *key, size_t n, size_t keep)
{
    histogram h;
    memset(&h, 0, sizeof h);
    for (size_t i = 0; i < n; i++)
        h.count[i & 3][key[i] >> 8]++;
    fold(&h);
    unsigned high = bin_of(&h, &keep);
    memset(&h, 0, sizeof h);
    for (size_t i = 0; i < n; i++)
        if (key[i] >> 8 == high)
            h.count[i & 3][key[i] & 255]++;
    fold(&h);
    unsigned low = bin_of(&h, &keep);
    return (pl__cut){.cut = (uint16_t)(high << 8 | low), .ties = keep};
}
