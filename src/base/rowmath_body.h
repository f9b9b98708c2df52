/* The loops of rowmath.h for one lane type: PLM_EXTRA of mathfn_body.h. The file that includes it defines PL_ROWMATH,
 * the name of the table. Elements past the last whole vector go through the scalar functions: the same bits. */

static void PLM(map_row)(pl_rowfn fn, float *y, const float *x, size_t n)
{
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES) {
        VF v = VF_LOAD(x + i);
        switch (fn) {
        case PL_ROW_EXP: v = PLM(expf)(v); break;
        case PL_ROW_SIGMOID: v = PLM(sigmoidf)(v); break;
        case PL_ROW_SILU: v = PLM(siluf)(v); break;
        case PL_ROW_SOFTPLUS: v = PLM(softplusf)(v); break;
        case PL_ROW_LOG: v = PLM(logf)(v); break;
        case PL_ROW_SIN: v = PLM(sinf)(v); break;
        case PL_ROW_COS:
        default: v = PLM(cosf)(v); break;
        }
        VF_STORE(y + i, v);
    }
    for (; i < n; i++) {
        float v[VF_LANES];
        for (int k = 0; k < VF_LANES; k++)
            v[k] = x[i];
        PLM(map_row)(fn, v, v, VF_LANES);
        y[i] = v[0];
    }
}

static float PLM(max_row)(const float *x, size_t n, bool *odd)
{
    VF best = VF_SET(-__builtin_inff());
    VF top = VF_SET(-__builtin_inff()); /* the largest with NaN seen as +inf: one compare finds both kinds of oddity */
    const VF inf = VF_SET(__builtin_inff());
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES) {
        VF v = VF_LOAD(x + i);
        best = VF_SEL(VF_GT(v, best), v, best);
        VF w = VF_SEL(VF_EQ(v, v), v, inf);
        top = VF_SEL(VF_GT(w, top), w, top);
    }
    *odd = VFM_ANY(VF_EQ(top, inf));
    float lane[VF_LANES], m = -__builtin_inff();
    VF_STORE(lane, best);
    for (int k = 0; k < VF_LANES; k++)
        m = lane[k] > m ? lane[k] : m;
    for (; i < n; i++) {
        m = x[i] > m ? x[i] : m;
        if (!(x[i] < __builtin_inff()))
            *odd = true;
    }
    return m + 0.0f; /* -0 becomes +0: which of the two comes first would depend on the lanes */
}

static void PLM(exp_row)(float *p, const float *x, size_t n, float top, float t)
{
    const VF vtop = VF_SET(top), vt = VF_SET(t);
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES)
        VF_STORE(p + i, PLM(expf)(VF_DIV(VF_SUB(VF_LOAD(x + i), vtop), vt)));
    for (; i < n; i++)
        p[i] = pl_expf((x[i] - top) / t);
}

static double PLM(exp_sum)(const float *x, size_t n, float top)
{
    double sum[16] = {0};
    const VF vtop = VF_SET(top);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        float p[16];
        for (int k = 0; k < 16; k += VF_LANES)
            VF_STORE(p + k, PLM(expf)(VF_SUB(VF_LOAD(x + i + k), vtop)));
        for (int k = 0; k < 16; k++)
            sum[k] += (double)p[k];
    }
    for (int k = 0; i < n; i++, k++)
        sum[k] += (double)pl_expf(x[i] - top);
    for (int half = 8; half > 0; half /= 2)
        for (int k = 0; k < half; k++)
            sum[k] += sum[k + half];
    return sum[0];
}

const pl_rowmath PL_ROWMATH = {PL_ROWMATH_NAME, PLM(map_row), PLM(max_row), PLM(exp_row), PLM(exp_sum)};
