"""From scores to routes: greedy, by sampling, or from many starts, and the best of several."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from shoal.worlds.dvrp.oracles.neural import construction
from shoal.worlds.dvrp.oracles.neural.construction import Moves, Problem, State
from shoal.worlds.dvrp.oracles.neural.model import AttentionModel, Memory, View

Noise = Callable[[int, Tensor, int], Tensor]
"""(step, rows [R], number of nodes N) -> [R, N] Gumbel noise: the argmax of logits plus noise is a draw."""


class Routes(NamedTuple):
    """Finished rows."""

    sequence: Tensor  # [B, T] nodes in order of service, 0 for every return to the depot and as padding
    length: Tensor  # [B] cost of driving
    vehicles: Tensor  # [B]


class Replay(NamedTuple):
    """Given sequences, as the decoder would have seen them being built."""

    view: View  # [B, T, ...]
    chosen: Tensor  # [B, T] the next stop
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
    view = View(*(tensor[:, None] for tensor in _see(problem, state, moves)))
    return model.decode(memory, view)[:, 0]


def _see(problem: Problem, state: State, moves: Moves) -> View:
    """What the decoder sees now, without the axis of moments."""
    numbers = construction.context(problem, state, moves)
    return View(state.here, state.aboard, state.left, numbers, moves.features, moves.allowed)


def _select(keep: Tensor, problem: Problem, state: State, memory: Memory, whole: Tensor) -> tuple:
    states, memories = (type(tensors)(*(t[keep] for t in tensors)) for tensors in (state, memory))
    return problem.map_rows(lambda tensor: tensor[keep]), states, memories, whole[keep]


@torch.no_grad()
def replay(problem: Problem, sequence: Tensor) -> Replay:
    """What the decoder would have seen while building `sequence` [B, T], which may come from anybody.

    The witness order is the one that `rollout` would have kept. Where that forbids what the sequence does, it gives
    way to the order in which the sequence really drops off, under which any feasible plan is allowed.
    """
    state = construction.begin(problem)
    when = torch.zeros_like(problem.opens, dtype=torch.long)
    when.scatter_(1, sequence, torch.arange(sequence.shape[1], device=sequence.device).expand_as(sequence))
    when[:, 0] = sequence.shape[1]  # free places come last
    views, going = [], []
    for t in range(sequence.shape[1]):
        open_rows = ~construction.is_done(state)
        if not open_rows.any():
            break
        node = sequence[:, t]
        state, moves = _look_for(problem, state, node, when)
        views.append(_see(problem, state, moves))
        going.append(open_rows)
        state = construction.advance(problem, state, moves, node)
    view = View(*(torch.stack(column, 1) for column in zip(*views, strict=True)))
    return Replay(view, sequence[:, : len(views)], torch.stack(going, 1))


def _look_for(problem: Problem, state: State, node: Tensor, when: Tensor) -> tuple[State, Moves]:
    """The moves, with a witness order under which `node` [B] is one of them; `when` [B, N] says who leaves when."""
    moves = construction.look(problem, state)
    moves.allowed[:, 0] |= node == 0  # others may send the last vehicles home early
    stuck = ~moves.allowed.gather(1, node[:, None])[:, 0]
    if not stuck.any():
        return state, moves
    order = when.gather(1, state.aboard).sort(dim=1, stable=True).indices
    state = state._replace(aboard=torch.where(stuck[:, None], state.aboard.gather(1, order), state.aboard))
    rows = stuck.nonzero()[:, 0]
    again = construction.look(problem.map_rows(lambda tensor: tensor[rows]), State(*(t[rows] for t in state)))
    return state, Moves(*(old.index_copy(0, rows, new) for old, new in zip(moves, again, strict=True)))


def log_prob(model: AttentionModel, memory: Memory, seen: Replay) -> Tensor:
    """[B, T] log-probability of every choice, 0 where the row was finished; differentiable."""
    logits = model.decode(memory, seen.view)
    return logits.log_softmax(-1).gather(-1, seen.chosen[..., None])[..., 0] * seen.going


def repeat(problem: Problem, memory: Memory, times: int) -> tuple[Problem, Memory]:
    """Every row `times` times in a row."""
    rows = problem.map_rows(lambda tensor: tensor.repeat_interleave(times, 0))
    return rows, Memory(*(tensor.repeat_interleave(times, 0) for tensor in memory))
