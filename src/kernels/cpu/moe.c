/* The mixture of experts, model spec 3.7. Rows are sorted by expert, so that each expert's weights are read once a
 * launch. Three loops on the pool: w1, w3 and the gated unit by (expert, block of outputs); rounding and packing of
 * what they made; w2 by block of outputs, where a block adds its experts in ascending order and the shared one last. */
#include "base/rowmath.h"
#include "kernels/cpu/lin.h"

/* Rows of one expert: pairs first .. first + n - 1 of the sorted list. */
typedef struct expert_rows {
    const pl_mat *w1, *w2, *w3;
    int first, n;
    bool shared;
} expert_rows;

typedef struct moe_job {
    pl__cpu *cpu;
    const pl__lin_isa *isa;
    const pl_rowmath *math;
    pl_bf16 *y;
    float limit;
    int rows, dim, inter;
    int used;            /* experts with rows, the shared one (the last) counted */
    int pairs;           /* (row, expert) pairs, without the shared expert's */
    expert_rows *expert; /* [used], ascending id, the shared one last */
    int32_t *row;        /* [pairs + rows] row of x */
    float *weight;       /* [pairs + rows] */
    pl__x x, x_shared;   /* rows of x, for the routed and for the shared experts */
    pl_bf16 *t;          /* [pairs + rows][inter] */
    pl__x t_x, t_shared; /* packed: the first `pairs` rows, and the last `rows` */
} moe_job;

/* What a thread keeps, behind its block scratch. */
typedef struct moe_scratch {
    float up[PL__ROWS][PL__OUTS], gate[PL__ROWS][PL__OUTS];
} moe_scratch;

static bool is_codes(const pl_mat *w)
{
    return w->format == PL_FMT_FP4;
}

/* t = bf(weight * (silu(min(a, limit)) * clamp(b))), a and b rounded to bf16 first; the shared expert has no weight. */
static void gated_unit(const moe_job *job, pl_bf16 *t, float *a, float *b, int count, const float *weight)
{
    float limit = job->limit;
    for (int i = 0; i < count; i++) {
        float v = pl_bf16_to_f32(pl_bf16_from_f32(a[i])), u = pl_bf16_to_f32(pl_bf16_from_f32(b[i]));
        a[i] = v > limit ? limit : v;
        b[i] = u > limit ? limit : u < -limit ? -limit : u;
    }
    job->math->map(PL_ROW_SILU, a, a, (size_t)count);
    for (int i = 0; i < count; i++)
        t[i] = pl_bf16_from_f32(weight ? *weight * (a[i] * b[i]) : a[i] * b[i]);
}

static void up_task(void *arg, size_t task, int thread)
{
    const moe_job *job = arg;
    int blocks = (job->inter + PL__OUTS - 1) / PL__OUTS;
    const expert_rows *e = &job->expert[task / (size_t)blocks];
    int o0 = (int)(task % (size_t)blocks) * PL__OUTS, count = job->inter - o0 < PL__OUTS ? job->inter - o0 : PL__OUTS;
    unsigned char *mine = job->cpu->mine[thread];
    moe_scratch *s = (moe_scratch *)(void *)(mine + pl__block_bytes());
    const pl__x *x = e->shared ? &job->x_shared : &job->x;
    for (int from = 0; from < e->n; from += PL__ROWS) {
        int n = e->n - from < PL__ROWS ? e->n - from : PL__ROWS, pair = e->first + from;
        pl__lin_block(job->isa, s->gate[0], PL__OUTS, e->w1, o0, count, x, job->row + pair, 0, n, mine);
        pl__lin_block(job->isa, s->up[0], PL__OUTS, e->w3, o0, count, x, job->row + pair, 0, n, mine);
        for (int i = 0; i < n; i++)
            gated_unit(job, job->t + (size_t)(pair + i) * (size_t)job->inter + o0, s->gate[i], s->up[i], count,
                       e->shared ? NULL : &job->weight[pair + i]);
    }
}

static void round_task(void *arg, size_t pair, int thread)
{
    const moe_job *job = arg;
    pl_bf16 *t = job->t + pair * (size_t)job->inter;
    (void)thread;
    job->cpu->vec->round_q8(t, NULL, NULL, t, (size_t)job->inter);
    if (pair < (size_t)job->pairs)
        pl__pack_row(job->isa, &job->t_x, pair);
    else
        pl__pack_row(job->isa, &job->t_shared, pair - (size_t)job->pairs);
}

static void down_task(void *arg, size_t task, int thread)
{
    const moe_job *job = arg;
    int o0 = (int)task * PL__OUTS, count = job->dim - o0 < PL__OUTS ? job->dim - o0 : PL__OUTS;
    unsigned char *mine = job->cpu->mine[thread];
    moe_scratch *s = (moe_scratch *)(void *)(mine + pl__block_bytes());
    float(*acc)[PL__OUTS] = (float(*)[PL__OUTS])(void *)((unsigned char *)s + pl__lines(sizeof *s));
    memset(acc, 0, (size_t)job->rows * sizeof *acc);
    for (int u = 0; u < job->used; u++) {
        const expert_rows *e = &job->expert[u];
        const pl__x *t = e->shared ? &job->t_shared : &job->t_x;
        for (int from = 0; from < e->n; from += PL__ROWS) {
            int n = e->n - from < PL__ROWS ? e->n - from : PL__ROWS, pair = e->first + from;
            pl__lin_block(job->isa, s->up[0], PL__OUTS, e->w2, o0, count, t, NULL, e->shared ? pair - job->pairs : pair,
                          n, mine);
            for (int i = 0; i < n; i++)
                for (int o = 0; o < count; o++)
                    acc[job->row[pair + i]][o] += pl_bf16_to_f32(pl_bf16_from_f32(s->up[i][o]));
        }
    }
    for (int r = 0; r < job->rows; r++)
        for (int o = 0; o < count; o++)
            job->y[(size_t)r * (size_t)job->dim + (size_t)(o0 + o)] = pl_bf16_from_f32(acc[r][o]);
}

/* Sort the pairs by expert, rows ascending within one, and list the experts that have any. start[experts + 1]. */
static void sort_pairs(moe_job *job, int32_t *start, const int32_t *id, const float *weight, const pl_experts *e)
{
    int pairs = job->rows * e->per_token;
    memset(start, 0, ((size_t)e->experts + 1) * sizeof *start);
    for (int i = 0; i < pairs; i++)
        start[id[i] + 1]++;
    for (int i = 0; i < e->experts; i++) {
        if (start[i + 1])
            job->expert[job->used++] = (expert_rows){e->w1 + i, e->w2 + i, e->w3 + i, start[i], start[i + 1], false};
        start[i + 1] += start[i];
    }
    for (int i = 0; i < pairs; i++) {
        int32_t at = start[id[i]]++;
        job->row[at] = i / e->per_token;
        job->weight[at] = weight[i];
    }
    job->pairs = pairs;
    job->expert[job->used++] = (expert_rows){&e->shared_w1, &e->shared_w2, &e->shared_w3, pairs, job->rows, true};
    for (int r = 0; r < job->rows; r++) {
        job->row[pairs + r] = r;
        job->weight[pairs + r] = 1;
    }
}

static void *take(unsigned char **at, size_t bytes)
{
    void *p = *at;
    *at += pl__lines(bytes);
    return p;
}

void pl__cpu_moe(pl_kernels *k, pl_bf16 *y, const pl_bf16 *x, const int32_t *id, const float *weight,
                 const pl_experts *e, int rows, int dim)
{
    pl__cpu *c = pl__cpu_of(k);
    unsigned char *at = c->shared;
    size_t pairs = (size_t)rows * (size_t)e->per_token, all = pairs + (size_t)rows;
    bool codes = is_codes(e->w1), shared_codes = is_codes(&e->shared_w1);
    bool t_codes = is_codes(e->w2), t_shared_codes = is_codes(&e->shared_w2);
    if (rows <= 0)
        return;
    moe_job job = {.cpu = c, .isa = pl__lin_pick(c), .math = pl_rowmath_for(pl__isa_name(c->isa)), .y = y};
    job.limit = e->limit;
    job.rows = rows;
    job.dim = dim;
    job.inter = e->inter;
    job.expert = take(&at, sizeof *job.expert * ((size_t)e->experts + 1));
    int32_t *start = take(&at, sizeof *start * ((size_t)e->experts + 1));
    job.row = take(&at, sizeof *job.row * all);
    job.weight = take(&at, sizeof *job.weight * all);
    sort_pairs(&job, start, id, weight, e);
    job.t = take(&at, sizeof *job.t * all * (size_t)e->inter);
    job.x = (pl__x){.raw = x, .raw_stride = (size_t)dim, .in = dim, .rows = rows};
    job.x_shared = job.x;
    job.t_x = (pl__x){.raw = job.t, .raw_stride = (size_t)e->inter, .in = e->inter, .rows = (int)pairs};
    job.t_shared = job.t_x;
    job.t_shared.raw += pairs * (size_t)e->inter;
    job.t_shared.rows = rows;
    pl__pack_plan(&job.x, codes, take(&at, pl__pack_bytes(rows, dim, codes)));
    pl__pack_plan(&job.t_x, t_codes, take(&at, pl__pack_bytes((int)pairs, e->inter, t_codes)));
    pl__pack_plan(&job.t_shared, t_shared_codes, take(&at, pl__pack_bytes(rows, e->inter, t_shared_codes)));
    pl__pack(c, &job.x);
    if (shared_codes != codes) {
        pl__pack_plan(&job.x_shared, shared_codes, take(&at, pl__pack_bytes(rows, dim, shared_codes)));
        pl__pack(c, &job.x_shared);
    } else {
        job.x_shared = job.x;
    }
    size_t macs = all * (size_t)dim * (size_t)e->inter;
    pl__each(c, (size_t)job.used * (((size_t)e->inter + PL__OUTS - 1) / PL__OUTS), macs / 4, up_task, &job);
    pl__each(c, all, all * (size_t)e->inter, round_task, &job);
    pl__each(c, ((size_t)dim + PL__OUTS - 1) / PL__OUTS, macs / 8, down_task, &job);
}

/* The greater of both packed forms: the formats are the checkpoint's. */
static size_t either(int rows, int in)
{
    size_t c16 = pl__pack_bytes(rows, in, false), d8 = pl__pack_bytes(rows, in, true);
    return pl__lines(c16 > d8 ? c16 : d8);
}

void pl__moe_need(const pl_kernel_limits *l, int threads, pl__need *need)
{
    (void)threads;
    size_t rows = (size_t)l->rows, pairs = pl__times(rows, (size_t)l->per_token), all = pl__plus(pairs, rows);
    size_t experts = (size_t)l->experts + 1;
    if (all > INT32_MAX) {
        pl__need_raise(need, SIZE_MAX, SIZE_MAX);
        return;
    }
    size_t shared = pl__plus(pl__lines(sizeof(expert_rows) * experts), pl__lines(sizeof(int32_t) * experts));
    shared = pl__plus(shared, 2 * pl__lines(sizeof(float) * all));
    shared = pl__plus(shared, pl__lines(pl__times(pl__times(all, (size_t)l->inter), sizeof(pl_bf16))));
    shared = pl__plus(shared, pl__times(2, either(l->rows, l->hidden)));
    shared = pl__plus(shared, pl__plus(either((int)pairs, l->inter), either(l->rows, l->inter)));
    size_t thread = pl__plus(pl__block_bytes(), pl__lines(sizeof(moe_scratch)));
    pl__need_raise(need, shared, pl__plus(thread, pl__times(rows, sizeof(float) * PL__OUTS)));
}
