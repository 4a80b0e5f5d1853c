"""Further distributions of `numpy.random.Generator` as kernel code, in NumPy's own order of draws and operations."""

from __future__ import annotations

import math

from shoal.port import pcg
from shoal.port.pcg import next_half, random, standard_exponential, standard_normal


def random_narrow(s):
    """A float32, of 24 bits."""
    return (next_half(s) >> 8) * 2.0**-24


def triangular(s, left, mode, right):
    assert left <= mode <= right
    assert left < right
    base, below = right - left, mode - left
    u = random(s)
    if u <= below / base:
        return left + math.sqrt(u * (below * base))
    return right - math.sqrt((1.0 - u) * ((right - mode) * base))


def rayleigh(s, scale):
    return scale * math.sqrt(2.0 * standard_exponential(s))


def weibull(s, a):
    return math.pow(standard_exponential(s), 1.0 / a) if a != 0.0 else 0.0


def pareto(s, a):
    return math.expm1(standard_exponential(s) / a)


def laplace(s, loc, scale):
    while True:
        u = random(s)
        if u >= 0.5:
            return loc - scale * math.log(2.0 - u - u)
        if u > 0.0:
            return loc + scale * math.log(u + u)


def gumbel(s, loc, scale):
    while True:
        u = 1.0 - random(s)
        if u < 1.0:
            return loc - scale * math.log(-math.log(u))


def logistic(s, loc, scale):
    while True:
        u = random(s)
        if u > 0.0:
            return loc + scale * math.log(u / (1.0 - u))


def geometric(s, p):
    """Tries up to the first success: search where that is likely, inversion where not."""
    assert 0.0 < p <= 1.0
    if p < 0.333333333333333333333333:
        return int(math.ceil(-standard_exponential(s) / math.log1p(-p)))  # noqa: RUF046 — a float in a kernel
    tries, total, chance, u = 1, p, p, random(s)
    while u > total:
        chance *= 1.0 - p
        total += chance
        tries += 1
    return tries


def standard_gamma(s, shape):
    """Marsaglia and Tsang 2000; Ahrens and Dieter 1974 for shapes below one."""
    assert shape >= 0.0
    if shape == 1.0:
        return standard_exponential(s)
    if shape == 0.0:
        return 0.0
    if shape < 1.0:
        while True:
            u = random(s)
            v = standard_exponential(s)
            if u <= 1.0 - shape:
                x = math.pow(u, 1.0 / shape)
                if x <= v:
                    return x
            else:
                y = -math.log((1.0 - u) / shape)
                x = math.pow(1.0 - shape + shape * y, 1.0 / shape)
                if x <= v + y:
                    return x
    b = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * b)
    while True:
        x = standard_normal(s)
        v = 1.0 + c * x
        if v <= 0.0:
            continue
        v = v * v * v
        u = random(s)
        if u < 1.0 - 0.0331 * (x * x) * (x * x) or math.log(u) < 0.5 * x * x + b * (1.0 - v + math.log(v)):
            return b * v


def gamma(s, shape, scale):
    return scale * standard_gamma(s, shape)


def chisquare(s, df):
    return 2.0 * standard_gamma(s, df / 2.0)


def beta(s, a, b):
    """Jöhnk 1964 where both are at most one; else two gammas."""
    assert min(a, b) > 0.0
    if a > 1.0 or b > 1.0:
        first = standard_gamma(s, a)
        return first / (first + standard_gamma(s, b))
    assert min(a, b) >= 3e-103
    while True:
        u = random(s)
        v = random(s)
        x, y = math.pow(u, 1.0 / a), math.pow(v, 1.0 / b)
        if x + y <= 1.0 and u + v > 0.0:
            if x + y > 0.0:
                return x / (x + y)
            log_x, log_y = math.log(u) / a, math.log(v) / b
            most = max(log_x, log_y)
            log_x, log_y = log_x - most, log_y - most
            return math.exp(log_x - math.log(math.exp(log_x) + math.exp(log_y)))


def negative_binomial(s, n, p):
    return pcg.poisson(s, gamma(s, n, (1.0 - p) / p))
