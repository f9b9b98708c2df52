/* Attention of one row: scores, softmax, values. Included once an instruction set by ops_body.h. */

PL__IN void scores_tile(float *s, size_t stride, const float *q, int heads, const float *k, int keys, int dim,
                        float scale)
{
    v16 acc[4][4];
    for (int h = 0; h < heads; h++)
        for (int j = 0; j < keys; j++)
            acc[h][j] = v16_zero();
    for (int i = 0; i < dim; i += 16) {
        v16 qs[4];
        for (int h = 0; h < heads; h++)
            qs[h] = v16_load(q + (size_t)h * (size_t)dim + i);
        for (int j = 0; j < keys; j++) {
            v16 ks = v16_load(k + (size_t)j * (size_t)dim + i);
            for (int h = 0; h < heads; h++)
                acc[h][j] = v16_fma(qs[h], ks, acc[h][j]);
        }
    }
    for (int h = 0; h < heads; h++)
        for (int j = 0; j < keys; j++)
            s[(size_t)h * stride + (size_t)j] = v16_sum(acc[h][j]) * scale;
}

enum { KEY_CHUNK = 16 }; /* keys that stay in the first cache while all heads pass over them */

static void op_scores(float *s, size_t stride, const float *q, int heads, const float *k, int n, int dim, float scale)
{
    for (int from = 0; from < n; from += KEY_CHUNK) {
        int to = n - from < KEY_CHUNK ? n : from + KEY_CHUNK;
        for (int h = 0; h < heads;) {
            int hs = heads - h >= PL__TA ? PL__TA : 1;
            const float *qh = q + (size_t)h * (size_t)dim;
            for (int j = from; j < to;) {
                int js = to - j >= PL__TB ? PL__TB : 1;
                const float *kj = k + (size_t)j * (size_t)dim;
                float *sh = s + (size_t)h * stride + j;
                if (hs == PL__TA && js == PL__TB)
                    scores_tile(sh, stride, qh, PL__TA, kj, PL__TB, dim, scale);
                else
                    for (int a = 0; a < hs; a++)
                        for (int b = 0; b < js; b++)
                            scores_tile(sh + (size_t)a * stride + b, stride, qh + (size_t)a * (size_t)dim, 1,
                                        kj + (size_t)b * (size_t)dim, 1, dim, scale);
                j += js;
            }
            h += hs;
        }
    }
}

/* Greatest score of a head's list, from -1e30 as the model has it */
PL__IN float list_max(const float *s, int n)
{
    v16 best = v16_set1(-1e30f);
    int j = 0;
    for (; j + 16 <= n; j += 16)
        best = v16_max(v16_load(s + j), best);
    float lane[16], top = -1e30f;
    v16_store(lane, best);
    for (int l = 0; l < 16; l++)
        top = lane[l] > top ? lane[l] : top;
    for (; j < n; j++)
        top = s[j] > top ? s[j] : top;
    return top;
}

PL__IN void list_exp(float *s, int n, float top)
{
    v16 minus = v16_set1(-top);
    int j = 0;
    for (; j + 16 <= n; j += 16)
        v16_store(s + j, v16_exp(v16_add(v16_load(s + j), minus)));
    for (; j < n; j++)
        s[j] = pl_expf(s[j] - top);
}

PL__IN void list_round(float *s, int n)
{
    int j = 0;
    for (; j + 16 <= n; j += 16)
        v16_store(s + j, v16_round_bf(v16_load(s + j)));
    for (; j < n; j++)
        s[j] = pl_bf16_to_f32(pl_bf16_from_f32(s[j]));
}

enum { HEADS_AT_ONCE = 8 };

static void op_softmax(float *s, size_t stride, int heads, int n, const float *sink, float *den)
{
    for (int from = 0; from < heads; from += HEADS_AT_ONCE) {
        int count = heads - from < HEADS_AT_ONCE ? heads - from : HEADS_AT_ONCE;
        float *row = s + (size_t)from * stride, sum[HEADS_AT_ONCE] = {0}, top[HEADS_AT_ONCE];
        for (int h = 0; h < count; h++) {
            top[h] = list_max(row + (size_t)h * stride, n);
            list_exp(row + (size_t)h * stride, n, top[h]);
        }
        /* a sum in list order is a chain of additions: several heads side by side hide its latency */
        if (count == HEADS_AT_ONCE) {
            for (int j = 0; j < n; j++)
                for (int h = 0; h < HEADS_AT_ONCE; h++)
                    sum[h] += row[(size_t)h * stride + (size_t)j];
        } else {
            for (int h = 0; h < count; h++)
                for (int j = 0; j < n; j++)
                    sum[h] += row[(size_t)h * stride + (size_t)j];
        }
        for (int h = 0; h < count; h++) {
            den[from + h] = sum[h] + pl_expf(sink[from + h] - top[h]);
            list_round(row + (size_t)h * stride, n);
        }
    }
}

PL__IN void values_tile(pl_bf16 *o, const float *p, size_t stride, const float *den, int heads, const float *v, int n,
                        int dim, int vectors)
{
    v16 acc[4][4];
    for (int h = 0; h < heads; h++)
        for (int c = 0; c < vectors; c++)
            acc[h][c] = v16_zero();
    for (int j = 0; j < n; j++) {
        v16 vs[4];
        for (int c = 0; c < vectors; c++)
            vs[c] = v16_load(v + (size_t)j * (size_t)dim + 16 * c);
        for (int h = 0; h < heads; h++) {
            v16 ps = v16_set1(p[(size_t)h * stride + (size_t)j]);
            for (int c = 0; c < vectors; c++)
                acc[h][c] = v16_fma(ps, vs[c], acc[h][c]);
        }
    }
    for (int h = 0; h < heads; h++)
        for (int c = 0; c < vectors; c++)
            v16_store_bf(o + (size_t)h * (size_t)dim + 16 * c, v16_div(acc[h][c], v16_set1(den[h])));
}

static void op_values(pl_bf16 *o, const float *p, size_t stride, const float *den, int heads, const float *v, int n,
                      int dim)
{
    for (int c = 0; c < dim;) {
        int vectors = dim - c >= 16 * PL__TB ? PL__TB : 1;
        for (int h = 0; h < heads;) {
            int hs = heads - h >= PL__TA ? PL__TA : 1;
            pl_bf16 *oh = o + (size_t)h * (size_t)dim + c;
            const float *ph = p + (size_t)h * stride;
            if (hs == PL__TA && vectors == PL__TB)
                values_tile(oh, ph, stride, den + h, PL__TA, v + c, n, dim, PL__TB);
            else if (vectors == PL__TB)
                values_tile(oh, ph, stride, den + h, 1, v + c, n, dim, PL__TB);
            else
                for (int a = 0; a < hs; a++)
                    values_tile(oh + (size_t)a * (size_t)dim, ph + (size_t)a * stride, stride, den + h + a, 1, v + c, n,
                                dim, 1);
            h += hs;
        }
        c += 16 * vectors;
    }
}
