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


class Pass:
    """What one pass over `rows` rows needs to be taken back: the activations, and room for slopes.

    A slope is the derivative of the loss by the number in the same place.
    """

    def __init__(self, towers: Towers, rows: int) -> None:
        count, sizes = towers.count, towers.sizes
        self.weights = [p.data for p in towers.weights]  # [K, in, out] each
        self.biases = [p.data for p in towers.biases]
        self.towers = towers
        self.hidden = [torch.zeros(count, rows, width) for width in sizes[1:-1]]
        self.out = torch.zeros(count, rows, sizes[-1])
        self.slopes = [torch.zeros(count, rows, width) for width in sizes[1:-1]]
        self.x: Tensor = self.out

    def forward(self, x: Tensor) -> Tensor:
        """x [N, in] -> [K, N, out], which stays valid until the next call. x must not change before `backward`."""
        self.x = x = x.expand(self.towers.count, *x.shape)
        for weight, bias, hidden in zip(self.weights, self.biases, self.hidden, strict=False):
            torch.baddbmm(bias, x, weight, out=hidden)
            x = hidden.relu_()
        return torch.baddbmm(self.biases[-1], x, self.weights[-1], out=self.out)

    def descend(self, slope: Tensor, learn: bool = True, rows: int | None = None) -> Tensor:
        """From the slope of the outputs [K, N, out] to that of the first hidden layer [K, N, hidden].

        With `learn`, gradients go to the parameters' own, replacing what was there. `rows` takes only the first ones.
        """
        inputs = [self.x, *self.hidden]
        for layer in range(len(self.weights) - 1, 0, -1):
            below, target = inputs[layer][:, :rows], self.slopes[layer - 1][:, :rows]
            if learn:
                self._learn(layer, below, slope)
            if slope.shape[-1] == 1:
                torch.mul(slope, self.weights[layer].transpose(1, 2), out=target)
            else:
                torch.bmm(slope, self.weights[layer].transpose(1, 2), out=target)
            torch.ops.aten.threshold_backward.grad_input(target, below, 0, grad_input=target)
            slope = target
        if learn:
            self._learn(0, self.x[:, :rows], slope)
        return slope

    def _learn(self, layer: int, below: Tensor, slope: Tensor) -> None:
        weight_grad, bias_grad = self.towers.weights[layer].grad, self.towers.biases[layer].grad
        assert weight_grad is not None
        assert bias_grad is not None
        torch.bmm(below.transpose(1, 2), slope, out=weight_grad)
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
        _adam(*self.arrays, lr, *adam.betas, adam.eps, int(adam.num_updates), max_norm)


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
