/* One block of a product: some rows with some outputs. Few rows read the weights once from first to last byte. More go
 * panel by panel: a group of outputs is widened into the first cache, and all rows pass by, each row's panel being
 * multiplied with the whole group while it is there. */
#include "kernels/cpu/lin.h"

#include "kernels/cpu/lin_ahead.h"

enum {
    ASK = 16,          /* outputs from the one that is widened to the one asked for */
    FEWER_PANEL = 512, /* most inputs, or chunks, of a panel below PL__WIDE_ROWS */
    FEWER_PANEL4 = 8
};

/* What a thread keeps while it works on a block. */
typedef struct block_scratch {
    float acc[PL__SPAN / PL__TILE][PL__ROWS][PL__TILE][PL__LANES];
    union {
        float c16[PL__GROUP][PL__PANEL / PL__LANES][PL__TILE][PL__LANES];
        pl__wchunk d8[PL__GROUP][PL__PANEL4][PL__TILE];
    } tile;
} block_scratch;

/* A block of more than a few rows on its way. */
typedef struct walk {
    const pl__lin_isa *isa;
    block_scratch *s;
    const pl_mat *w;
    const pl__x *x;
    const int32_t *rows;
    int first, n;              /* rows */
    int o0, from, to;          /* outputs o0 + from .. o0 + to - 1 are walked */
    int group, width;          /* outputs of a group, inputs of a panel */
    const unsigned char *next; /* what follows these outputs and has not been asked for; NULL: see ask */
    float *y;
    size_t stride;
} walk;

size_t pl__block_bytes(void)
{
    return pl__lines(sizeof(block_scratch));
}

/* The largest scale byte of FP8 outputs; 0 for other formats. */
static int top_scale(const pl_mat *w, int o0, int count)
{
    size_t blocks = ((size_t)w->in + 31) / 32;
    unsigned char top = 0;
    for (int b = o0 / 32; w->format == PL_FMT_FP8 && b <= (o0 + count - 1) / 32; b++)
        for (size_t i = 0; i < blocks; i++) {
            unsigned char scale = w->scale[(size_t)b * blocks + i];
            top = scale > top ? scale : top;
        }
    return top;
}

/* Which row of x is the i-th of a block? */
static inline size_t row_at(const int32_t *rows, int first, int i)
{
    return rows ? (size_t)rows[i] : (size_t)(first + i);
}

/* Rows from r, cut so that tiles are of equal height. */
static inline int tile_height(int n, int r, int most)
{
    int left = n - r, tiles = (left + most - 1) / most;
    return (left + tiles - 1) / tiles;
}

/* `length` cut into equal panels of at most `most`, a multiple of `unit`. */
static inline int panel_width(int length, int most, int unit)
{
    int panels = (length + most - 1) / most, width = (length + panels - 1) / panels;
    return (width + unit - 1) / unit * unit;
}

/* Bytes of the weights `n` inputs of a row of w take. */
static size_t weight_bytes(const pl_mat *w, int n)
{
    size_t bytes = (size_t)n;
    return w->format == PL_FMT_FP4    ? bytes / 2
           : w->format == PL_FMT_FP8  ? bytes
           : w->format == PL_FMT_BF16 ? 2 * bytes
                                      : 4 * bytes;
}

/* A panel takes a piece of every output: that order of reading is as slow as memory gets. While the piece of output o
 * is widened, some of what comes later is asked for, into the second cache. With fewer rows, where reads bound the
 * block, that is the next bytes of what follows these outputs, in one run; with many the piece ASK outputs further
 * on. */
static void ask(walk *v, int o, int k, int n)
{
    size_t row = weight_bytes(v->w, v->w->in), bytes = weight_bytes(v->w, n);
    if (v->next) {
        pl__ahead_bytes(v->next, bytes);
        v->next += bytes;
        return;
    }
    o += ASK;
    for (; o >= v->to && k < v->w->in; k += v->width)
        o -= v->to - v->from;
    size_t at = k < v->w->in ? (size_t)(v->o0 + o) * row + weight_bytes(v->w, k)
                             : (size_t)(v->o0 + o + v->to - v->from) * row; /* the outputs behind these */
    pl__ahead_bytes(v->w->data + at, bytes);
}

/* The outputs of a group, `outs` of them from o; a tile that is not full repeats one. Its sums go to y. */
static void group_c16(walk *v, int o, int outs, int k, int len)
{
    const pl__lin_c16 *c16 = v->isa->c16;
    int f = pl__lin_index(v->w->format), tiles = (outs + PL__TILE - 1) / PL__TILE;
    pl__part part = {.first = k == 0, .last = k + v->width >= v->w->in, .stride = v->stride};
    for (int j = 0; j < tiles * PL__TILE; j++) {
        int at = j < outs ? o + j : o;
        c16->widen[f](&v->s->tile.c16[j / PL__TILE][0][0][0], j % PL__TILE, v->w, v->o0 + at, k, len);
        ask(v, at, k, len);
    }
    for (int r = 0, h; r < v->n; r += h) {
        const float *xr[PL__LANES];
        h = tile_height(v->n, r, c16->tile_rows);
        for (int i = 0; i < h; i++)
            xr[i] = v->x->f + row_at(v->rows, v->first, r + i) * v->x->f_stride + k;
        for (int t = 0; t < tiles; t++) {
            part.y = v->y + (size_t)r * v->stride + (size_t)(o + t * PL__TILE);
            c16->tile(v->s->acc[o / PL__TILE + t][r][0], xr, h, &v->s->tile.c16[t][0][0][0], len, &part);
        }
    }
}

static void group_d8(walk *v, int o, int outs, int c, int len)
{
    const pl__lin_d8 *d8 = v->isa->d8;
    int tiles = (outs + PL__TILE - 1) / PL__TILE, k = c * PL__CHUNK;
    pl__part part = {.first = k == 0, .last = k + v->width >= v->w->in, .stride = v->stride};
    for (int j = 0; j < tiles * PL__TILE; j++) {
        int at = j < outs ? o + j : o;
        d8->widen(&v->s->tile.d8[j / PL__TILE][0][0], j % PL__TILE, v->w, v->o0 + at, c, len);
        ask(v, at, k, len * PL__CHUNK);
    }
    for (int r = 0, h; r < v->n; r += h) {
        const pl__xchunk *xr[PL__LANES];
        const unsigned char *lo[PL__LANES];
        h = tile_height(v->n, r, d8->tile_rows);
        for (int i = 0; i < h; i++) {
            size_t at = row_at(v->rows, v->first, r + i) * v->x->c_stride + (size_t)c;
            xr[i] = v->x->c + at;
            lo[i] = v->x->lo + at;
        }
        for (int t = 0; t < tiles; t++) {
            part.y = v->y + (size_t)r * v->stride + (size_t)(o + t * PL__TILE);
            d8->tile(v->s->acc[o / PL__TILE + t][r][0], xr, lo, h, &v->s->tile.d8[t][0][0], len, &part);
        }
    }
}

/* Walk outputs o0 + from .. o0 + to - 1. Fewer rows lie in the first cache as they are, and a group is one tile. */
static void panels(walk *v)
{
    bool codes = v->w->format == PL_FMT_FP4, many = v->n >= PL__WIDE_ROWS;
    int in = v->w->in, c16 = many ? v->isa->c16->panel : FEWER_PANEL;
    v->group = many ? PL__GROUP * PL__TILE : PL__TILE;
    v->width = codes ? PL__CHUNK * panel_width((int)pl__chunks(in), many ? PL__PANEL4 : FEWER_PANEL4, 1)
                     : panel_width(in, c16, 32);
    for (int k = 0; k < in; k += v->width) {
        int len = in - k < v->width ? in - k : v->width;
        for (int o = v->from; o < v->to; o += v->group) {
            int outs = v->to - o < v->group ? v->to - o : v->group;
            if (codes)
                group_d8(v, o, outs, k / PL__CHUNK, (len + PL__CHUNK - 1) / PL__CHUNK);
            else
                group_c16(v, o, outs, k, (len + PL__LANES - 1) & -PL__LANES);
        }
    }
}

/* May these rows go the way that scales x rather than weights? */
static bool within_reach(const pl_mat *w, const pl__x *x, const int32_t *rows, int first, int n, int top)
{
    for (int i = 0; i < n && w->format == PL_FMT_FP8; i++)
        if (x->reach[row_at(rows, first, i)] + top > PL__FP8_REACH)
            return false;
    return true;
}

/* Few rows, weights read once from beginning to end. False when there are too many, or they are out of reach. */
static bool block_few(const pl__lin_isa *isa, float (*y)[PL__OUTS], const pl_mat *w, int o0, int count, const pl__x *x,
                      const int32_t *rows, int first, int n, int top)
{
    if (w->format == PL_FMT_FP4) {
        const pl__xchunk *xc[PL__LANES];
        const unsigned char *lo[PL__LANES];
        if (n > isa->d8->few_rows)
            return false;
        for (int i = 0; i < n; i++) {
            size_t at = row_at(rows, first, i) * x->c_stride;
            xc[i] = x->c + at;
            lo[i] = x->lo + at;
        }
        isa->d8->few(y, w, o0, count, xc, lo, n);
        return true;
    }
    if (n > isa->c16->few_rows || !within_reach(w, x, rows, first, n, top))
        return false;
    const float *xr[PL__LANES];
    for (int i = 0; i < n; i++)
        xr[i] = x->f + row_at(rows, first, i) * x->f_stride;
    isa->c16->few[pl__lin_index(w->format)](y, w, o0, count, xr, n);
    return true;
}

static void block_many(walk *v, int count)
{
    /* fewer rows: as many outputs at a time as leave room for the next ones in the second cache */
    int part = count;
    if (v->n < PL__WIDE_ROWS)
        for (part = PL__OUTS; part > 2 * PL__TILE && (size_t)part * weight_bytes(v->w, v->w->in) > PL__PART_BYTES;)
            part /= 2;
    for (int o = 0; o < count; o += part) {
        v->from = o;
        v->to = o + part < count ? o + part : count;
        v->next = v->n < PL__WIDE_ROWS ? v->w->data + (size_t)(v->o0 + v->to) * weight_bytes(v->w, v->w->in) : NULL;
        panels(v);
    }
}

void pl__lin_block(const pl__lin_isa *isa, float *y, size_t stride, const pl_mat *w, int o0, int count, const pl__x *x,
                   const int32_t *rows, int first, int n, unsigned char *mine)
{
    int top = top_scale(w, o0, count);
    bool all_plain = w->wide || top > PL__FP8_TOP, some = false;
    if (!all_plain && n < PL__WIDE_ROWS)
        some = block_few(isa, (float(*)[PL__OUTS])(void *)y, w, o0, count, x, rows, first, n, top);
    if (!all_plain && !some) {
        walk v = {isa, (block_scratch *)(void *)mine, w, x, rows, .first = first, .n = n, .o0 = o0, .y = y};
        v.stride = stride;
        block_many(&v, count);
    }
    for (int r = 0; r < n; r++) {
        size_t row = row_at(rows, first, r);
        float *yr = y + (size_t)r * stride;
        if (all_plain || x->plain[row])
            for (int o = 0; o < count; o++)
                yr[o] = pl__plain_dot(w, o0 + o, x->raw + row * x->raw_stride);
        else if (some)
            for (int o = 0; o < count; o++)
                yr[o] = pl__one_nan(yr[o]);
    }
}
