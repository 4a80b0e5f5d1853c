"""GRU and LSTM cells over whole sequences in which episodes end, with their gradients written out.

What one step adds to the autograd tape costs more than the step itself. So the loop over time is one function with one
gradient: everything that needs no state (the products with the inputs, the slopes of the gates, the gradients of the
weights) is computed for all steps at once, and a step is the one product that remains and a few operations around it.

T steps, N sequences, H numbers of state. `carries` [T, N, 1] is 0 after a step that ended an episode, else 1.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F


def unroll(cell: nn.GRUCell | nn.LSTMCell, features: Tensor, state: Tensor, done: Tensor) -> Tensor:
    """Hidden states [T, N, H] of `cell` over features [T, N, F] from state [N, S], zeroed after steps in `done`."""
    carries = (~done).unsqueeze(-1).to(features.dtype)
    gates = F.linear(features, cell.weight_ih, cell.bias_ih)
    if isinstance(cell, nn.GRUCell):
        return _UnrolledGRU.apply(gates, state, cell.weight_hh, cell.bias_hh, carries)
    hidden, memory = state.chunk(2, -1)
    return _UnrolledLSTM.apply(gates + cell.bias_hh, hidden, memory, cell.weight_hh, carries)


class _UnrolledGRU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gates: Tensor, state: Tensor, weight: Tensor, bias: Tensor, carries: Tensor) -> Tensor:
        steps, count, size = len(gates), *state.shape
        turned = weight.t()
        before, after = gates.new_empty(steps, count, size), gates.new_empty(steps, count, size)
        recalled = gates.new_empty(steps, count, 3 * size)  # of the state, before the reset gate
        squashed = gates.new_empty(steps, count, 2 * size)  # reset and update gates
        proposed = gates.new_empty(steps, count, size)
        before[0] = state
        for t in range(steps):
            torch.addmm(bias, before[t], turned, out=recalled[t])
            torch.add(gates[t, :, : 2 * size], recalled[t, :, : 2 * size], out=squashed[t]).sigmoid_()
            reset, update = squashed[t, :, :size], squashed[t, :, size:]
            new = recalled[t, :, 2 * size :]
            torch.addcmul(gates[t, :, 2 * size :], reset, new, out=proposed[t]).tanh_()
            torch.lerp(proposed[t], before[t], update, out=after[t])
            if t + 1 < steps:
                torch.mul(after[t], carries[t], out=before[t + 1])
        ctx.save_for_backward(weight, before, recalled[..., 2 * size :], squashed, proposed, carries)
        return after

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        weight, before, new, squashed, proposed, carries = ctx.saved_tensors
        (steps, count, _), grad = before.shape, grad.contiguous()
        reset, update = squashed.chunk(2, -1)
        of_proposed = (1 - update) * (1 - proposed**2)
        slopes = torch.stack(
            [of_proposed * new * reset * (1 - reset), (before - proposed) * update * (1 - update), of_proposed * reset],
            2,
        )
        recalled, hidden = torch.empty_like(slopes), torch.empty_like(before)
        carried = torch.zeros_like(before[0])
        for t in reversed(range(steps)):
            torch.addcmul(grad[t], carried, carries[t], out=hidden[t])
            torch.mul(hidden[t].unsqueeze(1), slopes[t], out=recalled[t])
            carried = torch.addmm(hidden[t] * update[t], recalled[t].view(count, -1), weight)
        rows = recalled.view(steps * count, -1)
        gates = recalled.clone()
        gates[:, :, 2] = hidden * of_proposed
        return gates.flatten(2), carried, rows.t() @ before.flatten(0, 1), rows.sum(0), None


class _UnrolledLSTM(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gates: Tensor, state: Tensor, memory: Tensor, weight: Tensor, carries: Tensor) -> Tensor:
        steps, count, size = len(gates), *state.shape
        turned = weight.t()
        hidden_before, memory_before = gates.new_empty(2, steps, count, size)
        after, bent = gates.new_empty(2, steps, count, size)  # `bent` is tanh of the memory
        squashed = torch.empty_like(gates)  # input, forget, proposed, output
        hidden_before[0], memory_before[0] = state, memory
        for t in range(steps):
            torch.addmm(gates[t], hidden_before[t], turned, out=squashed[t])
            squashed[t, :, : 2 * size].sigmoid_()
            squashed[t, :, 2 * size : 3 * size].tanh_()
            squashed[t, :, 3 * size :].sigmoid_()
            admit, keep, propose, show = squashed[t].chunk(4, -1)
            kept = torch.addcmul(admit * propose, keep, memory_before[t])
            torch.tanh(kept, out=bent[t])
            torch.mul(show, bent[t], out=after[t])
            if t + 1 < steps:
                torch.mul(after[t], carries[t], out=hidden_before[t + 1])
                torch.mul(kept, carries[t], out=memory_before[t + 1])
        ctx.save_for_backward(weight, hidden_before, memory_before, squashed, bent, carries)
        return after

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        weight, hidden_before, memory_before, squashed, bent, carries = ctx.saved_tensors
        (steps, count, size), grad = bent.shape, grad.contiguous()
        admit, keep, propose, show = squashed.chunk(4, -1)
        of_memory = show * (1 - bent**2)
        slopes = torch.stack(
            [propose * admit * (1 - admit), memory_before * keep * (1 - keep), admit * (1 - propose**2)], 2
        )
        of_show = bent * show * (1 - show)
        gates = torch.empty_like(squashed).view(steps, count, 4, size)
        carried_hidden, carried_memory = torch.zeros_like(bent[0]), torch.zeros_like(bent[0])
        for t in reversed(range(steps)):
            hidden = torch.addcmul(grad[t], carried_hidden, carries[t])
            memory = torch.addcmul(carried_memory * carries[t], hidden, of_memory[t])
            torch.mul(memory.unsqueeze(1), slopes[t], out=gates[t, :, :3])
            torch.mul(hidden, of_show[t], out=gates[t, :, 3])
            carried_memory = memory * keep[t]
            carried_hidden = gates[t].view(count, -1) @ weight
        rows = gates.view(steps * count, -1)
        return gates.flatten(2), carried_hidden, carried_memory, rows.t() @ hidden_before.flatten(0, 1), None
