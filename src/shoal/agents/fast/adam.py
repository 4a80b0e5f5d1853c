"""The step of Adam that the fast paths share: `FlatAdam.step` in one loop over the parameters.

Without torch: a process that has not loaded it can compile the loop.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from shoal.jit import entry
from shoal.jit.simd import FAST

if TYPE_CHECKING:
    from shoal.agents.adam import FlatAdam


class Stepper:
    """Steps of Adam in one loop over the parameters; `FlatAdam.step` is what it computes."""

    def __init__(self, adam: FlatAdam, grads: np.ndarray | None = None) -> None:
        """`grads` [parts, n] are gradients whose sum counts; without them, that of `adam` itself."""
        self.adam = adam
        self.grads = adam.grad.numpy()[None] if grads is None else grads
        self.flat, *self.moments = (t.numpy() for t in (adam.flat, adam.first_moment, adam.second_moment))

    def step(self, lr: float, max_norm: float = math.inf) -> float:
        """One step along the gradient, shortened to `max_norm`; returns the norm that it had (0 if nothing limits it).

        A norm that is not finite moves nothing. The gradient is not cleared: the next one replaces it.
        """
        adam = self.adam
        count = int(adam.num_updates) + 1
        norm = adam_step(self.flat, self.grads, *self.moments, lr, *adam.betas, adam.eps, count, max_norm)
        if math.isfinite(norm):
            adam.num_updates += 1
        return norm

    def clipped_step(self, lr: float, max_norm: float) -> float:
        """`step`, and clear the gradient, as `FlatAdam.clipped_step` does."""
        norm = self.step(lr, max_norm)
        self.adam.grad.zero_()
        return norm


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
