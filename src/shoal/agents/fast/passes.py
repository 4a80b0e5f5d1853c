"""What the fast paths of SAC and DDDQN share: passes of `Towers` forward and back on buffers that are made once."""

from __future__ import annotations

import torch
from torch import Tensor

from shoal.agents.towers import Towers
from shoal.jit import entry

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


@entry()
def spread(rows, next_at, inputs):
    """Copy obs and next_obs from rows [N, width] to where networks read them: inputs [2N, D], first all of obs."""
    n, width = len(rows), inputs.shape[1]
    for i in range(n):
        for d in range(width):
            inputs[i, d], inputs[n + i, d] = rows[i, d], rows[i, next_at + d]
