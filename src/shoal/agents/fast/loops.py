"""Compiled loops that the fast paths share. Without torch: a process that has not loaded it can compile them."""

from __future__ import annotations

import math

import numpy as np

from shoal.jit import entry
from shoal.jit.simd import FAST


@entry(fastmath=FAST)
def adam_step(flat, grads, first, second, lr, beta_1, beta_2, eps, count, max_norm):
    """Adam along the sum of grads [parts, n], shortened to `max_norm`; returns its norm, or 0 if that is infinite."""
    grad, f = grads[0], np.float32
    for part in range(1, len(grads)):
        for i in range(len(flat)):
            grad[i] += grads[part, i]
    norm, shorten = 0.0, f(1.0)
    if max_norm < math.inf:
        squares = f(0.0)
        for i in range(len(flat)):
            squares += grad[i] * grad[i]
        norm = math.sqrt(squares)
        if not math.isfinite(norm):
            return norm
        shorten = f(min(1.0, max_norm / (norm + 1e-6)))
    keep_1, keep_2 = f(1 - beta_1), f(1 - beta_2)
    rate, scale, eps_32 = f(lr / (1 - beta_1**count)), f(1 / (1 - beta_2**count)), f(eps)
    for i in range(len(flat)):
        g = grad[i] * shorten
        first[i] += keep_1 * (g - first[i])
        second[i] += keep_2 * (g * g - second[i])
        flat[i] -= rate * first[i] / (math.sqrt(second[i] * scale) + eps_32)
    return norm


@entry()
def spread(rows, next_at, inputs):
    """Copy obs and next_obs from rows [N, width] to where networks read them: inputs [2N, D], first all of obs."""
    n, width = len(rows), inputs.shape[1]
    for i in range(n):
        for d in range(width):
            inputs[i, d], inputs[n + i, d] = rows[i, d], rows[i, next_at + d]
