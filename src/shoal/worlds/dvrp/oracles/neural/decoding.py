"""From scores to routes: greedy, by sampling, or from many starts, and the best of several."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from shoal.worlds.dvrp.oracles.neural import construction
from shoal.worlds.dvrp.oracles.neural.construction import Moves, Problem, State
from shoal.worlds.dvrp.oracles.neural.model import AttentionModel, Memory

Noise = Callable[[int, Tensor, int], Tensor]
"""(step, rows [R], number of nodes N) -> [R, N] Gumbel noise: the argmax of logits plus noise is a draw."""


class Routes(NamedTuple):
    """Finished rows."""

    sequence: Tensor  # [B, T] nodes in order of service, 0 for every return to the depot and as padding
    length: Tensor  # [B] cost of driving
    vehicles: Tensor  # [B]


class Replay(NamedTuple):
    """Everything that the decoder sees at every step of given sequences, [B, T, ...]."""

    here: Tensor
    aboard: Tensor
    numbers: Tensor
    moves: Tensor
    allowed: Tensor
    going: Tensor  # [B, T] bool: the row was not finished yet


@torch.no_grad()
def rollout(
    model: AttentionModel, memory: Memory, problem: Problem, noise: Noise | None = None, first: Tensor | None = None
) -> Routes:
    """Build routes step by step until every row is done.

    Args:
        noise: makes the choice of the next stop a draw from the policy; None takes the likeliest.
        first: [B] pickups to begin with, or None to let the policy choose.
    """
    state = construction.begin(problem)
    rows, nodes = problem.opens.shape
    whole = torch.arange(rows, device=problem.opens.device)
    sequence = whole.new_zeros(rows, 3 * (nodes // 2) + 1)
    length, vehicles = torch.zeros_like(state.length), torch.zeros_like(state.vehicles)
    for step in range(sequence.shape[1]):
        moves = construction.look(problem, state)
        logits = _score(model, memory, problem, state, moves)
        if noise is not None:
            logits = logits + noise(step, whole, nodes)
        node = logits.argmax(1)
        if step == 0 and first is not None:
            node = torch.where(moves.allowed.gather(1, first[:, None])[:, 0], first, node)
        state = construction.advance(problem, state, moves, node)
        sequence[whole, step] = node
        length[whole], vehicles[whole] = state.length, state.vehicles
        going = ~construction.is_done(state)
        alive = int(going.sum())
        if alive == 0:
            break
        if 2 * alive < len(going):  # finished rows only cost time: carry on with the others
            problem, state, memory, whole = _select(going, problem, state, memory, whole)
    return Routes(sequence, length, vehicles)


def _score(model: AttentionModel, memory: Memory, problem: Problem, state: State, moves: Moves) -> Tensor:
    """[B, N] logits of the next stop."""
    numbers = construction.context(problem, state)
    now = (state.here, state.aboard, numbers, moves.features, moves.allowed)
    return model.decode(memory, *(tensor[:, None] for tensor in now))[:, 0]


def _select(keep: Tensor, problem: Problem, state: State, memory: Memory, whole: Tensor) -> tuple:
    states, memories = (type(tensors)(*(t[keep] for t in tensors)) for tensors in (state, memory))
    return problem.map_rows(lambda tensor: tensor[keep]), states, memories, whole[keep]


@torch.no_grad()
def replay(problem: Problem, sequence: Tensor, hindsight: bool) -> Replay:
    """What the decoder would have seen while building `sequence` [B, T].

    With `hindsight` the witness order is the order in which the sequence really drops off, so that any feasible plan
    can be replayed; without it, the order that `rollout` would have kept.
    """
    state = construction.begin(problem)
    when = torch.zeros_like(problem.opens, dtype=torch.long)
    when.scatter_(1, sequence, torch.arange(sequence.shape[1], device=sequence.device).expand_as(sequence))
    when[:, 0] = sequence.shape[1]  # free places come last
    steps: list[tuple[Tensor, ...]] = []
    for t in range(sequence.shape[1]):
        going = ~construction.is_done(state)
        if not going.any():
            break
        moves = construction.look(problem, state)
        numbers = construction.context(problem, state)
        steps.append((state.here, state.aboard, numbers, moves.features, moves.allowed, going))
        state = construction.advance(problem, state, moves, sequence[:, t])
        if hindsight:
            order = when.gather(1, state.aboard).sort(dim=1, stable=True).indices
            state = state._replace(aboard=state.aboard.gather(1, order))
    return Replay(*(torch.stack(column, 1) for column in zip(*steps, strict=True)))


def log_prob(model: AttentionModel, memory: Memory, seen: Replay, sequence: Tensor) -> Tensor:
    """[B, T] log-probability of every choice in `sequence`, 0 where the row was finished; differentiable."""
    logits = model.decode(memory, *seen[:5])
    chosen = sequence[:, : logits.shape[1], None]
    return logits.log_softmax(-1).gather(-1, chosen)[..., 0] * seen.going


def repeat(problem: Problem, memory: Memory, times: int) -> tuple[Problem, Memory]:
    """Every row `times` times in a row."""
    rows = problem.map_rows(lambda tensor: tensor.repeat_interleave(times, 0))
    return rows, Memory(*(tensor.repeat_interleave(times, 0) for tensor in memory))
