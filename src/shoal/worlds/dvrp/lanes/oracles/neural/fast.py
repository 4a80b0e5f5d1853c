"""Decoding on the CPU, fast: compiled construction around the network's matrix products, on buffers made once.

`decoding.rollout` is the definition; this gives the same routes. Its step is some two hundred small tensor operations
over all rows, vehicles and nodes; here a step reads only what a row needs and leaves the products to BLAS.
"""

from __future__ import annotations

import itertools
import operator
from functools import partial
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from shoal.worlds.dvrp.lanes.oracles.neural.compiled import Choices, Given, Plans, network
from shoal.worlds.dvrp.lanes.oracles.neural.compiled import construction as moving
from shoal.worlds.dvrp.lanes.oracles.neural.compiled.network import PairLayers
from shoal.worlds.dvrp.lanes.oracles.neural.construction import NUM_CONTEXT, NUM_MOVE_FEATURES, count_vehicles
from shoal.worlds.dvrp.lanes.oracles.neural.decoding import Noise, Routes
from shoal.worlds.dvrp.lanes.oracles.neural.model import PAIR_FEATURES, AttentionModel, Memory, squash
from shoal.worlds.dvrp.lanes.oracles.neural.vehicle import Problem

NODES_AT_ONCE = 1536
"""Of all rows together, while they are encoded: the widest layer then takes 1.5 MB."""
_SILENCE = np.empty((0, 0), np.float32)


@torch.inference_mode()
def rollout(
    model: AttentionModel, memory: Memory, problem: Problem, noise: Noise | None = None, first: Tensor | None = None
) -> Routes:
    """Build routes move by move until every row is done; arguments and routes as of `decoding.rollout`."""
    given, plans = _given(problem), _plans(problem)
    vehicles, nodes = plans.here.shape[1], plans.open.shape[1]
    scorer = Scorer(model, memory, plans)
    moving.begin(given, plans)
    rows = np.flatnonzero(plans.todo)
    for step in itertools.count():
        # draws go by the number of the move, so with them all rows make one at a time
        hasty = noise is None and (first is None or step > 0)
        moves, wheels, some = moving.look(given, plans, rows, scorer.choices, hasty)
        rows = rows[:some]
        if some == 0:
            break
        logits, choices = scorer(given, plans, rows, moves, wheels), scorer.choices
        drawn = _SILENCE if noise is None else noise(step, torch.from_numpy(rows), nodes * vehicles).numpy()
        code = np.empty(some, np.int64)
        network.choose(choices.row, choices.vehicle, choices.node, logits, vehicles, drawn, choices.best, code)
        if step == 0 and first is not None:
            start = first.numpy()[rows]
            code = np.where(plans.possible[rows, 0, start], start * vehicles, code)
        rows = rows[: moving.advance(given, plans, rows, code)]
    flat = np.zeros((len(plans.here), 3 * (nodes // 2) + 1), np.int64)
    moving.finish(given, plans, flat)
    return Routes(torch.from_numpy(flat), torch.from_numpy(plans.length), torch.from_numpy(plans.used))


@torch.inference_mode()
def encode(model: AttentionModel, problem: Problem, xy: Tensor) -> Memory:
    """`AttentionModel.encode`, a few rows after the other, so that what the layers hand on stays in the cache."""
    rows, nodes = problem.opens.shape
    some = max(1, NODES_AT_ONCE // nodes)
    parts = [
        _encode_rows(model, problem.map_rows(operator.itemgetter(slice(k, k + some))), xy[k : k + some])
        for k in range(0, rows, some)
    ]
    return Memory(*map(torch.cat, zip(*parts, strict=True)))


def _encode_rows(model: AttentionModel, problem: Problem, xy: Tensor) -> Memory:
    """With what pairs add to attention computed in one pass instead of eight."""
    a, (rows, nodes) = model.architecture, problem.opens.shape
    first, second = (cast(nn.Linear, model.pairs[k]) for k in (0, 2))
    layers = PairLayers(*(part.numpy() for part in (first.weight, first.bias, second.weight, second.bias)))
    inputs, hidden = np.empty((PAIR_FEATURES, nodes), np.float32), np.empty((a.pair_hidden, nodes), np.float32)
    biases = torch.empty(a.layers, rows, a.heads, nodes, nodes)
    wanted = problem.wanted.numpy()
    network.pair_biases(_given(problem), problem.seconds_to.numpy(), wanted, layers, inputs, hidden, biases.numpy())
    return model.encode(problem, xy, biases.flatten(1, 2))


def _given(problem: Problem) -> Given:
    names = ("seconds", "price", "leave_by", "opens", "closes")
    arrays = {name: getattr(problem, name).contiguous().numpy() for name in names}
    return Given(**arrays, service=np.float32(problem.service), fleet=problem.fleet)


def _plans(problem: Problem) -> Plans:
    """All vehicles at the depot, nobody served."""
    rows, nodes = problem.opens.shape
    vehicles, requests = count_vehicles(problem.fleet, nodes // 2), nodes // 2

    def whole(*shape: int) -> np.ndarray:
        return np.zeros((rows, *shape), np.int64)

    def real(*shape: int) -> np.ndarray:
        return np.zeros((rows, *shape), np.float32)

    left = problem.wanted.numpy().copy()
    left[:, 0] = False
    todo, nodes_left = left.sum(1), np.argsort(~left, axis=1, kind="stable")
    return Plans(
        here=whole(vehicles), clock=real(vehicles), aboard=whole(vehicles, problem.capacity), route=whole(vehicles),
        possible=np.zeros((rows, vehicles, nodes), np.bool_), slot=whole(vehicles, requests),
        waiting=real(vehicles, nodes), arrival=real(vehicles, nodes), extra=real(vehicles, nodes),
        open=nodes_left, todo=todo, used=whole(), length=real(), node=whole(nodes), made=whole(nodes), done=whole(),
        latest=np.empty(problem.capacity, np.float32),
    )  # fmt: skip


class Scorer:
    """The decoder of `AttentionModel`: logits of the moves that rows have, step after step, in the same memory."""

    def __init__(self, model: AttentionModel, memory: Memory, plans: Plans) -> None:
        self._model = model
        self._nodes, self._mean, self._keys, self._values, self._stops, self._known = (
            part.contiguous().numpy() for part in memory
        )
        rows, vehicles, nodes = plans.possible.shape
        most, wheels, a = rows * vehicles * nodes, rows * vehicles, model.architecture
        whole, real = partial(np.empty, dtype=np.int64), partial(np.empty, dtype=np.float32)
        self.choices = Choices(
            row=whole(most), wheel=whole(most), vehicle=whole(most), node=whole(most),
            features=real((most, NUM_MOVE_FEATURES)), wheel_row=whole(wheels), wheel_vehicle=whole(wheels),
            numbers=real((rows, 3 * a.width + NUM_CONTEXT)), best=real(rows), weight=real(nodes),
            reached=whole(nodes // 2), reach=whole(nodes),
        )  # fmt: skip
        room = torch.empty  # memory that is never written to is never taken
        self._hidden, self._query, self._seen = room(rows, 2 * a.width), room(rows, a.width), room(rows, a.width)
        self._wheel, self._asked = room(wheels, a.width), room(wheels, a.width + a.move_hidden)
        self._judged, self._second = room(most, a.move_hidden), room(most, a.move_hidden)
        self._score, self._last = room(most), room(most, 1)

    def __call__(self, given: Given, plans: Plans, rows: np.ndarray, moves: int, wheels: int) -> np.ndarray:
        """Logits [M] of the moves of the rows [R] that `look` has written into `choices`."""
        model, choices, some = self._model, self.choices, len(rows)
        about = (plans.here, plans.used, plans.open, plans.todo)
        network.situate(about, rows, given.closes, given.fleet, self._nodes, self._mean, choices.numbers)
        inner, outer = cast(nn.Linear, model.situation[0]), cast(nn.Linear, model.situation[2])
        hidden = _linear(inner, torch.from_numpy(choices.numbers[:some]), self._hidden[:some]).relu_()
        query, seen = _linear(outer, hidden, self._query[:some]), self._seen[:some]
        network.glimpse(
            plans.open, plans.todo, rows, query.numpy(), self._keys, self._values, choices.weight, seen.numpy()
        )
        query.add_(model.glimpse(seen))
        wheel = self._wheel[:wheels]
        at = choices.wheel_row, choices.wheel_vehicle
        network.gather(plans.here, plans.aboard, rows, *at, self._stops, query.numpy(), wheel.numpy())
        wheel.add_(model.vehicle(wheel))
        asked = _linear(model.query, wheel, self._asked[:wheels])
        judged, score = self._judged[:moves], self._score[:moves]
        torch.mm(torch.from_numpy(choices.features[:moves]), model.judge_move.weight.t(), out=judged)
        where = choices.row, choices.wheel, choices.node
        network.judge(rows, *where, self._known, self._stops, asked.numpy(), judged.numpy(), score.numpy())
        second = _linear(cast(nn.Linear, model.judge[1]), judged, self._second[:moves]).relu_()
        score.add_(_linear(cast(nn.Linear, model.judge[3]), second, self._last[:moves]).squeeze(1))
        return squash(score).numpy()


def _linear(layer: nn.Linear, given: Tensor, out: Tensor) -> Tensor:
    return torch.addmm(layer.bias, given, layer.weight.t(), out=out)
