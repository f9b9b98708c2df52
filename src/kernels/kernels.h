/* The operations a backend implements, and nothing else: forward.c and drafter.c are written once against this table.
 *
 * Rules that every backend keeps (docs/architecture.md, "Summation orders"):
 * - a row's result depends on that row's inputs and on the shapes alone: never on the other rows of the launch, the
 *   number of rows, the thread count, the instruction set or earlier launches;
 * - arrays named h, x, y, q, ... live in backend memory (`reserve`); on the CPU that is ordinary memory. Arrays marked
 *   "host" are ordinary memory on every backend;
 * - bf(x) is rounding to nearest even to bfloat16; "model spec" is the architecture page docs/model.md;
 * - no operation allocates: scratch is planned by `open` from pl_kernel_limits;
 * - one thread, the engine's, calls the table. Operations do not fail, except where they return a status. */
#ifndef PL_KERNELS_KERNELS_H
#define PL_KERNELS_KERNELS_H

#include "base/bf16.h"
#include "base/status.h"
#include "base/threads.h"
#include "checkpoint/format.h"

/* Some rows of one slot at consecutive positions: a prefill piece, a window to verify, or one pending token. */
typedef struct pl_span {
    int slot;
    int pos; /* absolute position of the first row */
    int rows;
} pl_span;

/* One launch. Rows are numbered through the spans in order; two spans never name the same slot. Host memory. */
typedef struct pl_launch {
    int spans;
    const pl_span *span;
    int rows;            /* sum over the spans */
    const int32_t *slot; /* [rows] */
    const int32_t *pos;  /* [rows] absolute positions */
} pl_launch;

/* Compressed groups that a launch completes: entry index[i] of slot[i], made from the tokens index*ratio ..
 * index*ratio + ratio - 1. Host memory. Ascending within a slot. */
typedef struct pl_groups {
    int count;
    int ratio;
    const int32_t *slot;  /* [count] */
    const int32_t *index; /* [count] */
} pl_groups;

/* A ring of rows by position for every slot: row of position p at (slot * length + p % length) * row_bytes. */
typedef struct pl_ring {
    unsigned char *data;
    int length;
    size_t row_bytes;
} pl_ring;

/* Packed formats of the caches (lossless: the model rounds to these values, model spec 3.0):
 *   window row    dim E4M3 codes, then dim/32 E8M0 scale bytes
 *   entry         dim/2 bytes of E2M1 pairs (low nibble = even channel), then dim/16 E4M3 scale codes
 *   index key     dim/2 bytes of E2M1 pairs, then dim/32 E8M0 scale bytes                                            */
static inline size_t pl_window_row_bytes(int dim)
{
    return (size_t)dim + (size_t)dim / 32;
}
static inline size_t pl_entry_bytes(int dim)
{
    return (size_t)dim / 2 + (size_t)dim / 16;
}
static inline size_t pl_key_bytes(int dim)
{
    return (size_t)dim / 2 + (size_t)dim / 32;
}

/* The append-only entries and index keys of one KV owner, in pages shared by all owners: page k of a slot holds what
 * the tokens k*page_tokens .. (k+1)*page_tokens - 1 complete. Entry j lies in page j / per_page at
 * entry_offset + (j % per_page) * pl_entry_bytes(head_dim), its key at key_offset + (j % per_page) * pl_key_bytes. */
typedef struct pl_entries {
    unsigned char *const *page; /* [slots][pages]: backend addresses; NULL where nothing is stored yet */
    int pages;                  /* page addresses a slot */
    int per_page;               /* page_tokens / ratio */
    int ratio;                  /* 1 or 2 */
    size_t entry_offset, key_offset;
} pl_entries;

/* Rope frequencies of one table: angle of pair i at position p is (float)p * freq[i], model spec 1.2. */
typedef struct pl_rope {
    int dims;          /* R: the last R of a vector are rotated, adjacent pairs */
    const float *freq; /* [dims / 2], host */
} pl_rope;

/* Selected entries per row, ascending: list[row * stride .. + count[row]]. Backend memory. */
typedef struct pl_lists {
    int32_t *list;
    int32_t *count;
    int stride;
} pl_lists;

/* Candidate blocks of the two-level indexer, a bit a block: row r, block b is bit b % 64 of mask[r * words + b /
 * 64]. */
typedef struct pl_candidates {
    uint64_t *mask; /* NULL: no candidate rule */
    int words;      /* a row */
    int block;      /* entries a block */
    int keep;       /* blocks kept at most */
} pl_candidates;

typedef enum pl_out { PL_OUT_BF16, PL_OUT_F32 } pl_out;

/* Weights of one mixture: routed experts (indexed by id) and the shared one. Host arrays of matrices. */
typedef struct pl_experts {
    int experts, per_token, inter;
    const pl_mat *w1, *w2, *w3; /* [experts] */
    pl_mat shared_w1, shared_w2, shared_w3;
    float limit; /* swiglu_limit */
} pl_experts;

/* What scratch must suffice for. */
typedef struct pl_kernel_limits {
    int rows; /* most rows of a launch */
    int slots;
    int hidden, streams, heads, head_dim, rope_dim;
    int max_in;    /* widest input of any matrix */
    int max_out;   /* most outputs of any matrix */
    int per_token; /* most routed experts of a row, drafter included */
    int experts;   /* most experts of a layer */
    int inter;     /* moe_intermediate_size */
    int window;
    int topk; /* longest list of selected entries */
    int index_heads, index_dim;
    int context; /* most tokens of a slot: a row sees at most this many entries */
    int block;   /* draft block */
} pl_kernel_limits;

typedef struct pl_kernels pl_kernels;
struct pl_kernels {
    const char *name; /* "cpu avx512" */
    void *self;       /* the backend's own; passed back as k->self */

    void (*close)(pl_kernels *k);

    /* Backend memory, zeroed, 64-byte aligned; freed by close. PL_ENOMEM names `what`. */
    pl_status (*reserve)(pl_kernels *k, size_t bytes, const char *what, void **out, pl_error *err);
    /* Copies between host and backend memory; `download` waits for the work before it. On the CPU: memcpy. */
    void (*upload)(pl_kernels *k, void *to, const void *host, size_t bytes);
    void (*download)(pl_kernels *k, void *host, const void *from, size_t bytes);
    /* Make a matrix of the checkpoint usable by this backend (a CPU returns it as it is, a GPU copies it). */
    pl_status (*weights)(pl_kernels *k, const pl_mat *in, pl_mat *out, pl_error *err);

    /* ---- embedding, stream, hyper-connections (S streams of D) -------------------------------------------------- */

    /* h[rows][S][D] = S copies of the embedding row of token[row] (host ids, all < embed.out); pre[rows][S] = 1,0,.. */
    void (*embed)(pl_kernels *k, pl_bf16 *h, float *pre, const pl_mat *embed, const int32_t *token, int rows,
                  int streams);
    /* y[rows][dim] = table rows of BF16 matrix `table` by host ids. */
    void (*gather)(pl_kernels *k, pl_bf16 *y, const pl_mat *table, const int32_t *id, int rows);
    /* Hyper-connection coefficients, model spec 3.2: coef[rows][S + S + S*S] = A, B, M (row-major [i][k]) from the
     * flattened stream h[rows][S*D]; fn F32 [(2+S)*S][S*D]; scale[3], base[(2+S)*S] host. */
    void (*hc_coef)(pl_kernels *k, float *coef, const pl_bf16 *h, const pl_mat *fn, const float *scale,
                    const float *base, int rows, int streams, int dim, int iters, float hc_eps, float norm_eps);
    /* y[rows][D] = bf(sum_j a[row * a_stride + j] * h[row][j]), j ascending, one float32 accumulator a channel
     * (fma). */
    void (*collapse)(pl_kernels *k, pl_bf16 *y, const pl_bf16 *h, const float *a, int a_stride, int rows, int streams,
                     int dim);
    /* h'[row][k] = bf(B_k * y + sum_i M[i][k] * h_i), in place; B and M from coef as hc_coef wrote them. */
    void (*expand)(pl_kernels *k, pl_bf16 *h, const pl_bf16 *y, const float *coef, int rows, int streams, int dim);
    /* y[row * y_stride + d] = bf(mean over the streams of h[row][.][d]). */
    void (*stream_mean)(pl_kernels *k, pl_bf16 *y, size_t y_stride, const pl_bf16 *h, int rows, int streams, int dim);

    /* ---- norms, rounding, rotation ------------------------------------------------------------------------------- */

    /* y = bf(g * (x * 1/sqrt(mean(x^2) + eps))), rows of dim; y may be x. g bf16 [dim]. */
    void (*rmsnorm)(pl_kernels *k, pl_bf16 *y, const pl_bf16 *x, const pl_bf16 *g, int rows, int dim, float eps);
    /* Activation rounding q8 in groups of 32, model spec 3.0: y = bf(code * scale), exact. y may be x. dim % 32 ==
     * 0. */
    void (*quant8)(pl_kernels *k, pl_bf16 *y, const pl_bf16 *x, int rows, int dim);
    /* Index rounding q4e8 in groups of 32, in place form. dim % 32 == 0. */
    void (*quant4)(pl_kernels *k, pl_bf16 *y, const pl_bf16 *x, int rows, int dim);
    /* Rotate the last rope->dims of each of `heads` vectors of `dim` a row at host positions pos[row]; inverse =
     * -sin. */
    void (*rope)(pl_kernels *k, pl_bf16 *x, const int32_t *pos, int rows, int heads, int dim, const pl_rope *rope,
                 bool inverse);

    /* ---- matrices
     * -------------------------------------------------------------------------------------------------- */

    /* y[row][o] = sum_i x[row][i] * w[o][i]: float32, rounded to bf16 when out is PL_OUT_BF16. x bf16 with x_stride
     * elements a row, y with y_stride. FP4 weights expect x as quant8 leaves it (every value E4M3 times its group's
     * power of two); FP8, BF16 and F32 weights take any x. This is lin8/lin4 (after quant8), linb and lin32 of model
     * spec 3.0. */
    void (*lin)(pl_kernels *k, void *y, size_t y_stride, pl_out out, const pl_bf16 *x, size_t x_stride, const pl_mat *w,
                int rows);
    /* Block-diagonal: group g's outputs (w->out / groups of them) read x[row][g * w->in ..]. bf16 out, contiguous rows
     * of w->out; x rows of groups * w->in. w->out / groups is any number: groups may share a scale block. */
    void (*lin_groups)(pl_kernels *k, pl_bf16 *y, const pl_bf16 *x, const pl_mat *w, int groups, int rows);
    /* y[i] = a[i] + b[i], float32. y may be a. */
    void (*add)(pl_kernels *k, float *y, const float *a, const float *b, size_t count);

    /* ---- attention (one shared K=V vector of C a position)
     * ---------------------------------------------------------- */

    /* Store rows as they are into a ring (bytes = ring->row_bytes a row), and read them back. When a span is longer
     * than the ring, only its last `length` rows are stored. */
    void (*ring_put)(pl_kernels *k, const pl_ring *ring, const void *x, const pl_launch *launch);
    void (*ring_get)(pl_kernels *k, void *x, const pl_ring *ring, const pl_launch *launch);
    /* Round kv[rows][dim] (already rotated) with q8 and store it packed as window rows. */
    void (*window_put)(pl_kernels *k, const pl_ring *ring, const pl_bf16 *kv, int dim, const pl_launch *launch);
    /* o[rows][heads][dim] over, in order: the window max(0, p - window + 1) .. p of the row's slot, then the row's
     * selected entries (entries and lists NULL: window only). Scores (q.k) * scale in float32; two-pass softmax over
     * that one list: max from -1e30, p = exp(s - max), denominator in list order plus exp(sink[head] - max), numerator
     * one accumulator a channel of bf(p) * v in list order, o = bf(num / den). Model spec 3.3; before the inverse rope.
     * sink[heads] host. */
    void (*attention)(pl_kernels *k, pl_bf16 *o, const pl_bf16 *q, const pl_ring *ring, int window,
                      const pl_entries *entries, const pl_lists *lists, const float *sink, int heads, int dim,
                      float scale, const pl_launch *launch);
    /* The drafter's attention, model spec 4: every row of a span sees the window max(0, pos-window) .. pos-1 of its
     * slot (pos = the span's first position), then all rows of its own span, whose kv[rows][dim] are given rotated and
     * rounded (quant8). Same arithmetic as `attention`. */
    void (*block_attention)(pl_kernels *k, pl_bf16 *o, const pl_bf16 *q, const pl_ring *ring, int window,
                            const pl_bf16 *kv, const float *sink, int heads, int dim, float scale,
                            const pl_launch *launch);

    /* ---- compressor and indexer, model spec 3.4 and 3.5
     * -------------------------------------------------------------- */

    /* The (kv, gate) pairs of ratio-2 owners by position: ring rows of 2*dim float32, kv then gate. */
    void (*pair_put)(pl_kernels *k, const pl_ring *pairs, const float *kv, const float *gate, int dim,
                     const pl_launch *launch);
    /* lat[groups][dim] = bf(sum over the two tokens of softmax(gate) * kv), per channel. */
    void (*pair_latent)(pl_kernels *k, pl_bf16 *lat, const pl_ring *pairs, int dim, const pl_groups *groups);
    /* Rotate lat[groups][dim] at position index * ratio, round with q4e4 (groups of 16), store packed. lat
     * unchanged. */
    void (*entry_put)(pl_kernels *k, const pl_entries *entries, const pl_bf16 *lat, int dim, const pl_rope *rope,
                      const pl_groups *groups);
    /* Rotate key[groups][dim] at position index * ratio, round with q4e8, store packed. key unchanged. */
    void (*key_put)(pl_kernels *k, const pl_entries *entries, const pl_bf16 *key, int dim, const pl_rope *rope,
                    const pl_groups *groups);
    /* Choose each row's entries. q[rows][heads][dim] rotated and rounded (quant4); w[rows][heads] raw projection, used
     * as bf(w * w_scale). score[j] = bf(sum_h bf(relu(bf(q_h.k_j)) * w_h)) (sum in float32, h ascending). Row at
     * position p sees j < n = (p + 1) / ratio. `publish`: write the row's candidate blocks (value = max score; the
     * block of n - 1 first; ties to the lower block; model spec 3.5) and select from all. `within`: scores outside the
     * candidates do not exist. Selected: the min(topk, reachable) best, ties to the lower index, written ascending.
     * At least one of them is NULL. */
    void (*index_select)(pl_kernels *k, const pl_lists *lists, int topk, const pl_bf16 *q, const pl_bf16 *w,
                         float w_scale, const pl_entries *entries, int heads, int dim, const pl_candidates *publish,
                         const pl_candidates *within, const pl_launch *launch);

    /* ---- engram, model spec 3.6
     * ---------------------------------------------------------------------------------------- */

    /* x[rows][cols * dim] = bf(e4m3 * 2^scale) of table rows id[rows][cols] (host). The table is FP8 [table rows][dim]
     * with a scale byte per 32 columns of each row; it stays in host memory on every backend. */
    void (*engram_rows)(pl_kernels *k, pl_bf16 *x, const unsigned char *codes, const unsigned char *scales, int dim,
                        const int64_t *id, int cols, int rows);
    /* h_j += gate_j * value, in place: kv[rows][(S+1)*D] = keys then value; q_weight, k_weight bf16 [S][D]; skip[row]
     * (host, may be NULL): gate = 0. */
    void (*engram_gate)(pl_kernels *k, pl_bf16 *h, const pl_bf16 *kv, const pl_bf16 *q_weight, const pl_bf16 *k_weight,
                        const unsigned char *skip, int rows, int streams, int dim, float eps);

    /* ---- mixture of experts, model spec 3.7
     * ------------------------------------------------------------------------------ */

    /* Choose per_token of `experts` a row: score = sqrt(softplus(logit / temp)), best score + bias first, ties to the
     * lower id; weight = score / (sum of chosen scores + 1e-20) * scale (sum in order of choice; not normalised when
     * norm is false or per_token is 1). id, weight [rows][per_token]; bias[experts] host. */
    void (*route)(pl_kernels *k, int32_t *id, float *weight, const float *logits, const float *bias, int rows,
                  int experts, int per_token, bool norm, float temp, float scale);
    /* y[rows][D] = bf(sum over the chosen experts in ascending id + the shared one); x[rows][D] as quant8 leaves it. */
    void (*moe)(pl_kernels *k, pl_bf16 *y, const pl_bf16 *x, const int32_t *id, const float *weight,
                const pl_experts *e, int rows, int dim);

    /* ---- rows of logits
     * ---------------------------------------------------------------------------------------------------- */

    /* id[row] (host) = index of the largest of `count`, the lower one on ties. */
    void (*argmax)(pl_kernels *k, int32_t *id, const float *x, int rows, int count);
};

/* Bytes of scratch that pl_cpu_kernels will reserve for these limits, on any isa: for the memory plan. */
uint64_t pl_cpu_scratch_bytes(const pl_kernel_limits *limits, int threads);

/* The CPU backend. isa: "auto", "scalar", "avx2", "avx512" or "neon"; PL_EINVAL when this machine or build lacks it.
 * The pool must outlive the table. Results are the same bits for every isa and pool size. */
pl_status pl_cpu_kernels(pl_kernels *k, const pl_kernel_limits *limits, pl_pool *pool, const char *isa, pl_error *err);

#endif
