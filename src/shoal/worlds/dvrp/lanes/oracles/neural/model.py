"""The attention model: an encoder over the nodes, and a decoder that chooses the next stop (Kool et al. 2019).

Differences that matter here: pre-LayerNorm instead of batch norm, so that a request set is solved alike in any batch;
attention biased by driving times and windows of every pair, which coordinates alone cannot express; and logits that
also read what is known about each move (driving, waiting, slack, detour, whom it makes late), judged by the situation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from shoal.worlds.dvrp.lanes.oracles.neural.construction import NUM_CONTEXT, NUM_MOVE_FEATURES
from shoal.worlds.dvrp.lanes.oracles.neural.vehicle import Problem

NODE_FEATURES = 8
PAIR_FEATURES = 4
_CLIP = 10.0
_NEVER = -1e9


@dataclass(frozen=True)
class Architecture:
    """Sizes of the model."""

    width: int = 64
    heads: int = 4
    layers: int = 3
    hidden: int = 256
    pair_hidden: int = 8
    move_hidden: int = 64


class Memory(NamedTuple):
    """What the encoder leaves for the decoder."""

    nodes: Tensor  # [B, N, d]
    mean: Tensor  # [B, d]
    keys: Tensor  # [B, heads, N, d / heads]
    values: Tensor  # [B, heads, N, d / heads]
    stops: Tensor  # [B, N, 3d] every node as the place of a vehicle, as a dropoff on board, and as the next stop
    judged: Tensor  # [B, N, move_hidden]


class View(NamedTuple):
    """What the decoder sees at T moments of every row, and the M moves that are allowed then."""

    here: Tensor  # [B, T, V] node of every vehicle
    aboard: Tensor  # [B, T, V, C] dropoffs on board, 0 for none
    left: Tensor  # [B, T, N] bool: nodes still to be served
    numbers: Tensor  # [B, T, NUM_CONTEXT]
    row: Tensor  # [M]
    moment: Tensor  # [M]
    vehicle: Tensor  # [M]
    node: Tensor  # [M]
    features: Tensor  # [M, NUM_MOVE_FEATURES]

    @staticmethod
    def join(views: Sequence[View]) -> View:
        """Moments one behind the other; moves of one moment and vehicle stay together."""
        fixed = [torch.cat(parts, 1) for parts in zip(*(view[:4] for view in views), strict=True)]
        moment = torch.cat([view.moment + t for t, view in enumerate(views)])
        row, _, *rest = (torch.cat(parts) for parts in zip(*(view[4:] for view in views), strict=True))
        return View(*fixed, row, moment, *rest)  # type: ignore[call-arg]

    def rows(self, which: Tensor) -> View:
        """Some rows [R] of it."""
        place = torch.full((len(self.here),), -1, device=which.device)
        place[which] = torch.arange(len(which), device=which.device)
        row = place.index_select(0, self.row)
        keep = (row >= 0).nonzero()[:, 0]
        moves = (tensor.index_select(0, keep) for tensor in (row, *self[5:]))
        return View(*(tensor[which] for tensor in self[:4]), *moves)


class AttentionModel(nn.Module):
    """Scores the possible next moves of every row."""

    def __init__(self, architecture: Architecture | None = None) -> None:
        super().__init__()
        self.architecture = a = architecture or Architecture()
        self.embed = nn.Linear(NODE_FEATURES, a.width)
        self.pairs = nn.Sequential(
            nn.Linear(PAIR_FEATURES, a.pair_hidden), nn.ReLU(), nn.Linear(a.pair_hidden, a.layers * a.heads)
        )
        self.layers = nn.ModuleList(EncoderLayer(a) for _ in range(a.layers))
        self.norm = nn.LayerNorm(a.width)
        self.project = nn.Linear(a.width, 5 * a.width, bias=False)
        self.situation = nn.Sequential(
            nn.Linear(3 * a.width + NUM_CONTEXT, 2 * a.width), nn.ReLU(), nn.Linear(2 * a.width, a.width)
        )
        self.glimpse = nn.Linear(a.width, a.width)
        self.vehicle = nn.Linear(a.width, a.width)
        self.query = nn.Linear(a.width, a.width + a.move_hidden)
        self.judge_node = nn.Linear(a.width, a.move_hidden)
        self.judge_move = nn.Linear(NUM_MOVE_FEATURES, a.move_hidden, bias=False)
        self.judge = nn.Sequential(
            nn.ReLU(), nn.Linear(a.move_hidden, a.move_hidden), nn.ReLU(), nn.Linear(a.move_hidden, 1)
        )

    def encode(self, problem: Problem, xy: Tensor, biases: Tensor | None = None) -> Memory:
        """Read the request sets; xy [B, N, 2] in tens of km, `biases` where they are known already."""
        hidden = self.embed(node_features(problem, xy))
        for layer, bias in zip(self.layers, self._biases(problem) if biases is None else biases, strict=True):
            hidden = layer(hidden, bias)
        hidden = self.norm(hidden)
        there = problem.wanted[..., None]
        mean = (hidden * there).sum(1) / there.sum(1)
        keys, values, stops = self.project(hidden).split(
            [self.architecture.width] * 2 + [3 * self.architecture.width], -1
        )
        keys, values = (self._split(part).contiguous() for part in (keys, values))  # once, not at every step
        return Memory(hidden, mean, keys, values, stops, self.judge_node(hidden))

    def _biases(self, problem: Problem) -> Tensor:
        """[layers, B * heads, N, N] what every pair adds to attention; pairs last, since channels are few."""
        a, (rows, nodes) = self.architecture, problem.opens.shape
        first, second = cast(nn.Linear, self.pairs[0]), cast(nn.Linear, self.pairs[2])
        hidden = F.relu(torch.addmm(first.bias[:, None], first.weight, pair_features(problem).flatten(1)))
        bias = torch.addmm(second.bias[:, None], second.weight, hidden).view(a.layers, a.heads, rows, nodes, nodes)
        bias = bias.masked_fill(~problem.wanted[:, None, :], _NEVER)
        return bias.transpose(1, 2).reshape(a.layers, rows * a.heads, nodes, nodes)

    def _split(self, part: Tensor) -> Tensor:
        """[B, N, d] -> [B, heads, N, d / heads]."""
        return part.unflatten(-1, (self.architecture.heads, -1)).transpose(1, 2)

    def decode(self, memory: Memory, view: View) -> Tensor:
        """Logits [M] of the moves."""
        width, (moments, vehicles), nodes = self.architecture.width, view.here.shape[1:], view.left.shape[2]
        moment = view.row * moments + view.moment
        wheels, which = torch.unique_consecutive(moment * vehicles + view.vehicle, return_inverse=True)  # [U], [M]
        at = wheels.div(vehicles, rounding_mode="floor")
        base = at.div(moments, rounding_mode="floor") * nodes
        place, riding, stop = memory.stops.flatten(0, 1).split(width, 1)
        present = place.index_select(0, base + view.here.flatten().index_select(0, wheels))
        aboard = view.aboard.flatten(0, 2).index_select(0, wheels)
        on = (aboard > 0).to(present.dtype)[..., None]
        company = riding.index_select(0, (base[:, None] + aboard).flatten()).view(*aboard.shape, width)
        company = (company * on).sum(1)
        vehicle = F.relu(present + company + self._situation(memory, view).index_select(0, at))
        query, taste = self.query(vehicle + self.vehicle(vehicle)).split([width, self.architecture.move_hidden], 1)
        node = view.row * nodes + view.node
        score = (query.index_select(0, which) * stop.index_select(0, node)).sum(1) / math.sqrt(width)
        judged = self.judge_move(view.features) + memory.judged.flatten(0, 1).index_select(0, node)
        score = score + self.judge(judged + taste.index_select(0, which)).squeeze(1)
        return squash(score)

    def _situation(self, memory: Memory, view: View) -> Tensor:
        """[B * T, d] the work that is left and where the vehicles are, after a glimpse at everybody who waits."""
        rows, moments = view.here.shape[:2]
        left = view.left.clone()
        left[..., 0] = True
        share = left.to(memory.nodes.dtype)
        waiting = share @ memory.nodes / share.sum(-1, keepdim=True)
        row = torch.arange(rows, device=left.device)[:, None, None]
        fleet = memory.nodes[row, view.here].mean(2)
        mean = memory.mean[:, None].expand(rows, moments, -1)
        query = self.situation(torch.cat([mean, waiting, fleet, view.numbers], -1))
        seen = F.scaled_dot_product_attention(self._split(query), memory.keys, memory.values, attn_mask=left[:, None])
        return (query + self.glimpse(seen.transpose(1, 2).reshape_as(query))).flatten(0, 1)


class EncoderLayer(nn.Module):
    """Self-attention with a bias per pair, and a feed-forward layer, both residual."""

    def __init__(self, a: Architecture) -> None:
        super().__init__()
        self.heads = a.heads
        self.norm_attention, self.norm_forward = nn.LayerNorm(a.width), nn.LayerNorm(a.width)
        self.project, self.merge = nn.Linear(a.width, 3 * a.width), nn.Linear(a.width, a.width)
        self.forward_in, self.forward_out = nn.Linear(a.width, a.hidden), nn.Linear(a.hidden, a.width)

    def forward(self, hidden: Tensor, bias: Tensor) -> Tensor:
        """hidden [B, N, d], bias [B * heads, N, N] -> [B, N, d]."""
        rows, nodes, width = hidden.shape
        parts = self.project(self.norm_attention(hidden)).reshape(rows, nodes, 3, self.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4).flatten(1, 2)  # [B * heads, N, d / heads] each
        weight = torch.baddbmm(bias, query, key.transpose(1, 2), alpha=query.shape[-1] ** -0.5).softmax(-1)
        seen = (weight @ value).view(rows, self.heads, nodes, -1)
        hidden = hidden + self.merge(seen.transpose(1, 2).reshape(rows, nodes, width))
        return hidden + self.forward_out(self.forward_in(self.norm_forward(hidden)).relu_())


def squash(score: Tensor) -> Tensor:
    """Logits of scores: kept within bounds, so that no move is ever out of the question."""
    return _CLIP * torch.tanh(score / _CLIP)


def node_features(problem: Problem, xy: Tensor) -> Tensor:
    """[B, N, NODE_FEATURES]: place, window, role, ride to the partner, price of a trip from and to the depot."""
    role = torch.zeros_like(problem.opens)
    role[:, 1::2], role[:, 2::2] = 1.0, -1.0
    ride = torch.zeros_like(problem.opens)
    ride[:, 1::2] = ride[:, 2::2] = problem.seconds[:, 1::2, 2::2].diagonal(dim1=1, dim2=2)
    times = [(time - 43_200) / 21_600 for time in (problem.opens, problem.closes)]
    alone = (problem.price[:, 0] + problem.price[:, :, 0]) / 20
    exists = problem.wanted.float()
    return torch.stack([xy[..., 0], xy[..., 1], *times, role, ride / 1800, alone, exists], -1)


def pair_features(problem: Problem) -> Tensor:
    """[PAIR_FEATURES, B, N, N]: driving there and back, gap between the windows, and time to spare from i to j."""
    seconds, opens, closes = problem.seconds, problem.opens, problem.closes
    gap = (opens[:, None] - opens[:, :, None]) / 3600
    spare = (closes[:, None] - torch.maximum(opens[:, :, None] + seconds, opens[:, None])) / 1800
    return torch.stack([seconds / 1800, problem.seconds_to / 1800, gap.clamp(-3, 3), spare.clamp(-3, 3)])
