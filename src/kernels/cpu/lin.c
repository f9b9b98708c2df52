/* Matrix products: cutting the work into blocks of outputs and rows. */
#include "kernels/cpu/lin.h"

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
    int span;       /* outputs of a block */
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
    job->cpu->vec->narrow((pl_bf16 *)job->y + at, v, (size_t)count);
}

static void lin_blocks(const lin_job *job, int block, int row0, int n, int thread)
{
    float *y = (float *)(void *)(job->cpu->mine[thread] + pl__block_bytes());
    int o0 = block * job->span, end = job->w->out - o0 < job->span ? job->w->out : o0 + job->span;
    int width = job->w->out / job->groups;
    int32_t rows[PL__ROWS];
    /* a group may begin inside the block; each reads its own part of x */
    for (int o = o0, count; o < end; o += count) {
        int group = o / width, next = (group + 1) * width;
        count = (next < end ? next : end) - o;
        for (int i = 0; i < n; i++)
            rows[i] = (int32_t)((row0 + i) * job->groups + group);
        pl__lin_block(job->isa, y, (size_t)job->span, job->w, o, count, job->x, rows, 0, n, job->cpu->mine[thread]);
        for (int i = 0; i < n; i++)
            store(job, row0 + i, o, count, y + i * job->span);
    }
}

static void lin_task(void *arg, size_t task, int thread)
{
    const lin_job *job = arg;
    /* rows stay, outputs go by: a block of rows is packed x of a megabyte or more, which the caches keep */
    size_t spans = (size_t)((job->out_blocks + job->per_task - 1) / job->per_task);
    int rb = (int)(task / spans), ob = (int)(task % spans) * job->per_task;
    int row0 = (int)((int64_t)job->rows * rb / job->row_blocks);
    int row1 = (int)((int64_t)job->rows * (rb + 1) / job->row_blocks);
    int end = ob + job->per_task < job->out_blocks ? ob + job->per_task : job->out_blocks;
    for (; ob < end; ob++)
        lin_blocks(job, ob, row0, row1 - row0, thread);
}

/* Outputs of a block. With many rows, every block reads all of the packed x once a panel, from beyond the second cache
 * when the inputs are wide: as many outputs as leave several blocks a thread to even them out. Fewer rows: one FP8
 * scale block. */
static int span_of(const lin_job *job, int rows)
{
    if (rows < PL__WIDE_ROWS)
        return PL__OUTS;
    if (job->cpu->threads == 1)
        return PL__SPAN;
    int64_t each = (int64_t)job->w->out * job->row_blocks / job->cpu->threads; /* outputs a thread */
    return each >= 8 * PL__SPAN ? PL__SPAN : each >= 4 * PL__OUTS ? PL__OUTS : PL__OUTS / 2;
}

static void run_rows(pl__cpu *c, lin_job *job, pl__x *x, int rows)
{
    const pl_mat *w = job->w;
    job->rows = rows;
    job->row_blocks = (rows + PL__ROWS - 1) / PL__ROWS;
    job->span = span_of(job, rows);
    job->out_blocks = (w->out + job->span - 1) / job->span;
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
                   .groups = groups};
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
    pl__need_raise(need, c16 > d8 ? c16 : d8, pl__block_bytes() + sizeof(float) * PL__ROWS * PL__SPAN);
}
