/* Attention of rows over window, selected entries or the draft block (model spec 3.3 and 4).
 *
 * A row's list is unpacked to floats once and shared by all heads. With many rows a task is a row; with few, lists and
 * heads of each row are shared out instead: first all lists are unpacked, then every task takes some heads of a row. */
#include "kernels/cpu/cpu.h"

typedef struct attention_job {
    pl__cpu *c;
    pl_bf16 *o;
    const pl_bf16 *q;
    const pl_ring *ring;
    int window;
    const pl_entries *entries; /* NULL: none */
    const pl_lists *lists;
    const pl_bf16 *block; /* the rows' own kv, or NULL */
    const float *sink;
    int heads, dim;
    float scale;
    const pl_launch *launch;
    int first, rows;            /* the batch in work */
    int head_step, list_step;   /* heads or list items a task */
    int head_tasks, list_tasks; /* tasks a row */
    int most;                   /* list items a row has room for */
} attention_job;

/* What a row sees, in list order: window positions, then selected entries or the span's own rows */
typedef struct row_view {
    int slot, from, in_window, more;
    const int32_t *selected;
    const pl_bf16 *own;
} row_view;

/* Scratch of a row: its list as floats, its queries as floats, scores, denominators */
typedef struct row_scratch {
    float *k, *q, *s, *den;
    size_t stride; /* of a head's scores */
} row_scratch;

enum { FEW_ROWS = 8 };

static int most_items(const pl_kernel_limits *l)
{
    return l->window + (l->topk > l->block ? l->topk : l->block);
}

static size_t score_stride(int most)
{
    return ((size_t)most + 15) / 16 * 16 + 16; /* off a power of two, so that heads fall into different cache sets */
}

static size_t scratch_floats(int most, int heads, int dim)
{
    size_t h = (size_t)heads, d = (size_t)dim;
    size_t list = pl__times((size_t)most, d), scores = pl__times(h, score_stride(most));
    return pl__plus(pl__plus(list, scores), pl__plus(pl__times(h, d), (h + 15) / 16 * 16));
}

static int batch_rows(int threads)
{
    return threads > FEW_ROWS ? threads : FEW_ROWS;
}

void pl__attention_need(const pl_kernel_limits *l, int threads, pl__need *need)
{
    size_t row = pl__lines(pl__times(scratch_floats(most_items(l), l->heads, l->head_dim), sizeof(float)));
    pl__need_raise(need, pl__times(row, (size_t)batch_rows(threads)), 0);
}

static row_scratch scratch_of(const attention_job *j, size_t place)
{
    size_t bytes = pl__lines(scratch_floats(j->most, j->heads, j->dim) * sizeof(float));
    row_scratch s = {.k = (float *)(void *)(j->c->shared + place * bytes), .stride = score_stride(j->most)};
    s.q = s.k + (size_t)j->most * (size_t)j->dim;
    s.s = s.q + (size_t)j->heads * (size_t)j->dim;
    s.den = s.s + (size_t)j->heads * s.stride;
    return s;
}

static row_view view_row(const attention_job *j, int row)
{
    int pos = j->launch->pos[row];
    row_view v = {.slot = j->launch->slot[row]};
    if (!j->block) {
        v.from = pos - j->window + 1 > 0 ? pos - j->window + 1 : 0;
        v.in_window = pos + 1 - v.from;
        if (j->entries) {
            v.more = j->lists->count[row];
            v.selected = j->lists->list + (size_t)row * (size_t)j->lists->stride;
        }
        return v;
    }
    const pl_span *span = j->launch->span;
    int first = 0;
    while (row >= first + span->rows)
        first += span++->rows;
    v.from = span->pos - j->window > 0 ? span->pos - j->window : 0;
    v.in_window = span->pos - v.from;
    v.more = span->rows;
    v.own = j->block + (size_t)first * (size_t)j->dim;
    return v;
}

static void unpack(const attention_job *j, const row_view *v, float *k, int from, int to)
{
    const pl__vec *vec = j->c->vec;
    size_t dim = (size_t)j->dim, bytes = pl_entry_bytes(j->dim);
    for (int i = from; i < to; i++) {
        float *y = k + (size_t)i * dim;
        int past = i - v->in_window;
        if (past < 0)
            vec->unpack_window(y, pl__ring_at(j->ring, v->slot, v->from + i), dim);
        else if (v->own)
            vec->widen(y, v->own + (size_t)past * dim, dim);
        else
            vec->unpack_entry(y, pl__entry_at(j->entries, v->slot, v->selected[past], bytes), dim);
    }
}

static void some_heads(const attention_job *j, const row_view *v, const row_scratch *s, int row, int h, int heads)
{
    const pl__vec *vec = j->c->vec;
    int n = v->in_window + v->more;
    size_t dim = (size_t)j->dim, at = ((size_t)row * (size_t)j->heads + (size_t)h) * dim;
    float *q = s->q + (size_t)h * dim, *scores = s->s + (size_t)h * s->stride;
    vec->widen(q, j->q + at, (size_t)heads * dim);
    vec->scores(scores, s->stride, q, heads, s->k, n, j->dim, j->scale);
    vec->softmax(scores, s->stride, heads, n, j->sink + h, s->den + h);
    vec->values(j->o + at, scores, s->stride, s->den + h, heads, s->k, n, j->dim);
}

static void whole_row(void *arg, size_t task, int thread)
{
    const attention_job *j = arg;
    row_view v = view_row(j, (int)task);
    row_scratch s = scratch_of(j, (size_t)thread);
    unpack(j, &v, s.k, 0, v.in_window + v.more);
    some_heads(j, &v, &s, (int)task, 0, j->heads);
}

static void list_task(void *arg, size_t task, int thread)
{
    (void)thread;
    const attention_job *j = arg;
    size_t place = task / (size_t)j->list_tasks;
    row_view v = view_row(j, j->first + (int)place);
    int n = v.in_window + v.more, from = (int)(task % (size_t)j->list_tasks) * j->list_step;
    unpack(j, &v, scratch_of(j, place).k, from, n - from < j->list_step ? n : from + j->list_step);
}

static void heads_task(void *arg, size_t task, int thread)
{
    (void)thread;
    const attention_job *j = arg;
    size_t place = task / (size_t)j->head_tasks;
    int row = j->first + (int)place, h = (int)(task % (size_t)j->head_tasks) * j->head_step;
    row_view v = view_row(j, row);
    row_scratch s = scratch_of(j, place);
    some_heads(j, &v, &s, row, h, j->heads - h < j->head_step ? j->heads - h : j->head_step);
}

static void attend(attention_job *j)
{
    pl__cpu *c = j->c;
    int rows = j->launch->rows, batch = batch_rows(c->threads);
    j->most = most_items(&c->limits);
    size_t row_work = (size_t)j->heads * (size_t)j->dim * 16;
    if (rows >= 2 * c->threads) {
        pl__each(c, (size_t)rows, (size_t)rows * row_work, whole_row, j);
        return;
    }
    j->list_step = 32;
    j->list_tasks = (j->most + j->list_step - 1) / j->list_step;
    j->head_step = (j->heads * rows / c->threads + 3) / 4 * 4;
    j->head_step = j->head_step < 4 ? 4 : j->head_step;
    j->head_tasks = (j->heads + j->head_step - 1) / j->head_step;
    for (j->first = 0; j->first < rows; j->first += batch) {
        j->rows = rows - j->first < batch ? rows - j->first : batch;
        size_t n = (size_t)j->rows;
        pl__each(c, n * (size_t)j->list_tasks, n * row_work, list_task, j);
        pl__each(c, n * (size_t)j->head_tasks, n * row_work, heads_task, j);
    }
}

void pl__cpu_attention(pl_kernels *k, pl_bf16 *o, const pl_bf16 *q, const pl_ring *ring, int window,
                       const pl_entries *entries, const pl_lists *lists, const float *sink, int heads, int dim,
                       float scale, const pl_launch *launch)
{
    attention_job j = {.c = pl__cpu_of(k),
                       .o = o,
                       .q = q,
                       .ring = ring,
                       .window = window,
                       .entries = entries,
                       .lists = lists,
                       .sink = sink,
                       .heads = heads,
                       .dim = dim,
                       .scale = scale,
                       .launch = launch};
    attend(&j);
}

void pl__cpu_block_attention(pl_kernels *k, pl_bf16 *o, const pl_bf16 *q, const pl_ring *ring, int window,
                             const pl_bf16 *kv, const float *sink, int heads, int dim, float scale,
                             const pl_launch *launch)
{
    attention_job j = {.c = pl__cpu_of(k),
                       .o = o,
                       .q = q,
                       .ring = ring,
                       .window = window,
                       .block = kv,
                       .sink = sink,
                       .heads = heads,
                       .dim = dim,
                       .scale = scale,
                       .launch = launch};
    attend(&j);
}
