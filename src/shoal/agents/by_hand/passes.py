"""A forward pass of `Towers`, its backward pass, and a step of Adam, without allocating anything."""

from __future__ import annotations

import math

import numpy as np
import torch
from numba import njit
from torch import Tensor

from shoal.agents.adam import FlatAdam
from shoal.agents.towers import Towers

_FAST = {"reassoc", "contract", "arcp", "nsz"}
_threshold_backward = torch.ops.aten.threshold_backward.grad_input


class Pass:
    """One pass of `towers` over the rows that lie in `x` [N, in], and the way back.

    Everything is a view or a buffer that is made once: of an update of a few milliseconds, slicing and transposing
    would be a good part. A slope is the derivative of the loss by the number in the same place. `like` is another pass
    whose buffers may be used, as it is never on its way back at the same time.
    """

    def __init__(self, towers: Towers, x: Tensor, back_rows: int | None = None, like: Pass | None = None) -> None:
        """Only the first `back_rows` rows are taken back, all if it is None."""
        count, rows, sizes = towers.count, len(x), towers.sizes
        widths = sizes[1:-1]
        self.hidden: list[Tensor] = like.hidden if like else [torch.zeros(count, rows, width) for width in widths]
        self.slopes: list[Tensor] = like.slopes if like else [torch.zeros(count, rows, width) for width in widths]
        self.out = torch.zeros(count, rows, sizes[-1])
        weights, biases = [p.data for p in towers.weights], [p.data for p in towers.biases]
        inputs = [x.expand(count, *x.shape), *self.hidden]
        outputs = [*self.hidden, self.out]
        self._forward = list(zip(biases, inputs, weights, outputs, strict=True))
        kept = slice(back_rows)
        self._below = [part[:, kept] for part in inputs]
        self._below_turned = [part.transpose(1, 2) for part in self._below]
        self._weights_turned = [weight.transpose(1, 2) for weight in weights]
        self._slopes = [part[:, kept] for part in self.slopes]
        self._grads = [(w.grad, b.grad) for w, b in zip(towers.weights, towers.biases, strict=True)]

    def forward(self) -> Tensor:
        """The outputs [K, N, out] for what lies in `x` now; valid until the next call."""
        for bias, x, weight, out in self._forward[:-1]:
            torch.baddbmm(bias, x, weight, out=out).relu_()
        bias, x, weight, out = self._forward[-1]
        return torch.baddbmm(bias, x, weight, out=out)

    def descend(self, slope: Tensor, learn: bool = True) -> Tensor:
        """From the slope of the outputs [K, N, out] to that of the first hidden layer [K, N, hidden].

        With `learn`, gradients go to the parameters' own, replacing what was there.
        """
        for layer in range(len(self._forward) - 1, 0, -1):
            if learn:
                self._learn(layer, slope)
            target = self._slopes[layer - 1]
            product = torch.mul if slope.shape[-1] == 1 else torch.bmm
            product(slope, self._weights_turned[layer], out=target)
            _threshold_backward(target, self._below[layer], 0, grad_input=target)
            slope = target
        if learn:
            self._learn(0, slope)
        return slope

    def _learn(self, layer: int, slope: Tensor) -> None:
        weight_grad, bias_grad = self._grads[layer]
        torch.bmm(self._below_turned[layer], slope, out=weight_grad)
        torch.sum(slope, 1, keepdim=True, out=bias_grad)


class Stepper:
    """Steps of Adam along the gradient that `Pass.descend` left, in one loop over the parameters."""

    def __init__(self, adam: FlatAdam) -> None:
        self.adam = adam
        self.arrays = tuple(t.numpy() for t in (adam.flat, adam.grad, adam.first_moment, adam.second_moment))

    def step(self, lr: float, max_norm: float = math.inf) -> None:
        """One step. Unlike `FlatAdam.step` it leaves the gradient as it is: the next one replaces it."""
        adam = self.adam
        adam.num_updates += 1
        flat, grad, first, second = self.arrays
        beta_1, beta_2 = adam.betas
        _adam(flat, grad, first, second, lr, beta_1, beta_2, adam.eps, int(adam.num_updates), max_norm)


@njit(cache=True, nogil=True, fastmath=_FAST)
def _adam(flat, grad, first, second, lr, beta_1, beta_2, eps, count, max_norm):
    """Adam along grad [n], shortened to `max_norm`."""
    f = np.float32
    shorten = f(1.0)
    if max_norm < math.inf:
        squares = f(0.0)
        for i in range(len(flat)):
            squares += grad[i] * grad[i]
        shorten = f(min(1.0, max_norm / (math.sqrt(squares) + 1e-6)))
    keep_1, keep_2 = f(1 - beta_1), f(1 - beta_2)
    rate, scale, eps_32 = f(lr / (1 - beta_1**count)), f(1 / (1 - beta_2**count)), f(eps)
    for i in range(len(flat)):
        g = grad[i] * shorten
        first[i] += keep_1 * (g - first[i])
        second[i] += keep_2 * (g * g - second[i])
        flat[i] -= rate * first[i] / (math.sqrt(second[i] * scale) + eps_32)
