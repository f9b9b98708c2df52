/* Bringing the rows of x into the form in which the products read them, once a launch. */
#include "kernels/cpu/lin.h"

/* Whole cache lines; an odd number of them for long rows, so that the rows of a tile do not fall on the same sets of
 * the first cache. */
static size_t f_bytes(int in)
{
    size_t lines = ((size_t)in + 15) / 16;
    return (lines >= 64 ? lines | 1 : lines) * 64;
}

size_t pl__pack_bytes(int rows, int in, bool codes)
{
    size_t row = codes ? pl__chunks(in) * (sizeof(pl__xchunk) + 1) : f_bytes(in) + 1;
    return pl__plus(pl__times((size_t)rows, pl__plus(row, 1)), 3 * 64);
}

/* The integers of a run of eight: v[i] = x[i] * 2^(17 - e), |v| < 2^18. False when one is no integer. e is the exponent
 * of the largest. */
static bool run_integers(int32_t v[8], int *e, const pl_bf16 *x)
{
    unsigned top = 0;
    for (int i = 0; i < 8; i++)
        top = (x[i] & 0x7fffu) > top ? x[i] & 0x7fffu : top;
    memset(v, 0, 8 * sizeof *v);
    *e = (int)(top >> 7) - 127;
    if (top == 0 || *e < -100 || *e > 127) {
        *e = 0;
        return top == 0;
    }
    float up = pl_f32_from_bits((uint32_t)(17 - *e + 127) << 23);
    bool whole = true;
    for (int i = 0; i < 8; i++) {
        float f = pl_bf16_to_f32(x[i]) * up;
        v[i] = (int32_t)f;
        whole &= (float)v[i] == f;
    }
    return whole;
}

bool pl__pack_runs(pl__xchunk *to, unsigned char *lo, const pl_bf16 *x, int runs)
{
    int e[PL__LANES] = {0};
    bool fine = true;
    int low = 0;
    memset(to, 0, sizeof *to);
    for (int j = 0; j < runs; j++) {
        int32_t v[8];
        fine &= run_integers(v, &e[j], x + 8 * j);
        for (int i = 0; i < 8; i++) {
            int part = v[i] & 7;
            to->hi[i % 4][j][i / 4] = (int16_t)(v[i] >> 3);
            (i % 2 ? to->odd : to->even)[j][i / 2] = (unsigned char)part;
            low |= part;
        }
    }
    for (int j = 0; j < PL__LANES; j++)
        to->scale[j] = pl_f32_from_bits((uint32_t)(e[j] - (low ? 18 : 23) + 127) << 23);
    *lo = low != 0;
    return fine;
}

bool pl__pack_chunk(pl__xchunk *to, unsigned char *lo, const pl_bf16 *x)
{
    return pl__pack_runs(to, lo, x, PL__LANES);
}

/* One row for d8. False when it is not of the form: its chunks are then zero. */
static bool pack_chunks(const pl__lin_d8 *d8, pl__xchunk *to, unsigned char *lo, const pl_bf16 *x, int in)
{
    bool fine = true;
    int i = 0;
    for (; i < in / PL__CHUNK; i++)
        fine &= d8->pack(to + i, lo + i, x + i * PL__CHUNK);
    if (in % PL__CHUNK)
        fine &= pl__pack_runs(to + i, lo + i, x + i * PL__CHUNK, in % PL__CHUNK / 8);
    if (!fine) {
        memset(to, 0, pl__chunks(in) * sizeof *to);
        memset(lo, 0, pl__chunks(in));
    }
    return fine;
}

void pl__pack_plan(pl__x *x, bool codes, unsigned char *memory)
{
    size_t rows = (size_t)x->rows;
    x->plain = memory;
    memory += pl__lines(rows);
    x->f = NULL;
    x->c = NULL;
    if (codes) {
        x->c_stride = pl__chunks(x->in);
        x->lo = memory;
        memory += pl__lines(rows * x->c_stride);
        x->c = (pl__xchunk *)(void *)memory;
    } else {
        x->reach = memory;
        memory += pl__lines(rows);
        x->f_stride = f_bytes(x->in) / sizeof(float);
        x->f = (float *)(void *)memory;
    }
}

/* Biased exponent of the largest magnitude. */
static unsigned char reach_of(const pl_bf16 *x, int in)
{
    int16_t top = 0;
    for (int i = 0; i < in; i++) {
        int16_t v = (int16_t)(x[i] & 0x7fff);
        top = v > top ? v : top;
    }
    return (unsigned char)(top >> 7);
}

void pl__pack_row(const pl__lin_isa *isa, const pl__x *x, size_t row)
{
    const pl_bf16 *raw = x->raw + row * x->raw_stride;
    x->plain[row] = 0;
    if (x->c) {
        x->plain[row] = !pack_chunks(isa->d8, x->c + row * x->c_stride, x->lo + row * x->c_stride, raw, x->in);
    } else {
        x->reach[row] = reach_of(raw, x->in);
        isa->c16->pack(x->f + row * x->f_stride, raw, x->in);
    }
}

typedef struct pack_job {
    const pl__lin_isa *isa;
    pl__x *x;
} pack_job;

static void pack_task(void *arg, size_t row, int thread)
{
    const pack_job *job = arg;
    (void)thread;
    pl__pack_row(job->isa, job->x, row);
}

void pl__pack(pl__cpu *c, pl__x *x)
{
    pack_job job = {.isa = pl__lin_pick(c), .x = x};
    pl__each(c, (size_t)x->rows, (size_t)x->rows * (size_t)x->in, pack_task, &job);
}
