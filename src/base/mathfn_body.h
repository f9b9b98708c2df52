/* The body of our own transcendental functions, written once for every instruction set.
 *
 * Included by mathfn.h (scalar) and by mathfn_{avx2,avx512,neon,cuda}.h, each of which first defines the lanes and the
 * primitive operations below; this file undefines them again. There is no include guard: one inclusion a lane type.
 * Every operation is one IEEE operation rounded to nearest even, so the same inputs give the same bits everywhere.
 * Nothing here may be left to a compiler's contraction: a fused multiply-add is written VF_FMA or VD_FMA, and the
 * device version maps the plain operations to intrinsics that are never fused.
 *
 *   PLM(name)        the function's name for this lane type        PLM_FN   storage class and attributes
 *   VF, VI, VFM      float32 lanes, int32 lanes of the same count, float mask
 *   VD, VL, VDM      float64 lanes (a VF is one or two of them), int64 lanes, double mask
 *   VF_SET ADD SUB MUL DIV FMA(a,b,c)=a*b+c  GT(a,b)=a>b  EQ  SEL(m,a,b)=m?a:b  BITS OF ABS NEG
 *   VI_SET ADD SUB SHL(i,n) SAR(i,n)
 *   VD_SET ADD SUB MUL DIV FMA GT EQ SEL BITS OF ABS NEG
 *   VL_SET ADD SUB AND OR XOR SHL SHR(logical)
 *   VF_LANES LOAD(ptr) STORE(ptr, v) VFM_ANY(m)   for PLM_EXTRA
 *   VF_VIA_D(f, x)   apply the double function f to each half of x and round each result to float32 once
 *
 * Error bounds named here are those that tests/base/test_mathfn.c measures against double and long double. */

/* A NaN result is always the same NaN, because instruction sets differ in the payload and sign they hand on. */
PLM_FN VF PLM(_canon)(VF y)
{
    return VF_SEL(VF_EQ(y, y), y, VF_OF(VI_SET(0x7fc00000)));
}

PLM_FN VD PLM(_canon_d)(VD y)
{
    return VD_SEL(VD_EQ(y, y), y, VD_OF(VL_SET(0x7ff8000000000000)));
}

/* e^x for x in [-105, 90] as (*hi + *lo) * *s1 * *s2, the pair good to about 2^-28 and s1, s2 powers of two (two,
 * because one cannot reach both ends of the range). x = n ln2 + r, |r| <= ln2/2: n ln2 in two parts, the first exact;
 * e^r = 1 + r + r^2 (1/2 + r P(r)), P interpolating at Chebyshev points (tools/mathfn_coefficients.py). */
PLM_FN void PLM(_exp_core)(VF x, VF *hi, VF *lo, VF *s1, VF *s2)
{
    const VF magic = VF_SET(0x1.8p23f); /* adding it leaves the nearest integer in the low bits */
    VF z = VF_FMA(x, VF_SET(0x1.715476p+0f), magic);
    VF n = VF_NEG(VF_SUB(z, magic));
    VF r = VF_FMA(n, VF_SET(0x1.62e4p-1f), x);
    VF rh = VF_FMA(n, VF_SET(0x1.7f7d1cp-20f), r);
    VF rl = VF_FMA(n, VF_SET(0x1.7f7d1cp-20f), VF_SUB(r, rh));
    VF p = VF_SET(0x1.a0f87p-13f);
    p = VF_FMA(p, rh, VF_SET(0x1.6d110ep-10f));
    p = VF_FMA(p, rh, VF_SET(0x1.1110f6p-7f));
    p = VF_FMA(p, rh, VF_SET(0x1.55551ap-5f));
    p = VF_FMA(p, rh, VF_SET(0x1.555556p-3f));
    p = VF_FMA(p, rh, VF_SET(0.5f));
    VF q = VF_MUL(VF_MUL(rh, rh), p);
    *hi = VF_ADD(VF_SET(1.0f), rh);
    *lo = VF_ADD(VF_SUB(rh, VF_SUB(*hi, VF_SET(1.0f))), VF_ADD(q, rl));
    VI k = VI_SUB(VF_BITS(z), VI_SET(0x4b400000));
    VI h = VI_SAR(k, 1);
    *s1 = VF_OF(VI_SHL(VI_ADD(h, VI_SET(127)), 23));
    *s2 = VF_OF(VI_SHL(VI_ADD(VI_SUB(k, h), VI_SET(127)), 23));
}

/* e^x: within 0.7 ulp where the result is normal, within 1 ulp where it is denormal. exp(-inf) = 0, exp(inf) = inf. */
PLM_FN VF PLM(expf)(VF x)
{
    VF hi, lo, s1, s2;
    VF c = VF_SEL(VF_GT(x, VF_SET(90.0f)), VF_SET(90.0f), x);
    c = VF_SEL(VF_GT(VF_SET(-105.0f), c), VF_SET(-105.0f), c);
    PLM(_exp_core)(c, &hi, &lo, &s1, &s2);
    VF y = VF_MUL(VF_MUL(VF_ADD(hi, lo), s1), s2);
    return VF_SEL(VF_EQ(x, x), y, VF_OF(VI_SET(0x7fc00000)));
}

/* 1 / (1 + e^-x) as *q + *rest: with t = e^-|x| as a pair, the quotient t / (1 + t) or 1 / (1 + t) and its correction
 * from the exact remainder. */
PLM_FN void PLM(_sigmoid_core)(VF x, VF *q, VF *rest)
{
    const VF one = VF_SET(1.0f), zero = VF_SET(0.0f);
    VF hi, lo, s1, s2;
    VF c = VF_NEG(VF_ABS(x));
    c = VF_SEL(VF_GT(VF_SET(-105.0f), c), VF_SET(-105.0f), c);
    PLM(_exp_core)(c, &hi, &lo, &s1, &s2);
    VF h = VF_ADD(hi, lo);
    VF l = VF_SUB(lo, VF_SUB(h, hi));
    VF th = VF_MUL(VF_MUL(h, s1), s2);
    VF tl = VF_MUL(VF_MUL(l, s1), s2);
    VF d = VF_ADD(one, th);
    VF dl = VF_ADD(VF_SUB(th, VF_SUB(d, one)), tl);
    VFM below = VF_GT(zero, x);
    VF num = VF_SEL(below, th, one);
    VF numl = VF_SEL(below, tl, zero);
    VF inv = VF_DIV(one, d);
    *q = VF_MUL(num, inv);
    VF r = VF_FMA(VF_NEG(*q), d, num);
    r = VF_ADD(VF_FMA(VF_NEG(*q), dl, r), numl);
    *rest = VF_MUL(r, inv);
}

/* 1 / (1 + e^-x): within 0.7 ulp where the result is above 2^-100, within 1 ulp below. */
PLM_FN VF PLM(sigmoidf)(VF x)
{
    VF q, rest;
    PLM(_sigmoid_core)(x, &q, &rest);
    return PLM(_canon)(VF_SEL(VF_EQ(x, x), VF_ADD(q, rest), x));
}

/* x * sigmoid(x), the SiLU of model spec 3.7: within 0.75 ulp for results above 2^-100, 1.25 ulp for x > -87 (1.239 is
 * the worst of all floats there); below, the error is under 2e-43. silu(-inf) = -0 (the limit), silu(inf) = inf. */
PLM_FN VF PLM(siluf)(VF x)
{
    VF q, rest;
    PLM(_sigmoid_core)(x, &q, &rest);
    VFM low = VF_GT(VF_SET(-0x1p7f), x);                            /* sigmoid is 0 there, and -inf * 0 would be NaN */
    VF c = VF_SEL(VF_GT(x, VF_SET(0x1p127f)), VF_SET(0x1p127f), x); /* the correction is 0 there, and inf * 0 is not */
    VF y = VF_FMA(x, q, VF_MUL(c, rest));
    return PLM(_canon)(VF_SEL(low, VF_SET(-0.0f), y));
}

/* log(1 + f) + k ln2 with f in [-0.293, 0.415]: s = f / (2 + f), log(1 + f) = f - f^2/2 + s (f^2/2 + R(s^2)), where R
 * is the series of the inverse hyperbolic tangent, cut where double ends. */
PLM_FN VD PLM(_log_core)(VD f, VD k)
{
    VD s = VD_DIV(f, VD_ADD(VD_SET(2.0), f));
    VD z = VD_MUL(s, s);
    VD r = VD_SET(2.0 / 21);
    r = VD_FMA(r, z, VD_SET(2.0 / 19));
    r = VD_FMA(r, z, VD_SET(2.0 / 17));
    r = VD_FMA(r, z, VD_SET(2.0 / 15));
    r = VD_FMA(r, z, VD_SET(2.0 / 13));
    r = VD_FMA(r, z, VD_SET(2.0 / 11));
    r = VD_FMA(r, z, VD_SET(2.0 / 9));
    r = VD_FMA(r, z, VD_SET(2.0 / 7));
    r = VD_FMA(r, z, VD_SET(2.0 / 5));
    r = VD_FMA(r, z, VD_SET(2.0 / 3));
    r = VD_MUL(r, z);
    VD half = VD_MUL(VD_MUL(VD_SET(0.5), f), f);
    VD low = VD_FMA(k, VD_SET(0x1.ef35793c76730p-45), VD_MUL(s, VD_ADD(half, r)));
    VD y = VD_SUB(VD_SUB(half, low), f);
    return VD_FMA(k, VD_SET(0x1.62e42fefa3800p-1), VD_NEG(y));
}

/* Natural logarithm in double, within 1 ulp (of double). log(0) = -inf, log(inf) = inf, log(x < 0) = NaN. */
PLM_FN VD PLM(log)(VD x)
{
    VDM tiny = VD_GT(VD_SET(0x1p-1022), x);
    VD m = VD_SEL(tiny, VD_MUL(x, VD_SET(0x1p54)), x);
    VL t = VL_ADD(VD_BITS(m), VL_SET(0x3ff0000000000000 - 0x3fe6a09e00000000));
    /* the exponent as a double: its bits under those of 2^52, then 2^52 and the bias off */
    VD k = VD_OF(VL_OR(VL_AND(VL_SHR(t, 52), VL_SET(0x7ff)), VL_SET(0x4330000000000000)));
    k = VD_SUB(k, VD_SEL(tiny, VD_SET(0x1p52 + 1023 + 54), VD_SET(0x1p52 + 1023)));
    VD one_f = VD_OF(VL_ADD(VL_AND(t, VL_SET(0x000fffffffffffff)), VL_SET(0x3fe6a09e00000000)));
    VD y = PLM(_log_core)(VD_SUB(one_f, VD_SET(1.0)), k);
    const VD inf = VD_OF(VL_SET(0x7ff0000000000000));
    y = VD_SEL(VD_EQ(x, inf), inf, y);
    y = VD_SEL(VD_EQ(x, VD_SET(0.0)), VD_NEG(inf), y);
    y = VD_SEL(VD_GT(VD_SET(0.0), x), VD_SUB(inf, inf), y);
    return PLM(_canon_d)(VD_SEL(VD_EQ(x, x), y, x));
}

/* e^x in double, within 1 ulp of double where the result is normal: the Taylor series on |r| <= ln2/2. */
PLM_FN VD PLM(exp)(VD x)
{
    const VD magic = VD_SET(0x1.8p52);
    VD c = VD_SEL(VD_GT(x, VD_SET(720.0)), VD_SET(720.0), x);
    c = VD_SEL(VD_GT(VD_SET(-760.0), c), VD_SET(-760.0), c);
    VD z = VD_FMA(c, VD_SET(0x1.71547652b82fep+0), magic);
    VD n = VD_NEG(VD_SUB(z, magic));
    VD r = VD_FMA(n, VD_SET(0x1.62e42fefa3800p-1), c);
    VD rh = VD_FMA(n, VD_SET(0x1.ef35793c76730p-45), r);
    VD rl = VD_FMA(n, VD_SET(0x1.ef35793c76730p-45), VD_SUB(r, rh));
    VD p = VD_SET(1.0 / 6227020800);
    p = VD_FMA(p, rh, VD_SET(1.0 / 479001600));
    p = VD_FMA(p, rh, VD_SET(1.0 / 39916800));
    p = VD_FMA(p, rh, VD_SET(1.0 / 3628800));
    p = VD_FMA(p, rh, VD_SET(1.0 / 362880));
    p = VD_FMA(p, rh, VD_SET(1.0 / 40320));
    p = VD_FMA(p, rh, VD_SET(1.0 / 5040));
    p = VD_FMA(p, rh, VD_SET(1.0 / 720));
    p = VD_FMA(p, rh, VD_SET(1.0 / 120));
    p = VD_FMA(p, rh, VD_SET(1.0 / 24));
    p = VD_FMA(p, rh, VD_SET(1.0 / 6));
    p = VD_FMA(p, rh, VD_SET(0.5));
    VD q = VD_FMA(VD_MUL(rh, rh), p, rl);
    VD hi = VD_ADD(VD_SET(1.0), rh);
    VD lo = VD_ADD(VD_SUB(rh, VD_SUB(hi, VD_SET(1.0))), q);
    /* the low bits of z hold n; halves of it made with a logical shift, which every instruction set has for 64 bits */
    VL k = VL_ADD(VL_SUB(VD_BITS(z), VD_BITS(magic)), VL_SET(2048));
    VL h = VL_SHR(k, 1);
    VD s1 = VD_OF(VL_SHL(VL_SUB(h, VL_SET(1024 - 1023)), 52));
    VD s2 = VD_OF(VL_SHL(VL_SUB(VL_SUB(k, h), VL_SET(1024 - 1023)), 52));
    return PLM(_canon_d)(VD_MUL(VD_MUL(VD_ADD(hi, lo), s1), s2));
}

/* log(1 + e^x) in double, identity above 20 (model spec 3.7). For x <= 20 the sum 1 + t, t = e^x, is split as
 * 2^k (1 + f) without rounding away t: log1p(e^x) = max(x, 0) + log1p(e^-|x|), and there t <= 1. */
PLM_FN VD PLM(_softplus_d)(VD x)
{
    const VD one = VD_SET(1.0), zero = VD_SET(0.0);
    VD t = PLM(exp)(VD_NEG(VD_ABS(x)));
    VDM big = VD_GT(t, VD_SET(0.4142135623730950));
    VD f = VD_SEL(big, VD_MUL(VD_SUB(t, one), VD_SET(0.5)), t);
    VD y = PLM(_log_core)(f, VD_SEL(big, one, zero));
    y = VD_ADD(VD_SEL(VD_GT(x, zero), x, zero), y);
    return VD_SEL(VD_GT(x, VD_SET(20.0)), x, VD_SEL(VD_EQ(x, x), y, x));
}

/* sin and cos in double of |x| <= 2^32 (NaN beyond: positions are below 2^31 and no frequency is above 1). x - n pi/2
 * in two fused steps is good to 2^-70 there; then the Taylor series on |r| <= pi/4. */
PLM_FN void PLM(_sincos_core)(VD x, VD *sine, VD *cosine)
{
    const VD magic = VD_SET(0x1.8p52), one = VD_SET(1.0);
    VD z = VD_FMA(x, VD_SET(0x1.45f306dc9c883p-1), magic);
    VD n = VD_NEG(VD_SUB(z, magic));
    VD r = VD_FMA(n, VD_SET(0x1.921fb54442d18p+0), x);
    r = VD_FMA(n, VD_SET(0x1.1a62633145c07p-54), r);
    VD w = VD_MUL(r, r);
    VD s = VD_SET(-1.0 / 1307674368000);
    s = VD_FMA(s, w, VD_SET(1.0 / 6227020800));
    s = VD_FMA(s, w, VD_SET(-1.0 / 39916800));
    s = VD_FMA(s, w, VD_SET(1.0 / 362880));
    s = VD_FMA(s, w, VD_SET(-1.0 / 5040));
    s = VD_FMA(s, w, VD_SET(1.0 / 120));
    s = VD_FMA(s, w, VD_SET(-1.0 / 6));
    s = VD_MUL(r, VD_FMA(s, w, one));
    VD c = VD_SET(1.0 / 20922789888000);
    c = VD_FMA(c, w, VD_SET(-1.0 / 87178291200));
    c = VD_FMA(c, w, VD_SET(1.0 / 479001600));
    c = VD_FMA(c, w, VD_SET(-1.0 / 3628800));
    c = VD_FMA(c, w, VD_SET(1.0 / 40320));
    c = VD_FMA(c, w, VD_SET(-1.0 / 720));
    c = VD_FMA(c, w, VD_SET(1.0 / 24));
    c = VD_FMA(c, w, VD_SET(-0.5));
    c = VD_FMA(c, w, one);
    VL q = VD_BITS(z);
    VDM even = VD_EQ(VD_OF(VL_OR(VL_AND(q, VL_SET(1)), VL_SET(0x3ff0000000000000))), one);
    VL sign_s = VL_SHL(VL_AND(q, VL_SET(2)), 62);
    VL sign_c = VL_SHL(VL_AND(VL_ADD(q, VL_SET(1)), VL_SET(2)), 62);
    VDM fits = VD_GT(VD_SET(0x1p32 + 1), VD_ABS(x));
    const VD nan = VD_OF(VL_SET(0x7ff8000000000000));
    *sine = VD_SEL(fits, VD_OF(VL_XOR(VD_BITS(VD_SEL(even, s, c)), sign_s)), nan);
    *cosine = VD_SEL(fits, VD_OF(VL_XOR(VD_BITS(VD_SEL(even, c, s)), sign_c)), nan);
}

PLM_FN VD PLM(_sin_d)(VD x)
{
    VD s, c;
    PLM(_sincos_core)(x, &s, &c);
    return s;
}

PLM_FN VD PLM(_cos_d)(VD x)
{
    VD s, c;
    PLM(_sincos_core)(x, &s, &c);
    return c;
}

/* These round a double result once: correctly rounded but for about one input in 2^27. */
PLM_FN VF PLM(logf)(VF x)
{
    return PLM(_canon)(VF_VIA_D(PLM(log), x));
}

PLM_FN VF PLM(softplusf)(VF x)
{
    return PLM(_canon)(VF_VIA_D(PLM(_softplus_d), x));
}

PLM_FN VF PLM(sinf)(VF x)
{
    return PLM(_canon)(VF_VIA_D(PLM(_sin_d), x));
}

PLM_FN VF PLM(cosf)(VF x)
{
    return PLM(_canon)(VF_VIA_D(PLM(_cos_d), x));
}

/* A file may add functions of its own in the same terms (base/rowmath_body.h does). */
#ifdef PLM_EXTRA
#include PLM_EXTRA
#endif

#undef PLM
#undef PLM_FN
#undef VF_LANES
#undef VF_LOAD
#undef VF_STORE
#undef VFM_ANY
#undef PLM_EXTRA
#undef VF
#undef VI
#undef VFM
#undef VD
#undef VL
#undef VDM
#undef VF_SET
#undef VF_ADD
#undef VF_SUB
#undef VF_MUL
#undef VF_DIV
#undef VF_FMA
#undef VF_GT
#undef VF_EQ
#undef VF_SEL
#undef VF_BITS
#undef VF_OF
#undef VF_ABS
#undef VF_NEG
#undef VI_SET
#undef VI_ADD
#undef VI_SUB
#undef VI_SHL
#undef VI_SAR
#undef VD_SET
#undef VD_ADD
#undef VD_SUB
#undef VD_MUL
#undef VD_DIV
#undef VD_FMA
#undef VD_GT
#undef VD_EQ
#undef VD_SEL
#undef VD_BITS
#undef VD_OF
#undef VD_ABS
#undef VD_NEG
#undef VL_SET
#undef VL_ADD
#undef VL_SUB
#undef VL_AND
#undef VL_OR
#undef VL_XOR
#undef VL_SHL
#undef VL_SHR
#undef VF_VIA_D
