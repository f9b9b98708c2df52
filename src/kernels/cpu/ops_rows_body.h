/* Rows: norms, stream mixing, small products. Included once an instruction set by ops_body.h, which includes vec.h. */

static void op_widen(float *y, const pl_bf16 *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = pl_bf16_to_f32(x[i]);
}

static void op_narrow(pl_bf16 *y, const float *x, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        v16_store_bf(y + i, v16_load(x + i));
    for (; i < n; i++)
        y[i] = pl_bf16_from_f32(x[i]);
}

static float op_inv_rms(const pl_bf16 *x, size_t n, float eps)
{
    v16 acc = v16_zero();
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        v16 v = v16_load_bf(x + i);
        acc = v16_fma(v, v, acc);
    }
    if (i < n) {
        v16 v = v16_load_bf_n(x + i, n - i);
        acc = v16_fma(v, v, acc);
    }
    return 1.0f / sqrtf(v16_sum(acc) / (float)n + eps);
}

static void op_norm(pl_bf16 *y, const pl_bf16 *x, const pl_bf16 *g, float r, size_t n)
{
    v16 rr = v16_set1(r);
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        v16_store_bf(y + i, v16_mul(v16_load_bf(g + i), v16_mul(v16_load_bf(x + i), rr)));
    if (i < n)
        v16_store_bf_n(y + i, v16_mul(v16_load_bf_n(g + i, n - i), v16_mul(v16_load_bf_n(x + i, n - i), rr)), n - i);
}

static void op_collapse(pl_bf16 *y, const pl_bf16 *h, const float *a, int streams, size_t dim)
{
    size_t i = 0;
    for (; i + 16 <= dim; i += 16) {
        v16 acc = v16_zero();
        for (int j = 0; j < streams; j++)
            acc = v16_fma(v16_set1(a[j]), v16_load_bf(h + (size_t)j * dim + i), acc);
        v16_store_bf(y + i, acc);
    }
    if (i < dim) {
        v16 acc = v16_zero();
        for (int j = 0; j < streams; j++)
            acc = v16_fma(v16_set1(a[j]), v16_load_bf_n(h + (size_t)j * dim + i, dim - i), acc);
        v16_store_bf_n(y + i, acc, dim - i);
    }
}

enum { MOST_STREAMS = 16 }; /* a config has at most 8 */

/* Sixteen channels of every stream at once: the new streams replace the old ones they are made from. */
PL__IN void expand16(pl_bf16 *h, const pl_bf16 *y, const float *b, const float *m, int streams, size_t dim, size_t n)
{
    v16 old[MOST_STREAMS], yy = v16_load_bf_n(y, n);
    for (int i = 0; i < streams; i++)
        old[i] = v16_load_bf_n(h + (size_t)i * dim, n);
    for (int k = 0; k < streams; k++) {
        v16 acc = v16_mul(v16_set1(b[k]), yy);
        for (int i = 0; i < streams; i++)
            acc = v16_fma(v16_set1(m[i * streams + k]), old[i], acc);
        v16_store_bf_n(h + (size_t)k * dim, acc, n);
    }
}

static void op_expand(pl_bf16 *h, const pl_bf16 *y, const float *b, const float *m, int streams, size_t dim)
{
    size_t i = 0;
    if (streams == 4) { /* the release's count, unrolled */
        for (; i + 16 <= dim; i += 16)
            expand16(h + i, y + i, b, m, 4, dim, 16);
    }
    for (; i < dim; i += 16)
        expand16(h + i, y + i, b, m, streams, dim, dim - i < 16 ? dim - i : 16);
}

static void op_stream_mean(pl_bf16 *y, const pl_bf16 *h, int streams, size_t dim)
{
    float count = (float)streams;
    for (size_t i = 0; i < dim; i++) {
        float sum = pl_bf16_to_f32(h[i]);
        for (int j = 1; j < streams; j++)
            sum += pl_bf16_to_f32(h[(size_t)j * dim + i]);
        y[i] = pl_bf16_from_f32(sum / count);
    }
}

PL__IN void dots_tile(float *y, size_t y_stride, const pl_bf16 *x, int rows, const float *w, int outs, size_t n)
{
    v16 acc[4][4];
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < outs; o++)
            acc[r][o] = v16_zero();
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        v16 xs[4];
        for (int r = 0; r < rows; r++)
            xs[r] = v16_load_bf(x + (size_t)r * n + i);
        for (int o = 0; o < outs; o++) {
            v16 ws = v16_load(w + (size_t)o * n + i);
            for (int r = 0; r < rows; r++)
                acc[r][o] = v16_fma(xs[r], ws, acc[r][o]);
        }
    }
    for (int r = 0; r < rows; r++) {
        for (int o = 0; o < outs; o++) {
            if (i < n)
                acc[r][o] = v16_fma(v16_load_bf_n(x + (size_t)r * n + i, n - i),
                                    v16_load_n(w + (size_t)o * n + i, n - i), acc[r][o]);
            y[(size_t)r * y_stride + (size_t)o] = v16_sum(acc[r][o]);
        }
    }
}

static void op_dots(float *y, size_t y_stride, const pl_bf16 *x, int rows, const float *w, int outs, size_t n)
{
    for (int o = 0; o < outs;) {
        int os = outs - o >= PL__TB ? PL__TB : 1;
        for (int r = 0; r < rows;) {
            int rs = rows - r >= PL__TA ? PL__TA : 1;
            const pl_bf16 *xr = x + (size_t)r * n;
            const float *wo = w + (size_t)o * n;
            float *yy = y + (size_t)r * y_stride + o;
            if (rs == PL__TA && os == PL__TB)
                dots_tile(yy, y_stride, xr, PL__TA, wo, PL__TB, n);
            else if (os == PL__TB)
                dots_tile(yy, y_stride, xr, 1, wo, PL__TB, n);
            else
                for (int i = 0; i < rs; i++)
                    dots_tile(yy + (size_t)i * y_stride, y_stride, xr + (size_t)i * n, 1, wo, 1, n);
            r += rs;
        }
        o += os;
    }
}

static void op_add(float *y, const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = a[i] + b[i];
}

static int op_argmax(const float *x, int n)
{
    v16 best = v16_set1(-INFINITY);
    int i = 0;
    for (; i + 16 <= n; i += 16)
        best = v16_max(v16_load(x + i), best);
    float lane[16], top = -INFINITY;
    v16_store(lane, best);
    for (int l = 0; l < 16; l++)
        top = lane[l] > top ? lane[l] : top;
    for (; i < n; i++)
        top = x[i] > top ? x[i] : top;
    for (i = 0; i < n; i++)
        if (x[i] == top)
            return i;
    return 0;
}

static void op_gate_sums(float sum[3], const pl_bf16 *h, const pl_bf16 *key, const pl_bf16 *qw, const pl_bf16 *kw,
                         size_t n)
{
    v16 hh = v16_zero(), kk = v16_zero(), hk = v16_zero();
    for (size_t i = 0; i < n; i += 16) {
        size_t left = n - i < 16 ? n - i : 16;
        v16 x = left < 16 ? v16_load_bf_n(h + i, left) : v16_load_bf(h + i);
        v16 k = left < 16 ? v16_load_bf_n(key + i, left) : v16_load_bf(key + i);
        v16 q = left < 16 ? v16_load_bf_n(qw + i, left) : v16_load_bf(qw + i);
        v16 w = left < 16 ? v16_load_bf_n(kw + i, left) : v16_load_bf(kw + i);
        hh = v16_fma(x, x, hh);
        kk = v16_fma(k, k, kk);
        hk = v16_fma(v16_mul(x, v16_mul(q, w)), k, hk);
    }
    sum[0] = v16_sum(hh);
    sum[1] = v16_sum(kk);
    sum[2] = v16_sum(hk);
}

static void op_gate_add(pl_bf16 *h, const pl_bf16 *value, float gate, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float add = gate * pl_bf16_to_f32(value[i]);
        h[i] = pl_bf16_from_f32(pl_bf16_to_f32(h[i]) + add);
    }
}

/* max-subtracted softmax of two, then the weighted sum, first token first */
static void op_pair_latent(pl_bf16 *lat, const float *first, const float *second, size_t dim)
{
    for (size_t i = 0; i < dim; i += 16) {
        size_t n = dim - i < 16 ? dim - i : 16;
        v16 g0 = v16_load_n(first + dim + i, n), g1 = v16_load_n(second + dim + i, n);
        v16 top = v16_max(g0, g1), minus = v16_set1(-1.0f);
        v16 e0 = v16_exp(v16_fma(top, minus, g0)), e1 = v16_exp(v16_fma(top, minus, g1));
        v16 sum = v16_add(e0, e1);
        v16 acc = v16_mul(v16_div(e0, sum), v16_load_n(first + i, n));
        acc = v16_fma(v16_div(e1, sum), v16_load_n(second + i, n), acc);
        v16_store_bf_n(lat + i, acc, n);
    }
}
