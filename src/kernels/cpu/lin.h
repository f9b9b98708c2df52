/* Matrix products of the CPU: what the driver (lin.c, moe.c) and the instruction sets (lin_*.c, lin4_*.c) share.
 *
 * Two orders of summation, whatever the rows, threads, tiles and instruction set
 * (docs/internals/kernels-cpu-matrix.md):
 *
 *   c16, for BF16, F32 and FP8 weights. w[k] is the float32 value of the weight (code * 2^(scale - 127), exact).
 *     16 accumulators from +0; element k: a[k mod 16] = fma(x[k], w[k], a[k mod 16]), k ascending, x and w continued
 *     with zeros to a multiple of 16; then a[i] += a[i + 8], a[i] += a[i + 4], a[i] += a[i + 2], a[0] + a[1].
 *   d8, for FP4 weights, whose codes c[k] and scale s are kept apart. 16 accumulators from +0; the j-th run of eight
 *     inputs, k = 8j .. 8j + 7, belongs to accumulator j mod 16: t = the exact sum of x[k] * c[k], rounded once to
 *     float32; a[j mod 16] = fma(t, 2^(s - 127), a[j mod 16]), j ascending; then the same tree.
 *
 * A sum of eight products of E4M3 and E2M1 values has 25 bits: exact in float64 and in integers, so every instruction
 * set may form t as suits it. A NaN result becomes the one NaN 0x7fc00000. */
#ifndef PL_KERNELS_CPU_LIN_H
#define PL_KERNELS_CPU_LIN_H

#include "kernels/cpu/cpu.h"

enum {
    PL__OUTS = 32,             /* outputs of a block of few rows: those that share an FP8 scale */
    PL__SPAN = 64,             /* most outputs of a block of work */
    PL__ROWS = 64,             /* most rows of a block of work */
    PL__TILE = 4,              /* outputs of a tile */
    PL__GROUP = 2,             /* tiles that are widened at a time */
    PL__LANES = 16,            /* accumulators of a sum */
    PL__PANEL = 768,           /* most inputs that are widened at a time, c16 */
    PL__CHUNK = 128,           /* inputs in a chunk of FP4: 64 bytes, one run of eight an accumulator */
    PL__PANEL4 = 9,            /* most chunks that are widened at a time */
    PL__WIDE_ROWS = 32,        /* from here on multiplications bound a block, below it reads do */
    PL__PART_BYTES = 96 << 10, /* weights that fewer rows walk panel by panel at a time */
    /* The fast FP8 paths multiply by 2^(byte - 7), which is a float32 for scale bytes up to 134; `few` multiplies x
     * by it, which stays finite while the biased exponent of x and the byte add up to 260. What is beyond takes a
     * slower path. */
    PL__FP8_TOP = 134,
    PL__FP8_REACH = 260
};

/* A chunk of an FP4 product's x, 448 bytes. A run of eight has integers of its own unit: with e the exponent of its
 * largest element, x = (hi + lo / 8) * 2^(e - 14), hi an int16, lo 0..7. Most chunks need no lo; a byte a chunk says
 * which do.
 *     int16 hi[4][16][2]    [i][run] holds elements i and i + 4 of the run: the order in which bytes give up nibbles
 *     float scale[16]       what makes the integer sum of a run its value: 2^(e - 23), in a chunk with lo 2^(e - 18)
 *     uint8 even[16][4]     lo of elements 0, 2, 4, 6
 *     uint8 odd[16][4]      lo of elements 1, 3, 5, 7 */
typedef struct pl__xchunk {
    int16_t hi[4][PL__LANES][2];
    float scale[PL__LANES];
    unsigned char even[PL__LANES][4], odd[PL__LANES][4];
} pl__xchunk;

/* A chunk of widened FP4 weights of one output: 512 times the code's value (bytes moved up, not sign-extended:
 * cheaper), in the order of x, and 2^(s - 127). */
typedef struct pl__wchunk {
    int16_t hi[4][PL__LANES][2];
    float scale[PL__LANES];
} pl__wchunk;

/* Packed rows of x for one launch. Rows and strides in elements of the named type. */
typedef struct pl__x {
    const pl_bf16 *raw;
    size_t raw_stride;
    int in, rows;
    float *f; /* [rows][f_stride]: floats in the instruction set's order; NULL unless packed for c16 */
    size_t f_stride;
    unsigned char *reach; /* [rows]: biased exponent of the largest, for c16 */
    pl__xchunk *c;        /* [rows][c_stride] chunks; NULL unless packed for d8 */
    unsigned char *lo;    /* [rows][c_stride]: does the chunk have a lo? */
    size_t c_stride;
    unsigned char *plain; /* [rows]: not E4M3 times powers of two (NaN, say): left to lin_plain.c */
} pl__x;

/* Which part of its sums a tile adds. The first begins with accumulators of +0 (what `acc` holds is not read), the last
 * ends with the trees: y[r * stride + j], for all PL__TILE outputs of a row, a NaN being the one NaN (what `acc` holds
 * afterwards is not said). */
typedef struct pl__part {
    bool first, last;
    float *y;
    size_t stride;
} pl__part;

/* What one instruction set does. `few` multiplies up to few_rows packed rows with outputs o .. o + count -
 * 1 (at most PL__OUTS) of a matrix, weights read once from beginning to end: for launches that memory
 * bounds. `widen` brings `n` inputs from `from` (d8: n chunks from chunk `from`) of one output into column j of a
 * tile, zeros where the inputs end; `tile` adds rows x PL__TILE products over a panel to acc[row][j][lane]. */
typedef struct pl__lin_c16 {
    int few_rows, tile_rows; /* most rows of `few` and of a tile */
    /* most inputs of a tile, a multiple of 32 and at most PL__PANEL: a group and a tile's rows share the first cache */
    int panel;
    void (*pack)(float *to, const pl_bf16 *x, int in); /* with zeros to a multiple of 16; the lane order is its own */
    void (*few[3])(float (*y)[PL__OUTS], const pl_mat *w, int o, int count, const float *const *x,
                   int rows);                                                      /* by pl__lin_index(format) */
    void (*widen[3])(float *tile, int j, const pl_mat *w, int o, int from, int n); /* tile [n / 16][4][16] */
    void (*tile)(float *acc, const float *const *x, int rows, const float *tile, int n, const pl__part *part);
} pl__lin_c16;

typedef struct pl__lin_d8 {
    int few_rows, tile_rows;
    bool (*pack)(pl__xchunk *to, unsigned char *lo, const pl_bf16 *x); /* one whole chunk; false: not of the form */
    void (*few)(float (*y)[PL__OUTS], const pl_mat *w, int o, int count, const pl__xchunk *const *x,
                const unsigned char *const *lo, int rows);
    void (*widen)(pl__wchunk *tile, int j, const pl_mat *w, int o, int from, int n); /* tile [n][4] */
    void (*tile)(float *acc, const pl__xchunk *const *x, const unsigned char *const *lo, int rows,
                 const pl__wchunk *tile, int n, const pl__part *part);
} pl__lin_d8;

typedef struct pl__lin_isa {
    const pl__lin_c16 *c16;
    const pl__lin_d8 *d8;
} pl__lin_isa;

extern const pl__lin_c16 pl__c16_scalar;
extern const pl__lin_d8 pl__d8_scalar;
#if defined(__x86_64__)
extern const pl__lin_c16 pl__c16_avx2, pl__c16_avx512;
extern const pl__lin_d8 pl__d8_avx2, pl__d8_avx512, pl__d8_vnni;
#elif defined(__aarch64__)
extern const pl__lin_c16 pl__c16_neon;
extern const pl__lin_d8 pl__d8_neon;
#endif

/* pack of both x86 tables, and of the others (lin_pack.c; `runs` of 16 are there, the others become zeros). */
bool pl__pack_chunk_avx2(pl__xchunk *to, unsigned char *lo, const pl_bf16 *x);
bool pl__pack_chunk(pl__xchunk *to, unsigned char *lo, const pl_bf16 *x);
bool pl__pack_runs(pl__xchunk *to, unsigned char *lo, const pl_bf16 *x, int runs);

/* Place of a c16 format in the arrays above. */
static inline int pl__lin_index(pl_format f)
{
    return f == PL_FMT_BF16 ? 0 : f == PL_FMT_F32 ? 1 : 2;
}

static inline size_t pl__chunks(int in)
{
    return ((size_t)in + PL__CHUNK - 1) / PL__CHUNK;
}

/* A float of a row as it leaves the tree: one NaN. */
static inline float pl__one_nan(float v)
{
    return v == v ? v : pl_f32_from_bits(0x7fc00000);
}

/* The end of a tile for an instruction set that has no faster one: sums of what its accumulators hold in memory. */
static inline void pl__finish(const pl__part *part, const float *acc, int rows, float (*sum)(const float *acc))
{
    for (int r = 0; part->last && r < rows; r++)
        for (int j = 0; j < PL__TILE; j++)
            part->y[(size_t)r * part->stride + (size_t)j] = pl__one_nan(sum(acc + (r * PL__TILE + j) * PL__LANES));
}

/* lin_plain.c: one product by the definition, for matrices with extreme scales and rows that do not pack. Any
 * format. */
float pl__plain_dot(const pl_mat *w, int o, const pl_bf16 *x);

/* lin_pack.c. Bytes of the packed form of `rows` rows of `in` inputs: of codes (for d8) or floats (for c16). */
size_t pl__pack_bytes(int rows, int in, bool codes);
/* Lay the packed arrays out in `memory`, pl__pack_bytes of it; raw, raw_stride, in and rows are set. */
void pl__pack_plan(pl__x *x, bool codes, unsigned char *memory);
/* Pack one row (on any thread), or all of them on the pool. */
void pl__pack_row(const pl__lin_isa *isa, const pl__x *x, size_t row);
void pl__pack(pl__cpu *c, pl__x *x);

/* lin.c: the table of an instruction set. */
const pl__lin_isa *pl__lin_pick(const pl__cpu *c);

/* lin_block.c: y[i * stride + o - o0] = the products of `n` (at most PL__ROWS) rows of x with outputs o0 .. o0 + count
 * - 1 (at most PL__SPAN), with room for whole tiles behind each row. Row i is rows[i], or first + i when rows is NULL.
 * Below PL__WIDE_ROWS rows: all outputs in one block of 32 that share an FP8 scale, and a stride of PL__OUTS. `mine`
 * is pl__block_bytes() of the thread. */
void pl__lin_block(const pl__lin_isa *isa, float *y, size_t stride, const pl_mat *w, int o0, int count, const pl__x *x,
                   const int32_t *rows, int first, int n, unsigned char *mine);
size_t pl__block_bytes(void);

#endif
