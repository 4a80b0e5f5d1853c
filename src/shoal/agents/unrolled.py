"""GRU and LSTM cells over whole sequences in which episodes end, with their gradients written out.

What one step adds to the autograd tape costs more than the step itself. So the loop over time is one function with one
gradient: everything that needs no state (the products with the inputs, the slopes of the gates, the gradients of the
weights) is computed for all steps at once, and a step is the one product that remains and a few operations around it.

Where few steps end an episode, torch's own LSTM is faster still, and runs from one of them to the next.

T steps, N sequences, H numbers of state. `carries` [T, N, 1] is 0 after a step that ended an episode, else 1.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F


def unroll(cell: nn.GRUCell | nn.LSTMCell, features: Tensor, state: Tensor, done: Tensor) -> Tensor:
    """Hidden states [T, N, H] of `cell` over features [T, N, F] from state [N, S], zeroed after steps in `done`."""
    if isinstance(cell, nn.LSTMCell) and _STRETCH * int(done.any(1).sum()) <= len(done):
        return _in_stretches(cell, features, state, done)
    carries = (~done).unsqueeze(-1).to(features.dtype)
    gates = F.linear(features, cell.weight_ih, cell.bias_ih)
    if isinstance(cell, nn.GRUCell):
        return _UnrolledGRU.apply(gates, state, cell.weight_hh, cell.bias_hh, carries)
    hidden, memory = state.chunk(2, -1)
    return _UnrolledLSTM.apply(gates + cell.bias_hh, hidden, memory, cell.weight_hh, carries)


_STRETCH = 8
"""Mean number of steps between two that end an episode from which torch's LSTM on stretches is the faster one."""


def _in_stretches(cell: nn.LSTMCell, features: Tensor, state: Tensor, done: Tensor) -> Tensor:
    """As `unroll`, by torch's LSTM over stretches in which no episode ends before their last step."""
    weights = [cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh]
    stops = sorted({*(done.any(1).nonzero()[:, 0] + 1).tolist(), len(done)})
    before = [part.unsqueeze(0).contiguous() for part in state.chunk(2, -1)]
    parts: list[Tensor] = []
    for start, stop in pairwise([0, *stops]):
        hidden, *after = torch.lstm(features[start:stop], before, weights, True, 1, 0.0, cell.training, False, False)
        parts.append(hidden)
        carries = (~done[stop - 1]).view(1, -1, 1)
        before = [part * carries for part in after]
    return torch.cat(parts)


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


class _UnrolledLSTM(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gates: Tensor, state: Tensor, memory: Tensor, weight: Tensor, carries: Tensor) -> Tensor:
        (count, size), turned = state.shape, weight.t()
        after, bent = gates.new_empty(2, len(gates), count, size)  # `bent` is tanh of the memory
        squashed = gates.clone()  # input, forget, proposed, output; `gates` belongs to others
        hidden_before, memory_before, cuts = [state], [memory], _cuts(carries)
        admits, keeps, proposals, shows = squashed.chunk(4, -1)
        rows = _by_step(squashed, squashed[..., : 2 * size], admits, keeps, proposals, shows, bent, after)
        for t, (row, both, admit, keep, propose, show, bend, out) in enumerate(rows):
            row.addmm_(hidden_before[t], turned)
            both.sigmoid_()
            propose.tanh_()
            show.sigmoid_()
            held = torch.mul(admit, propose).addcmul_(keep, memory_before[t])
            torch.tanh(held, out=bend)
            torch.mul(show, bend, out=out)
            cut = cuts[t]
            hidden_before.append(out if cut is None else out * cut)
            memory_before.append(held if cut is None else held * cut)
        befores = torch.stack(hidden_before[:-1]), torch.stack(memory_before[:-1])
        ctx.save_for_backward(weight, *befores, squashed, bent, carries)
        return after

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        weight, hidden_before, memory_before, squashed, bent, carries = ctx.saved_tensors
        steps, count, size = bent.shape
        admit, keep, propose, show = squashed.chunk(4, -1)
        of_memory, of_show = show * (1 - bent**2), bent * show * (1 - show)
        of_admit, of_keep = propose * admit * (1 - admit), memory_before * keep * (1 - keep)
        slopes = torch.stack([of_admit, of_keep, admit * (1 - propose**2)], 2)
        gates, cuts = torch.empty_like(squashed).view(steps, count, 4, size), _cuts(carries)
        hidden_back, memory_back = torch.zeros_like(bent[0]), torch.zeros_like(bent[0])
        rows = _by_step(grad, of_memory, slopes, of_show, keep, gates[:, :, :3], gates[:, :, 3], gates.flatten(2))
        for t in reversed(range(steps)):
            given, bend, slope, shown, kept, three, last, flat = rows[t]
            cut = cuts[t]
            if cut is not None:
                hidden_back, memory_back = hidden_back * cut, memory_back * cut
            hidden = given + hidden_back
            memory = torch.addcmul(memory_back, hidden, bend)
            torch.mul(memory.unsqueeze(1), slope, out=three)
            torch.mul(hidden, shown, out=last)
            memory_back = memory * kept
            hidden_back = flat @ weight
        flat = gates.view(steps * count, -1)
        return gates.flatten(2), hidden_back, memory_back, flat.t() @ hidden_before.flatten(0, 1), None
