"""The network of SAC and DDDQN: several perceptrons side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn


class Towers(nn.Module):
    """`count` networks of the same sizes, ReLU between their layers. The weights of a layer are [count, in, out]."""

    def __init__(self, count: int, sizes: Sequence[int]) -> None:
        super().__init__()
        self.count, self.sizes = count, tuple(sizes)
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for inputs, outputs in pairwise(sizes):
            bound = 1 / math.sqrt(inputs)
            self.weights.append(torch.empty(count, inputs, outputs).uniform_(-bound, bound))
            self.biases.append(torch.empty(count, 1, outputs).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:
        """[N, in] -> [count, N, out]."""
        x = x.expand(self.count, *x.shape)
        last = len(self.weights) - 1
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = torch.baddbmm(bias, x, weight)
            if layer < last:
                x = torch.relu(x)
        return x
