"""GRU and LSTM cells over whole sequences in which episodes end, with their gradients.

What one step adds to the autograd tape costs more than the step itself. So the loop over time is one function with one
gradient for a GRU: everything that needs no state (the products with the inputs, the slopes of the gates, the gradients
of the weights) is computed for all steps at once, and a step is the one product that remains and a few operations.

Torch's own LSTM is faster than such a loop, but knows no ends. An episode that begins within a sequence begins with a
state of zeros, as a sequence of its own would; so it is made one, and all episodes run side by side from their first
steps on.

T steps, N sequences, F numbers of input, H numbers of state. `carries` [T, N, 1] is 0 after a step that ended an
episode, else 1.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F


def unroll(cell: nn.GRUCell | nn.LSTMCell, features: Tensor, state: Tensor, done: Tensor) -> Tensor:
    """Hidden states [T, N, H] of `cell` over features [T, N, F] from state [N, S], zeroed after steps in `done`."""
    if isinstance(cell, nn.LSTMCell) and done[:-1].any():
        return _side_by_side(cell, features, state, done)
    if isinstance(cell, nn.LSTMCell):
        return _layer(cell, features, _parts(state))[0]
    carries = (~done).unsqueeze(-1).to(features.dtype)
    gates = F.linear(features, cell.weight_ih, cell.bias_ih)
    return _UnrolledGRU.apply(gates, state, cell.weight_hh, cell.bias_hh, carries)


def _parts(state: Tensor) -> list[Tensor]:
    """Hidden state and memory, [1, N, H] each, as torch's LSTM takes them."""
    return [part.unsqueeze(0).contiguous() for part in state.chunk(2, -1)]


def _layer(cell: nn.LSTMCell, features: Tensor, before: list[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Torch's LSTM with the weights of `cell`: hidden states [T, N, H], then what it ends with."""
    weights = [cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh]
    return torch.lstm(features, before, weights, True, 1, 0.0, cell.training, False, False)


def _side_by_side(cell: nn.LSTMCell, features: Tensor, state: Tensor, done: Tensor) -> Tensor:
    """As `unroll`: the longest episode in the first row, and rows left out as episodes come to their ends."""
    steps, count = done.shape
    begins = torch.ones_like(done)
    begins[1:] = done[:-1]
    lane, begin = begins.t().nonzero(as_tuple=True)  # every episode, or part of one
    is_last = torch.diff(lane, append=lane.new_full((1,), -1)) != 0
    length, order = (torch.where(is_last, steps, begin.roll(-1)) - begin).sort(descending=True, stable=True)
    lane, begin = lane[order], begin[order]
    age = torch.arange(int(length[0]), device=done.device).unsqueeze(1)
    runs = age < length
    source = (begin + torch.minimum(age, length - 1)) * count + lane  # rows of features; behind an end, its last one
    blocks = _blocks(runs.sum(1).tolist())
    sources = torch.cat([source[start:stop, :rows].flatten() for start, stop, rows in blocks])
    used = torch.cat([runs[start:stop, :rows].flatten() for start, stop, rows in blocks]).nonzero()[:, 0]
    places = used.new_empty(steps * count)
    places[sources[used]] = used
    before = [part.index_select(1, lane) * (begin == 0).view(1, -1, 1) for part in _parts(state)]
    laid = features.flatten(0, 1).index_select(0, sources)
    hidden: list[Tensor] = []
    for (start, stop, rows), part in zip(blocks, laid.split([(b - a) * n for a, b, n in blocks]), strict=True):
        before = [each[:, :rows].contiguous() for each in before]
        out, *before = _layer(cell, part.view(stop - start, rows, -1), before)
        hidden.append(out.flatten(0, 1))
    return torch.cat(hidden).index_select(0, places).view(steps, count, -1)


_CALL, _MOST = 84, 2048
"""A call of torch's LSTM costs as much as so many rows more in one of its steps; and above so many rows in all, what it
keeps for the gradient no longer fits into the cache (128 numbers of state, two virtual cores of an AMD EPYC)."""


def _blocks(running: list[int]) -> list[tuple[int, int, int]]:
    """(first age, age behind the last, rows) of calls; `running` is how many episodes get as old as that, falling."""
    blocks: list[tuple[int, int, int]] = []
    start = wasted = 0
    for age, count in enumerate(running):
        wasted += running[start] - count
        if wasted > _CALL or (age - start) * running[start] >= _MOST:
            blocks.append((start, age, running[start]))
            start, wasted = age, 0
    return [*blocks, (start, len(running), running[start])]


def _cuts(carries: Tensor) -> list[Tensor | None]:
    """For every step what the state is multiplied with after it, [N, 1], or None where no episode ended."""
    ended = (carries == 0).flatten(1).any(1).tolist()
    return [cut if some else None for cut, some in zip(carries.unbind(), ended, strict=True)]


def _by_step(*parts: Tensor) -> list[tuple[Tensor, ...]]:
    """The rows of parts [T, ...] for every step. Made one by one, these views would cost as much as the arithmetic."""
    return list(zip(*(part.unbind() for part in parts), strict=True))


class _UnrolledGRU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gates: Tensor, state: Tensor, weight: Tensor, bias: Tensor, carries: Tensor) -> Tensor:
        steps, count, size = len(gates), *state.shape
        of_gates, of_new = weight.split([2 * size, size])
        new_bias = bias[2 * size :]
        new, proposed, after = gates.new_empty(3, steps, count, size)
        squashed = gates[..., : 2 * size] + bias[: 2 * size]  # reset and update gates, once they are squashed
        before, cuts = [state], _cuts(carries)
        rows = _by_step(squashed, *squashed.chunk(2, -1), gates[..., 2 * size :], new, proposed, after)
        for t, (both, reset, update, offered, recalled, proposal, out) in enumerate(rows):
            hidden = before[t]
            both.addmm_(hidden, of_gates.t()).sigmoid_()
            torch.addmm(new_bias, hidden, of_new.t(), out=recalled)
            torch.addcmul(offered, reset, recalled, out=proposal).tanh_()
            torch.lerp(proposal, hidden, update, out=out)
            cut = cuts[t]
            before.append(out if cut is None else out * cut)
        ctx.save_for_backward(weight, torch.stack(before[:-1]), new, squashed, proposed, carries)
        return after

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        weight, before, new, squashed, proposed, carries = ctx.saved_tensors
        steps, count, _ = before.shape
        reset, update = squashed.chunk(2, -1)
        of_proposed = (1 - update) * (1 - proposed**2)
        of_reset, of_update = of_proposed * new * reset * (1 - reset), (before - proposed) * update * (1 - update)
        slopes = torch.stack([of_reset, of_update, of_proposed * reset], 2)
        hidden, recalled, cuts = torch.empty_like(before), torch.empty_like(slopes), _cuts(carries)
        carried = torch.zeros_like(before[0])
        rows = _by_step(grad, hidden, hidden.unsqueeze(2), slopes, recalled, recalled.flatten(2), update)
        for t in reversed(range(steps)):
            given, now, wide, slope, back, flat, kept = rows[t]
            cut = cuts[t]
            torch.add(given, carried if cut is None else carried * cut, out=now)
            torch.mul(wide, slope, out=back)
            carried = torch.mul(now, kept).addmm_(flat, weight)
        flat = recalled.view(steps * count, -1)
        of_weight, of_bias = flat.t() @ before.flatten(0, 1), flat.sum(0)
        recalled[:, :, 2] = hidden * of_proposed
        return recalled.flatten(2), carried, of_weight, of_bias, None
