/* Matrix products: cutting the work into blocks of outputs and rows, and walking a block's panels. */
#include "kernels/cpu/lin.h"

#include "kernels/cpu/lin_ahead.h"

/* What a thread keeps while it works on a block. */
typedef struct block_scratch {
    float acc[PL__ROWS][PL__OUTS][PL__LANES];
    union {
        float c16[PL__PANEL / PL__LANES][PL__TILE][PL__LANES];
        pl__wchunk d8[PL__PANEL4][PL__TILE];
    } tile;
    float y[PL__ROWS][PL__OUTS];
} block_scratch;

size_t pl__block_bytes(void)
{
    return pl__lines(sizeof(block_scratch));
}

const pl__lin_isa *pl__lin_pick(const pl__cpu *c)
{
#if defined(__x86_64__)
    static const pl__lin_isa avx2 = {&pl__c16_avx2, &pl__d8_avx2}, avx512 = {&pl__c16_avx512, &pl__d8_avx512},
                             vnni = {&pl__c16_avx512, &pl__d8_vnni};
    if (c->isa == PL__ISA_AVX512)
        return c->extra & PL__EXTRA_VNNI ? &vnni : &avx512;
    if (c->isa == PL__ISA_AVX2)
        return &avx2;
#elif defined(__aarch64__)
    static const pl__lin_isa neon = {&pl__c16_neon, &pl__d8_neon};
    if (c->isa == PL__ISA_NEON)
        return &neon;
#endif
    static const pl__lin_isa scalar = {&pl__c16_scalar, &pl__d8_scalar};
    (void)c;
    return &scalar;
}

/* The largest scale byte of a block of FP8 outputs; 0 for other formats. */
static int top_scale(const pl_mat *w, int o0)
{
    if (w->format != PL_FMT_FP8)
        return 0;
    size_t blocks = ((size_t)w->in + 31) / 32;
    const unsigned char *scale = w->scale + (size_t)(o0 / 32) * blocks;
    unsigned char top = 0;
    for (size_t i = 0; i < blocks; i++)
        top = scale[i] > top ? scale[i] : top;
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

/* Bytes of the weights `n` inputs from `from` of a row of w take, as whole or part lines of what follows them. */
static size_t weight_bytes(const pl_mat *w, int n)
{
    size_t bytes = (size_t)n;
    return w->format == PL_FMT_FP4    ? bytes / 2
           : w->format == PL_FMT_FP8  ? bytes
           : w->format == PL_FMT_BF16 ? 2 * bytes
                                      : 4 * bytes;
}

/* Walk outputs o0 + from .. o0 + to - 1 panel by panel. A panel takes a piece of every output: that order of reading
 * is as slow as memory gets, so what follows these outputs in memory is meanwhile asked for in one run, into the
 * second cache. */
static void panels_c16(const pl__lin_isa *isa, block_scratch *s, const pl_mat *w, int o0, int from, int to,
                       const pl__x *x, const int32_t *rows, int first, int n)
{
    int f = pl__lin_index(w->format);
    const unsigned char *next = w->data + (size_t)(o0 + to) * weight_bytes(w, w->in);
    for (int k = 0; k < w->in; k += PL__PANEL) {
        int len = w->in - k < PL__PANEL ? (w->in - k + PL__LANES - 1) & -PL__LANES : PL__PANEL;
        for (int o = from; o < to; o += PL__TILE) {
            for (int j = 0; j < PL__TILE; j++) {
                isa->c16->widen[f](&s->tile.c16[0][0][0], j, w, o0 + (o + j < to ? o + j : o), k, len);
                pl__ahead_bytes(next, weight_bytes(w, len));
                next += weight_bytes(w, len);
            }
            for (int r = 0, h; r < n; r += h) {
                const float *xr[PL__LANES];
                h = tile_height(n, r, isa->c16->tile_rows);
                for (int i = 0; i < h; i++)
                    xr[i] = x->f + row_at(rows, first, r + i) * x->f_stride + k;
                isa->c16->tile(s->acc[r][o], xr, h, &s->tile.c16[0][0][0], len);
            }
        }
    }
}

static void panels_d8(const pl__lin_isa *isa, block_scratch *s, const pl_mat *w, int o0, int from, int to,
                      const pl__x *x, const int32_t *rows, int first, int n)
{
    int chunks = (int)pl__chunks(w->in);
    const unsigned char *next = w->data + (size_t)(o0 + to) * weight_bytes(w, w->in);
    for (int c = 0; c < chunks; c += PL__PANEL4) {
        int len = chunks - c < PL__PANEL4 ? chunks - c : PL__PANEL4;
        for (int o = from; o < to; o += PL__TILE) {
            for (int j = 0; j < PL__TILE; j++) {
                isa->d8->widen(&s->tile.d8[0][0], j, w, o0 + (o + j < to ? o + j : o), c, len);
                pl__ahead_bytes(next, (size_t)len * PL__LINE);
                next += len * PL__LINE;
            }
            for (int r = 0, h; r < n; r += h) {
                const pl__xchunk *xr[PL__LANES];
                const unsigned char *lo[PL__LANES];
                h = tile_height(n, r, isa->d8->tile_rows);
                for (int i = 0; i < h; i++) {
                    size_t at = row_at(rows, first, r + i) * x->c_stride + (size_t)c;
                    xr[i] = x->c + at;
                    lo[i] = x->lo + at;
                }
                isa->d8->tile(s->acc[r][o], xr, lo, h, &s->tile.d8[0][0], len);
            }
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

static void block_many(const pl__lin_isa *isa, float (*y)[PL__OUTS], const pl_mat *w, int o0, int count, const pl__x *x,
                       const int32_t *rows, int first, int n, block_scratch *s)
{
    bool codes = w->format == PL_FMT_FP4;
    memset(s->acc, 0, (size_t)n * sizeof s->acc[0]);
    /* as many outputs at a time as leave room for the next ones in the second cache */
    int part = PL__OUTS;
    while (part > 2 * PL__TILE && (size_t)part * weight_bytes(w, w->in) > PL__PART_BYTES)
        part /= 2;
    for (int o = 0; o < count; o += part)
        (codes ? panels_d8 : panels_c16)(isa, s, w, o0, o, o + part < count ? o + part : count, x, rows, first, n);
    for (int r = 0; r < n; r++)
        for (int o = 0; o < count; o++)
            y[r][o] = (codes ? isa->d8->sum : isa->c16->sum)(s->acc[r][o]);
}

void pl__lin_block(const pl__lin_isa *isa, float (*y)[PL__OUTS], const pl_mat *w, int o0, int count, const pl__x *x,
                   const int32_t *rows, int first, int n, unsigned char *mine)
{
    int top = top_scale(w, o0);
    bool all_plain = w->wide || top > PL__FP8_TOP;
    if (!all_plain && !block_few(isa, y, w, o0, count, x, rows, first, n, top))
        block_many(isa, y, w, o0, count, x, rows, first, n, (block_scratch *)(void *)mine);
    for (int r = 0; r < n; r++) {
        size_t row = row_at(rows, first, r);
        if (!all_plain && !x->plain[row]) {
            for (int o = 0; o < count; o++)
                y[r][o] = pl__one_nan(y[r][o]);
            continue;
        }
        for (int o = 0; o < count; o++)
            y[r][o] = pl__plain_dot(w, o0 + o, x->raw + row * x->raw_stride);
    }
}

/* ---- the operations --------------------------------------------------------------------------------------------- */

typedef struct lin_job {
    pl__cpu *cpu;
    const pl__lin_isa *isa;
    const pl_mat *w;
    const pl__x *x;
    void *y;
    size_t y_stride;
    pl_out out;
    int groups;     /* row r of group g is row r * groups + g of x */
    int rows;       /* of y */
    int out_blocks; /* blocks of outputs */
    int per_task;   /* blocks of outputs a task */
    int row_blocks;
} lin_job;

static void store(const lin_job *job, int row, int o0, int count, const float *v)
{
    size_t at = (size_t)row * job->y_stride + (size_t)o0;
    if (job->out == PL_OUT_F32) {
        memcpy((float *)job->y + at, v, (size_t)count * sizeof *v);
        return;
    }
    pl_bf16 *y = (pl_bf16 *)job->y + at;
    for (int o = 0; o < count; o++)
        y[o] = pl_bf16_from_f32(v[o]);
}

static void lin_blocks(const lin_job *job, int block, int row0, int n, int thread)
{
    block_scratch *s = (block_scratch *)(void *)job->cpu->mine[thread];
    int o0 = block * PL__OUTS, end = job->w->out - o0 < PL__OUTS ? job->w->out : o0 + PL__OUTS;
    int width = job->w->out / job->groups;
    int32_t rows[PL__ROWS];
    /* a group may begin inside the block; each reads its own part of x */
    for (int o = o0, count; o < end; o += count) {
        int group = o / width, next = (group + 1) * width;
        count = (next < end ? next : end) - o;
        for (int i = 0; i < n; i++)
            rows[i] = (int32_t)((row0 + i) * job->groups + group);
        pl__lin_block(job->isa, s->y, job->w, o, count, job->x, rows, 0, n, job->cpu->mine[thread]);
        for (int i = 0; i < n; i++)
            store(job, row0 + i, o, count, s->y[i]);
    }
}

static void lin_task(void *arg, size_t task, int thread)
{
    const lin_job *job = arg;
    /* rows stay, outputs go by: a block of rows is packed x of a megabyte, which the caches keep */
    size_t spans = (size_t)((job->out_blocks + job->per_task - 1) / job->per_task);
    int rb = (int)(task / spans), ob = (int)(task % spans) * job->per_task;
    int row0 = (int)((int64_t)job->rows * rb / job->row_blocks);
    int row1 = (int)((int64_t)job->rows * (rb + 1) / job->row_blocks);
    int end = ob + job->per_task < job->out_blocks ? ob + job->per_task : job->out_blocks;
    for (; ob < end; ob++)
        lin_blocks(job, ob, row0, row1 - row0, thread);
}

static void run_rows(pl__cpu *c, lin_job *job, pl__x *x, int rows)
{
    const pl_mat *w = job->w;
    job->rows = rows;
    job->row_blocks = (rows + PL__ROWS - 1) / PL__ROWS;
    x->rows = rows * job->groups;
    pl__pack_plan(x, w->format == PL_FMT_FP4, c->shared);
    pl__pack(c, x);
    /* few rows: long runs of weights, for the sake of the prefetchers, but enough tasks to even out the threads */
    int share = job->out_blocks / (c->threads * 8);
    job->per_task = rows > 16 || share < 1 ? 1 : share < 16 ? share : 16;
    size_t tasks = (size_t)((job->out_blocks + job->per_task - 1) / job->per_task) * (size_t)job->row_blocks;
    pl__each(c, tasks, (size_t)w->in * (size_t)w->out / 8 * (size_t)rows, lin_task, job);
}

static void run(pl_kernels *k, void *y, size_t y_stride, pl_out out, const pl_bf16 *x, size_t x_stride, const pl_mat *w,
                int groups, int rows)
{
    pl__cpu *c = pl__cpu_of(k);
    pl__x packed = {.raw = x, .raw_stride = x_stride, .in = w->in};
    lin_job job = {.cpu = c,
                   .isa = pl__lin_pick(c),
                   .w = w,
                   .x = &packed,
                   .y = y,
                   .y_stride = y_stride,
                   .out = out,
                   .groups = groups,
                   .out_blocks = (w->out + PL__OUTS - 1) / PL__OUTS};
    /* as many rows at a time as their packed form finds room; pl__lin_need plans for all of them */
    int most = rows;
    while (most > 1 && pl__pack_bytes(most * groups, w->in, w->format == PL_FMT_FP4) > c->need.shared)
        most /= 2;
    for (int done = 0; done < rows; done += most) {
        int n = rows - done < most ? rows - done : most;
        run_rows(c, &job, &packed, n);
        packed.raw += (size_t)n * (size_t)groups * x_stride;
        job.y = out == PL_OUT_F32 ? (void *)((float *)job.y + (size_t)n * y_stride)
                                  : (void *)((pl_bf16 *)job.y + (size_t)n * y_stride);
    }
}

void pl__cpu_lin(pl_kernels *k, void *y, size_t y_stride, pl_out out, const pl_bf16 *x, size_t x_stride,
                 const pl_mat *w, int rows)
{
    run(k, y, y_stride, out, x, x_stride, w, 1, rows);
}

void pl__cpu_lin_groups(pl_kernels *k, pl_bf16 *y, const pl_bf16 *x, const pl_mat *w, int groups, int rows)
{
    run(k, y, (size_t)w->out, PL_OUT_BF16, x, (size_t)w->in, w, groups, rows);
}

void pl__lin_need(const pl_kernel_limits *l, int threads, pl__need *need)
{
    (void)threads;
    size_t heads = pl__times((size_t)l->heads, (size_t)l->head_dim); /* lin_groups reads all heads */
    size_t widest = (size_t)l->max_in > heads ? (size_t)l->max_in : heads;
    int in = widest < INT32_MAX ? (int)widest : INT32_MAX;
    size_t c16 = pl__pack_bytes(l->rows, in, false), d8 = pl__pack_bytes(l->rows, l->max_in, true);
    /* the groups of lin_groups are rows of their own: a flag each, and an odd line each */
    c16 = pl__plus(c16, pl__times((size_t)l->rows, pl__plus(heads / 32, heads * sizeof(float) / 64)));
    pl__need_raise(need, c16 > d8 ? c16 : d8, pl__block_bytes());
}
