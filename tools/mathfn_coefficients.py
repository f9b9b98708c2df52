#!/usr/bin/env python3
"""The constants of src/base/mathfn_body.h, from 60-digit arithmetic: `python3 tools/mathfn_coefficients.py`.

exp in float32: with e^r = 1 + r + r^2 (1/2 + r P(r)), P interpolates its function at the Chebyshev points of
|r| <= ln2 / 2 (close to the best polynomial of the degree); each coefficient is then rounded to float32. The other
polynomials there are Taylor series, whose coefficients the source spells out.
"""
import math
import struct
from decimal import Decimal as D, getcontext

getcontext().prec = 60
PI = D("3.14159265358979323846264338327950288419716939937510582097494459")
EDGE = D("0.34662")  # a little past ln2 / 2


def f32(x):
    return struct.unpack("f", struct.pack("f", float(x)))[0]


def series(first, step, start):
    total, term, k = D(0), first, start
    while abs(term) > D(10) ** -55:
        total += term
        k += 1
        term = step(term, k)
    return total


def cosine(x):
    return series(D(1), lambda t, k: -t * x * x / ((2 * k) * (2 * k - 1)), 0)


def p_exact(r):
    """((e^r - 1 - r) / r^2 - 1/2) / r"""
    return series(D(1) / 6, lambda t, k: t * r / k, 3)


def interpolate(f, edge, n):
    xs = [edge * cosine(PI * (2 * D(i) + 1) / (2 * n)) for i in range(n)]
    rows = [[x**j if j else D(1) for j in range(n)] + [f(x)] for x in xs]
    for i in range(n):
        best = max(range(i, n), key=lambda r: abs(rows[r][i]))
        rows[i], rows[best] = rows[best], rows[i]
        for r in range(n):
            if r != i:
                m = rows[r][i] / rows[i][i]
                rows[r] = [a - m * b for a, b in zip(rows[r], rows[i])]
    return [rows[i][n] / rows[i][i] for i in range(n)]


def main():
    c = [f32(x) for x in interpolate(p_exact, EDGE, 5)]
    print("exp, r^3 .. r^7:", *(x.hex() for x in c))
    worst = D(0)
    for i in range(-1000, 1001):
        r = EDGE * i / 1000
        p = sum(D(c[j]) * (r**j if j else 1) for j in range(5))
        worst = max(worst, abs((p - p_exact(r)) * r**3) / r.exp())
    print("exp, relative error of the polynomial: 2^%.1f" % math.log2(float(worst)))
    ln2 = D(2).ln()
    hi = D(int(ln2 * 2**16)) / 2**16
    print("ln2 in float32, high part of 16 bits:", float(hi).hex(), f32(ln2 - hi).hex(), "1/ln2:", f32(1 / ln2).hex())
    hi = D(int(ln2 * 2**42)) / 2**42
    print("ln2 in float64, high part of 42 bits:", float(hi).hex(), float(ln2 - hi).hex(), "1/ln2:", float(1 / ln2).hex())
    half = PI / 2
    print("pi/2 in two parts:", float(half).hex(), float(half - D(float(half))).hex(), "2/pi:", float(2 / PI).hex())


main()
