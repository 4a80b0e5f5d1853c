"""From scores to routes: greedy, by sampling, or from many starts, and the best of several."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from shoal.worlds.dvrp.lanes.oracles.neural import construction
from shoal.worlds.dvrp.lanes.oracles.neural.construction import Moves, State
from shoal.worlds.dvrp.lanes.oracles.neural.model import AttentionModel, Memory, View
from shoal.worlds.dvrp.lanes.oracles.neural.vehicle import Problem

Noise = Callable[[int, Tensor, int], Tensor]
"""(step, rows [R], number of codes K) -> [R, K] Gumbel noise: the argmax of logits plus noise is a draw."""


class Routes(NamedTuple):
    """Finished rows."""

    sequence: Tensor  # [B, T] nodes in order of service, vehicle by vehicle, 0 between them and as padding
    length: Tensor  # [B] cost of driving
    vehicles: Tensor  # [B]


class Replay(NamedTuple):
    """Choices, and what the decoder saw when they were made."""

    view: View  # [B, T, ...]
    chosen: Tensor  # [B, T] code of the move that was made
    going: Tensor  # [B, T] bool: the row was not finished yet

    def rows(self, which: Tensor) -> Replay:
        """Some rows [R] of it."""
        return Replay(self.view.rows(which), self.chosen[which], self.going[which])

    @staticmethod
    def of(tape: Tape) -> Replay:
        """All moments one behind the other."""
        views, chosen, going = zip(*tape, strict=True)
        return Replay(View.join(views), torch.stack(chosen, 1), torch.stack(going, 1))


Tape = list[tuple[View, Tensor, Tensor]]
"""Moment by moment: what the decoder sees [B, 1, ...], what it chooses [B], and whether the row goes on [B]."""


@torch.no_grad()
def rollout(
    model: AttentionModel,
    memory: Memory,
    problem: Problem,
    noise: Noise | None = None,
    first: Tensor | None = None,
    tape: Tape | None = None,
) -> Routes:
    """Build routes move by move until every row is done.

    Args:
        noise: makes the choice of the next move a draw from the policy; None takes the likeliest.
        first: [B] pickups to begin with, or None to let the policy choose.
        tape: gets what the decoder sees and chooses.
    """
    state = construction.begin(problem)
    (rows, vehicles), nodes = state.here.shape, problem.opens.shape[1]
    codes, whole = nodes * vehicles, torch.arange(rows, device=problem.opens.device)
    served, length, used = Served(rows, nodes, whole.device), state.length.clone(), state.used.clone()
    for step in itertools.count():
        moves = construction.look(problem, state)
        view = _see(problem, state, moves)
        logits = _spread(model.decode(memory, view), moves, len(whole), vehicles, codes)
        if noise is not None:
            logits = logits + noise(step, whole, codes)
        code = logits.argmax(1)
        if step == 0 and first is not None:
            code = torch.where(state.possible[whole, 0, first], first * vehicles, code)
        if tape is not None:
            tape.append((view, code, ~construction.is_done(state)))
        state, route = construction.advance(problem, state, code)
        served.add(whole, code // vehicles, route)
        length[whole], used[whole] = construction.cost_of(problem, state), state.used
        going = ~construction.is_done(state)
        alive = int(going.sum())
        if alive == 0:
            break
        if tape is None and 2 * alive < len(going):  # finished rows only cost time: carry on with the others
            problem, state, memory, whole = _select(going, problem, state, memory, whole)
    return Routes(served.sequence(), length, used)


class Served:
    """Who has been served, when and on which route."""

    def __init__(self, rows: int, nodes: int, device: torch.device) -> None:
        self._when = torch.zeros(rows, nodes, dtype=torch.long, device=device)
        self._route = torch.zeros_like(self._when)
        self._count = 0

    def add(self, rows: Tensor, node: Tensor, route: Tensor) -> None:
        """Node [R] is the next one to be served in these rows [R]."""
        self._count += 1
        self._when[rows, node], self._route[rows, node] = self._count, route

    def sequence(self) -> Tensor:
        """[B, T] routes one behind the other, with a 0 between them."""
        rows, nodes = self._when.shape
        there = self._when > 0
        there[:, 0] = False
        last = torch.iinfo(torch.long).max
        order = torch.where(there, self._route * (self._count + 1) + self._when, last).argsort(1)
        place = order.argsort(1) + self._route  # a route is preceded by as many depots as its number says
        row, node = there.nonzero(as_tuple=True)
        flat = torch.zeros(rows, 3 * (nodes // 2) + 1, dtype=torch.long, device=there.device)
        flat[row, place[row, node]] = node
        return flat


def _see(problem: Problem, state: State, moves: Moves) -> View:
    """What the decoder sees now, one moment of every row."""
    numbers = construction.context(problem, state)
    now = [tensor[:, None].clone() for tensor in (state.here, state.aboard, state.left, numbers)]
    return View(*now, moves.row, torch.zeros_like(moves.row), *moves[1:])  # type: ignore[call-arg]


def _spread(logits: Tensor, moves: Moves, rows: int, vehicles: int, codes: int) -> Tensor:
    """[M] -> [B, codes], minus infinity where nothing is allowed."""
    dense = logits.new_full((rows * codes,), -torch.inf)
    code = moves.node * vehicles + moves.vehicle  # node first: more nodes leave the codes of the others alone
    return dense.index_copy_(0, moves.row * codes + code, logits).view(rows, codes)


def _select(keep: Tensor, problem: Problem, state: State, memory: Memory, whole: Tensor) -> tuple:
    states, memories = (type(tensors)(*(t[keep] for t in tensors)) for tensors in (state, memory))
    return problem.map_rows(lambda tensor: tensor[keep]), states, memories, whole[keep]


@torch.no_grad()
def replay(problem: Problem, codes: Tensor) -> Replay:
    """What the decoder would have seen while making the moves `codes` [B, T], whosoever; -1 behind the last.

    The witness orders are those that `rollout` would have kept. Where one forbids what is done, it gives way to the
    order in which people really get off, under which any feasible plan is possible.
    """
    state = construction.begin(problem)
    vehicles, tape = state.here.shape[1], Tape()
    when = torch.zeros_like(problem.opens, dtype=torch.long)
    when.scatter_(1, codes.clamp(min=0) // vehicles, torch.arange(codes.shape[1], device=codes.device).expand_as(codes))
    when[:, 0] = codes.shape[1]  # free places come last
    for code in codes.unbind(1):
        going = code >= 0
        code = code.clamp(min=0)
        moves = _look_for(problem, state, code, when)
        tape.append((_see(problem, state, moves), code, going))
        state, _ = construction.advance(problem, state, code)
    return Replay.of(tape)


def _look_for(problem: Problem, state: State, code: Tensor, when: Tensor) -> Moves:
    """The moves, with witness orders under which `code` [B] is one of them; `when` [B, N] says who gets off when."""
    row, vehicles = torch.arange(len(code), device=code.device), state.here.shape[1]
    vehicle, node = code % vehicles, code // vehicles
    stuck = ((node > 0) & ~state.possible[row, vehicle, node]).nonzero()[:, 0]
    if len(stuck):
        now = construction.vehicle_of(state, vehicle)
        order = when.gather(1, now.aboard).sort(dim=1, stable=True).indices
        now = now._replace(aboard=now.aboard.gather(1, order))
        now = type(now)(*(tensor[stuck] for tensor in now))
        construction.place(problem.map_rows(lambda tensor: tensor[stuck]), state, stuck, vehicle[stuck], now)
    return construction.look(problem, state)


def log_prob(model: AttentionModel, memory: Memory, seen: Replay) -> Tensor:
    """[B, T] log-probability of every choice, 0 where the row was finished; differentiable."""
    view = seen.view
    (rows, moments), vehicles = seen.chosen.shape, view.here.shape[2]
    logits = model.decode(memory, view)
    group = view.row * moments + view.moment
    highest = logits.detach().new_full((rows * moments,), -torch.inf).scatter_reduce(0, group, logits.detach(), "amax")
    total = torch.zeros_like(highest).index_add(0, group, (logits - highest.index_select(0, group)).exp())
    chosen = view.node * vehicles + view.vehicle == seen.chosen.flatten().index_select(0, group)
    score = torch.zeros_like(highest).index_add(0, group[chosen], logits[chosen])
    return (score - highest - total.log()).view(rows, moments) * seen.going


def repeat(problem: Problem, memory: Memory, times: int) -> tuple[Problem, Memory]:
    """Every row `times` times in a row."""
    rows = problem.map_rows(lambda tensor: tensor.repeat_interleave(times, 0))
    return rows, Memory(*(tensor.repeat_interleave(times, 0) for tensor in memory))
