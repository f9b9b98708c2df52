/* paceline bench kernels: the products at the release's shapes against what this machine can read and multiply.
 *
 * Every figure is an arm. The arms run in order, then in reverse (A B C C B A), so that a machine that warms up or
 * slows down does so for all of them alike; a figure is its fastest launch, with the median beside it. Weights are
 * random and rotate through a region larger than any cache, in 4 KB pages as a mapped checkpoint has them. The read
 * rate is that of the fastest of several loops (streams, asking ahead), found first and then repeated. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/num.h"
#include "base/threads.h"
#include "cli/cmd.h"
#include "kernels/kernels.h"
#include "kernels/peak.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    MAX_ROWS = 4096,
    MAX_ROW_COUNTS = 8,
    MAX_ARMS = 512,
    MAX_SAMPLES = 4096,
    MANY = 16,            /* from here on multiplications bound a product, not reads */
    MANY_OUT = 8192,      /* then a part of a tall matrix tells as much */
    READ_PIECE = 1 << 20, /* bytes of a task that reads */
    READ_TRIES = 4,       /* launches of each loop before the fastest is taken */
    ENGRAM_DIM = 256,
    ENGRAM_COLS = 24,
    OUT_CAP = 1 << 20
};
#define ROTATION ((size_t)1 << 30) /* bytes that pass before a matrix comes again: some caches hold 300 MB */

typedef enum arm_kind { ARM_READ, ARM_FMA, ARM_LIN, ARM_ENGRAM } arm_kind;

typedef struct shape {
    const char *what;
    pl_format format;
    int out, in;
} shape;

static const shape shapes[] = {
    {"experts w1, w3", PL_FMT_FP4, 2304, 5120}, {"experts w2", PL_FMT_FP4, 5120, 2304},
    {"peer's shape", PL_FMT_FP4, 4096, 14336},  {"attention wq_b", PL_FMT_FP8, 32768, 1280},
    {"attention wo_b", PL_FMT_FP8, 5120, 8192}, {"attention wq_a", PL_FMT_FP8, 1280, 5120},
    {"peer's shape", PL_FMT_FP8, 4096, 14336},  {"head", PL_FMT_BF16, 129280, 5120},
    {"peer's shape", PL_FMT_BF16, 4096, 14336},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };
static const char *const format_names[] = {"BF16", "F32", "FP8", "FP4"};

typedef struct arm {
    arm_kind kind;
    shape shape;
    int rows;
    int crew;     /* 0: one thread, 1: all */
    double bytes; /* of weights a launch reads */
    double flops;
    double best; /* seconds a launch */
    int way;     /* of ARM_READ: the fastest loop so far */
    int samples;
    float *sample; /* [MAX_SAMPLES] */
} arm;

typedef struct bench {
    int threads, crews; /* crews: 1 when one thread is all there are */
    int row_count, rows[MAX_ROW_COUNTS], most_rows;
    double seconds;
    const char *isa; /* as measured */
    pl_pool *pool[2];
    pl_kernels k[2];
    unsigned char *region, *scales;
    size_t region_bytes, scale_bytes;
    pl_bf16 *x, *rounded;
    float *y;
    size_t at; /* where the next matrix starts in the region */
    uint64_t state, sink;
    arm *arms;
    int count;
} bench;

static uint64_t next_random(bench *b)
{
    uint64_t z = b->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* ---- what an arm runs
 * ---------------------------------------------------------------------------------------------- */

static size_t mat_bytes(const shape *s)
{
    size_t n = (size_t)s->out * (size_t)s->in;
    return s->format == PL_FMT_FP4 ? n / 2 : s->format == PL_FMT_FP8 ? n : n * 2;
}

static size_t mat_scales(const shape *s)
{
    size_t blocks = (size_t)(s->in / 32);
    return s->format == PL_FMT_FP4   ? (size_t)s->out * blocks
           : s->format == PL_FMT_FP8 ? (size_t)((s->out + 31) / 32) * blocks
                                     : 0;
}

/* The next matrix of the rotation. */
static pl_mat next_mat(bench *b, const shape *s)
{
    size_t bytes = mat_bytes(s), scales = mat_scales(s), span = bytes > ROTATION ? bytes : ROTATION;
    if (span > b->region_bytes)
        span = b->region_bytes;
    if (b->at + bytes > span)
        b->at = 0;
    pl_mat w = {.format = s->format, .out = s->out, .in = s->in, .data = b->region + b->at};
    if (scales)
        w.scale = b->scales + (b->at / 8 & ~(size_t)63) % (b->scale_bytes - scales);
    b->at += (bytes + 4095) & ~(size_t)4095;
    return w;
}

typedef struct ceiling_job {
    bench *b;
    size_t from;
    int way;
    uint64_t sum[1024];
    float sink[1024];
} ceiling_job;

static void read_task(void *arg, size_t task, int thread)
{
    ceiling_job *job = arg;
    const unsigned char *from = job->b->region + job->from + task * READ_PIECE;
    job->sum[thread & 1023] ^= pl_peak_read(job->b->isa, job->way, from, READ_PIECE);
}

static void fma_task(void *arg, size_t task, int thread)
{
    ceiling_job *job = arg;
    (void)task;
    (void)pl_peak_fma(job->b->isa, 16, &job->sink[thread & 1023]);
}

static void run_ceiling(bench *b, arm *a, ceiling_job *job)
{
    pl_pool *pool = b->pool[a->crew];
    size_t tasks = (size_t)pl_pool_threads(pool) * 16;
    if (a->kind == ARM_FMA) {
        a->flops = (double)tasks * pl_peak_fma(b->isa, 16, &job->sink[0]);
        int64_t start = pl_now_ns();
        pl_pool_run(pool, tasks, fma_task, job);
        a->best = (double)(pl_now_ns() - start) * 1e-9;
        return;
    }
    size_t pieces = (size_t)64 << 20 >> 20;
    if (b->at + pieces * READ_PIECE > b->region_bytes)
        b->at = 0;
    job->from = b->at;
    b->at += pieces * READ_PIECE;
    a->bytes = (double)(pieces * READ_PIECE);
    int64_t start = pl_now_ns();
    pl_pool_run(pool, pieces, read_task, job);
    a->best = (double)(pl_now_ns() - start) * 1e-9;
    b->sink += job->sum[0];
}

static double run_lin(bench *b, const arm *a)
{
    pl_kernels *k = &b->k[a->crew];
    pl_mat w = next_mat(b, &a->shape);
    const pl_bf16 *x = a->shape.format == PL_FMT_BF16 ? b->x : b->rounded;
    int64_t start = pl_now_ns();
    k->lin(k, b->y, (size_t)w.out, PL_OUT_BF16, x, (size_t)w.in, &w, a->rows);
    return (double)(pl_now_ns() - start) * 1e-9;
}

/* Rows of an n-gram table by random ids, as a launch of `rows` tokens gathers them. */
static double run_engram(bench *b, const arm *a)
{
    pl_kernels *k = &b->k[a->crew];
    int64_t id[ENGRAM_COLS * MAX_ROWS];
    size_t table = b->region_bytes / ENGRAM_DIM;
    if (table > b->scale_bytes / (ENGRAM_DIM / 32))
        table = b->scale_bytes / (ENGRAM_DIM / 32);
    for (int i = 0; i < ENGRAM_COLS * a->rows; i++)
        id[i] = (int64_t)(next_random(b) % table);
    int64_t start = pl_now_ns();
    k->engram_rows(k, (pl_bf16 *)(void *)b->y, b->region, b->scales, ENGRAM_DIM, id, ENGRAM_COLS, a->rows);
    return (double)(pl_now_ns() - start) * 1e-9;
}

static void run_arm(bench *b, arm *a)
{
    static ceiling_job job;
    int64_t stop = pl_now_ns() + (int64_t)(b->seconds * 0.5e9);
    job.b = b;
    double best = a->samples ? a->best : 1e30;
    int least = a->kind == ARM_READ ? READ_TRIES * PL_PEAK_READS : 3;
    for (int n = 0; n < least || pl_now_ns() < stop; n++) {
        job.way = n < least ? n % PL_PEAK_READS : a->way;
        if (a->kind == ARM_READ || a->kind == ARM_FMA)
            run_ceiling(b, a, &job);
        else
            a->best = a->kind == ARM_LIN ? run_lin(b, a) : run_engram(b, a);
        if (a->best < best) {
            best = a->best;
            a->way = job.way;
        }
        if (a->samples < MAX_SAMPLES)
            a->sample[a->samples++] = (float)a->best;
    }
    a->best = best;
}

/* ---- the list of arms
 * ---------------------------------------------------------------------------------------------- */

static void add_arm(bench *b, arm a)
{
    for (a.crew = 0; a.crew < b->crews; a.crew++)
        if (b->count < MAX_ARMS)
            b->arms[b->count++] = a;
}

static void add_products(bench *b, pl_format format)
{
    for (int s = 0; s < SHAPES; s++)
        for (int r = 0; r < b->row_count && shapes[s].format == format; r++) {
            arm a = {.kind = ARM_LIN, .shape = shapes[s], .rows = b->rows[r]};
            if (a.rows >= MANY && a.shape.out > MANY_OUT)
                a.shape.out = MANY_OUT;
            a.bytes = (double)(mat_bytes(&a.shape) + mat_scales(&a.shape));
            a.flops = 2.0 * a.rows * a.shape.out * a.shape.in;
            add_arm(b, a);
        }
}

static void add_ceilings(bench *b)
{
    add_arm(b, (arm){.kind = ARM_READ, .shape = {.what = "reading"}});
    add_arm(b, (arm){.kind = ARM_FMA, .shape = {.what = "fused multiply-add"}});
}

static void add_engram(bench *b)
{
    for (int r = 0; r < b->row_count; r++)
        if (b->rows[r] < MANY) {
            arm a = {
                .kind = ARM_ENGRAM, .shape = {"Engram rows", PL_FMT_FP8, ENGRAM_COLS, ENGRAM_DIM}, .rows = b->rows[r]};
            a.bytes = (double)a.rows * ENGRAM_COLS * (ENGRAM_DIM + ENGRAM_DIM / 32);
            add_arm(b, a);
        }
}

/* ---- memory
 * -------------------------------------------------------------------------------------------------------- */

/* Small pages: large ones would flatter reads that in a mapped file have none. */
static unsigned char *map_region(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    (void)madvise(p, bytes, MADV_NOHUGEPAGE);
    return p;
}

/* The z at which the normal distribution reaches p. */
static double normal_quantile(double p)
{
    double lo = -6, hi = 6;
    while (hi - lo > 1e-6) {
        double z = (lo + hi) / 2;
        *(0.5 * erfc(-z * sqrt(0.5)) < p ? &lo : &hi) = z;
    }
    return lo;
}

/* The code of the nearest value; value of code c is value(c), ascending in c below `codes`. */
static unsigned nearest_code(double v, double (*value)(unsigned), unsigned codes)
{
    unsigned best = 0;
    for (unsigned c = 1; c < codes; c++)
        if (fabs(value(c) - fabs(v)) < fabs(value(best) - fabs(v)))
            best = c;
    return best | (v < 0 ? (codes < 16 ? 8 : 128) : 0);
}

static double e4m3(unsigned c)
{
    return c < 8 ? (double)c / 512 : ldexp(1 + (double)(c & 7) / 8, (int)(c >> 3) - 7);
}

static double e2m1(unsigned c)
{
    return c < 2 ? (double)c / 2 : ldexp(1 + (double)(c & 1) / 2, (int)(c >> 1) - 1);
}

/* Normally distributed weights as a block of a checkpoint holds them, scaled so that its largest just fits: uniform
 * codes would be full of subnormals, which trained weights hardly have. */
static void fill_region(bench *b, pl_format format)
{
    enum { STEPS = 4096 };
    static unsigned char code[STEPS];
    static pl_bf16 word[STEPS];
    for (int i = 0; i < STEPS; i++) {
        double z = normal_quantile((i + 0.5) / STEPS);
        word[i] = pl_bf16_from_f32((float)(z * 0.02));
        code[i] =
            (unsigned char)(format == PL_FMT_FP4 ? nearest_code(z * 2, e2m1, 8) : nearest_code(z * 130, e4m3, 127));
    }
    for (size_t i = 0; i + 8 <= b->region_bytes; i += 8) {
        uint64_t r = next_random(b), s = next_random(b);
        for (size_t j = 0; j < 8; j += 2) {
            unsigned first = (unsigned)(r >> j * 8 & (STEPS - 1)), second = (unsigned)(s >> j * 8 & (STEPS - 1));
            unsigned third = first * 7 % STEPS, fourth = second * 7 % STEPS; /* any order of the same values */
            unsigned char *p = b->region + i + j;
            if (format == PL_FMT_BF16)
                memcpy(p, &word[first], 2);
            else if (format == PL_FMT_FP8)
                p[0] = code[first], p[1] = code[second];
            else
                p[0] = (unsigned char)(code[first] | code[third] << 4),
                p[1] = (unsigned char)(code[second] | code[fourth] << 4);
        }
    }
}

static bool make_inputs(bench *b)
{
    size_t widest = 14336, rows = (size_t)b->most_rows, tallest = 129280;
    size_t outs = rows < MANY ? tallest * rows : (rows * MANY_OUT > tallest * MANY ? rows * MANY_OUT : tallest * MANY);
    size_t engram = rows * ENGRAM_COLS * ENGRAM_DIM;
    b->x = malloc(rows * widest * sizeof *b->x);
    b->rounded = malloc(rows * widest * sizeof *b->rounded);
    b->y = malloc((outs > engram ? outs : engram) * sizeof *b->y);
    if (!b->x || !b->rounded || !b->y)
        return false;
    for (size_t i = 0; i < rows * widest; i++) {
        float sum = 0; /* a sum of twelve: nearly gaussian; some values much larger, as activations have them */
        for (int j = 0; j < 4; j++) {
            uint64_t v = next_random(b);
            sum += (float)(v & 0xffff) + (float)(v >> 16 & 0xffff) + (float)(v >> 32 & 0xffff) - 1.5f * 65536;
        }
        b->x[i] = pl_bf16_from_f32(sum * 0x1p-16f * (next_random(b) % 64 ? 1.0f : 12.0f));
    }
    b->k[0].quant8(&b->k[0], b->rounded, b->x, (int)rows, (int)widest);
    return true;
}

static pl_status open_bench(bench *b, const char *isa, pl_error *err)
{
    pl_kernel_limits limits = {.rows = b->most_rows,
                               .slots = 1,
                               .hidden = 5120,
                               .streams = 4,
                               .heads = 1,
                               .head_dim = 512,
                               .rope_dim = 64,
                               .max_in = 14336,
                               .max_out = 129280,
                               .per_token = 1,
                               .experts = 1,
                               .inter = 32,
                               .window = 16,
                               .topk = 16,
                               .index_heads = 1,
                               .index_dim = 32,
                               .context = 16,
                               .block = 1};
    for (int c = 0; c < b->crews; c++) {
        PL_TRY(pl_pool_open(&b->pool[c], c ? b->threads : 1, err));
        PL_TRY(pl_cpu_kernels(&b->k[c], &limits, b->pool[c], isa, err));
    }
    b->isa = strrchr(b->k[0].name, ' ') + 1;
    b->region_bytes = (size_t)129280 * 5120 * 2 + 4096;
    b->region_bytes = (b->region_bytes + READ_PIECE - 1) & ~(size_t)(READ_PIECE - 1);
    b->scale_bytes = (size_t)64 << 20;
    b->region = map_region(b->region_bytes);
    b->scales = malloc(b->scale_bytes);
    b->arms = calloc(MAX_ARMS, sizeof *b->arms);
    if (!b->region || !b->scales || !b->arms || !make_inputs(b))
        return pl_fail(err, PL_ENOMEM, "not enough memory: %zu MB of random weights and the rows for them are wanted",
                       b->region_bytes >> 20);
    for (size_t i = 0; i < b->scale_bytes; i++)
        b->scales[i] = (unsigned char)(112 + next_random(b) % 6);
    return PL_OK;
}

static void close_bench(bench *b)
{
    for (int c = 0; c < 2; c++) {
        if (b->k[c].close)
            b->k[c].close(&b->k[c]);
        pl_pool_close(b->pool[c]);
    }
    if (b->region)
        munmap(b->region, b->region_bytes);
    for (int i = 0; b->arms && i < b->count; i++)
        free(b->arms[i].sample);
    free(b->arms);
    free(b->scales);
    free(b->x);
    free(b->rounded);
    free(b->y);
}

/* ---- running and telling
 * ------------------------------------------------------------------------------------------- */

/* The arms from `from` on, forth and back. */
static pl_status run_arms(bench *b, int from, const char *what, pl_error *err)
{
    int n = b->count - from;
    for (int i = from; i < b->count; i++)
        if (!(b->arms[i].sample = malloc(MAX_SAMPLES * sizeof(float))))
            return pl_fail(err, PL_ENOMEM, "no memory for the samples");
    for (int i = 0; i < 2 * n; i++) {
        arm *a = &b->arms[from + (i < n ? i : 2 * n - 1 - i)];
        fprintf(stderr, "\r%s: %d of %d  %-20s %4d rows  ", what, i + 1, 2 * n, a->shape.what, a->rows);
        run_arm(b, a);
    }
    fprintf(stderr, "\r%-70s\r", "");
    return PL_OK;
}

static int by_value(const void *p, const void *q)
{
    float a = *(const float *)p, b = *(const float *)q;
    return (a > b) - (a < b);
}

static double median(arm *a)
{
    qsort(a->sample, (size_t)a->samples, sizeof *a->sample, by_value);
    return (double)a->sample[a->samples / 2];
}

/* The ceiling of this kind for this crew, a second: the best that any of the groups of arms saw. */
static double ceiling(const bench *b, arm_kind kind, int crew)
{
    double most = 0;
    for (int i = 0; i < b->count; i++) {
        const arm *a = &b->arms[i];
        double rate = a->best > 0 ? (kind == ARM_READ ? a->bytes : a->flops) / a->best : 0;
        if (a->kind == kind && a->crew == crew && rate > most)
            most = rate;
    }
    return most;
}

static pl_status tell_arm(pl_buf *out, const bench *b, arm *a, bool json, pl_error *err)
{
    double read = ceiling(b, ARM_READ, a->crew), fma = ceiling(b, ARM_FMA, a->crew);
    double gbs = a->bytes / a->best, gflops = a->flops / a->best, mid = median(a);
    int threads = a->crew ? b->threads : 1;
    if (json)
        return pl_buf_addf(out, err,
                           "{\"what\": \"%s\", \"format\": \"%s\", \"out\": %d, \"in\": %d, \"rows\": %d, "
                           "\"threads\": %d, \"best_ms\": %.6g, \"median_ms\": %.6g, \"launches\": %d, \"gb_s\": %.5g, "
                           "\"of_read\": %.4f, \"gflop_s\": %.5g, \"of_fma\": %.4f, \"loop\": \"%s\"}",
                           a->shape.what,
                           a->kind == ARM_READ || a->kind == ARM_FMA ? "" : format_names[a->shape.format], a->shape.out,
                           a->shape.in, a->rows, threads, a->best * 1e3, mid * 1e3, a->samples, gbs * 1e-9, gbs / read,
                           gflops * 1e-9, gflops / fma, a->kind == ARM_READ ? pl_peak_read_name(a->way) : "");
    if (a->kind == ARM_READ)
        return pl_buf_addf(out, err, "%-20s %31d %10.3f %10.3f %8.2f GB/s: %s\n", "reading weights", threads,
                           a->best * 1e3, mid * 1e3, gbs * 1e-9, pl_peak_read_name(a->way));
    if (a->kind == ARM_FMA)
        return pl_buf_addf(out, err, "%-20s %31d %10.3f %10.3f %24.1f GFLOP/s\n", "fused multiply-add", threads,
                           a->best * 1e3, mid * 1e3, gflops * 1e-9);
    return pl_buf_addf(out, err, "%-20s %-4s %6d x %-6d %4d %6d %10.3f %10.3f %8.2f %5.1f%% %9.1f %5.1f%%\n",
                       a->shape.what, format_names[a->shape.format], a->shape.out, a->shape.in, a->rows, threads,
                       a->best * 1e3, mid * 1e3, gbs * 1e-9, gbs / read * 100, gflops * 1e-9, gflops / fma * 100);
}

static pl_status tell(const bench *b, bool json, pl_error *err)
{
    pl_buf out;
    pl_buf_init(&out, OUT_CAP, "the table of figures");
    pl_status status = PL_OK;
    if (json)
        status = pl_buf_addf(&out, err,
                             "{\"isa\": \"%s\", \"threads\": %d, \"order\": \"forth and back\", "
                             "\"of_read\": \"of the fastest of %d loops over memory\", "
                             "\"of_fma\": \"of multiply-adds in registers\", \"figures\": [\n",
                             b->isa, b->threads, PL_PEAK_READS);
    else
        status = pl_buf_addf(
            &out, err,
            "%s, %d threads; best and median of launches run forth and back; percent of what the fastest of %d "
            "loops reads, and of multiply-adds in registers, in this run\n%-20s %-4s %15s %4s "
            "%6s %10s %10s %8s %6s %9s %6s\n",
            b->k[0].name, b->threads, PL_PEAK_READS, "", "", "out x in", "rows", "thread", "best ms", "median", "GB/s",
            "read", "GFLOP/s", "FMA");
    for (int i = 0; i < b->count && status == PL_OK; i++) {
        status = tell_arm(&out, b, &b->arms[i], json, err);
        if (json && status == PL_OK)
            status = pl_buf_adds(&out, i + 1 < b->count ? ",\n" : "\n]}\n", err);
    }
    if (status == PL_OK)
        status = cmd_print(out.data, out.len, err);
    pl_buf_free(&out);
    return status;
}

static pl_status run_all(bench *b, const char *isa, pl_error *err)
{
    PL_TRY(open_bench(b, isa, err));
    static const pl_format formats[] = {PL_FMT_FP4, PL_FMT_FP8, PL_FMT_BF16};
    for (int f = 0; f < 3; f++) {
        int from = b->count;
        fill_region(b, formats[f]);
        add_ceilings(b);
        add_products(b, formats[f]);
        if (formats[f] == PL_FMT_FP8)
            add_engram(b);
        PL_TRY(run_arms(b, from, format_names[formats[f]], err));
    }
    return PL_OK;
}

static pl_status parse_rows(bench *b, const char *text, pl_error *err)
{
    int32_t *rows;
    size_t count;
    pl_error ignored; /* it speaks of token ids */
    bool fine = pl_ids_parse(text, &rows, &count, &ignored) == PL_OK && count <= MAX_ROW_COUNTS;
    for (size_t i = 0; i < count && fine; i++) {
        fine = rows[i] >= 1 && rows[i] <= MAX_ROWS;
        b->rows[i] = rows[i];
        b->most_rows = rows[i] > b->most_rows ? rows[i] : b->most_rows;
    }
    b->row_count = (int)count;
    free(rows);
    if (!fine)
        return pl_fail_param(err, PL_EINVAL, "rows",
                             "--rows: at most %d numbers from 1 to %d expected, found \"%.64s\"", MAX_ROW_COUNTS,
                             MAX_ROWS, text);
    return PL_OK;
}

int cmd_bench(const pl_settings *settings)
{
    if (settings->command->bit == PL_CMD_BENCH_ARMS)
        return cmd_bench_arms(settings);
    if (settings->command->bit != PL_CMD_BENCH)
        return cmd_bench_concurrent(settings);
    static const char *const isas[] = {"auto", "scalar", "avx2", "avx512", "neon"};
    bench b = {.threads = cmd_threads(settings), .seconds = pl_set_real(settings, PL_SET_SECONDS), .state = 1};
    pl_error err;
    b.crews = b.threads > 1 ? 2 : 1;
    pl_status status = PL_OK;
    if (settings->args != 1 || strcmp(settings->arg[0], "kernels") != 0)
        status = pl_fail(&err, PL_EINVAL, "one word expected: kernels, concurrent, openai or arms");
    if (status == PL_OK)
        status = parse_rows(&b, pl_set_text(settings, PL_SET_ROWS), &err);
    if (status == PL_OK)
        status = run_all(&b, isas[pl_set_int(settings, PL_SET_ISA)], &err);
    if (status == PL_OK)
        status = tell(&b, pl_set_on(settings, PL_SET_JSON), &err);
    close_bench(&b);
    return status == PL_OK ? CMD_OK : cmd_fail(settings, &err);
}
