"""The attention model: an encoder over the nodes, and a decoder that chooses the next stop (Kool et al. 2019).

Differences that matter here: pre-LayerNorm instead of batch norm, so that a request set is solved alike in any batch;
attention biased by driving times and windows of every pair, which coordinates alone cannot express; and logits that
also read what is known about each move (driving, waiting, slack, detour, whom it makes late), judged by the situation.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from shoal.worlds.dvrp.oracles.neural.construction import NUM_CONTEXT, NUM_MOVE_FEATURES, Problem

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
    move_hidden: int = 32


class Memory(NamedTuple):
    """What the encoder leaves for the decoder."""

    nodes: Tensor  # [B, N, d]
    keys: Tensor  # [B, heads, N, d / heads]
    values: Tensor  # [B, heads, N, d / heads]
    logit_keys: Tensor  # [B, d, N]
    judged: Tensor  # [B, N, move_hidden]
    mean: Tensor  # [B, d]


class View(NamedTuple):
    """What the decoder sees at T moments of every row."""

    here: Tensor  # [B, T] node
    aboard: Tensor  # [B, T, C] dropoffs on board, 0 for none
    left: Tensor  # [B, T, N] bool: nodes still to be served
    numbers: Tensor  # [B, T, NUM_CONTEXT]
    moves: Tensor  # [B, T, N, NUM_MOVE_FEATURES]
    allowed: Tensor  # [B, T, N] bool


class AttentionModel(nn.Module):
    """Scores the possible next stops of every row."""

    def __init__(self, architecture: Architecture | None = None) -> None:
        super().__init__()
        self.architecture = a = architecture or Architecture()
        self.embed = nn.Linear(NODE_FEATURES, a.width)
        self.pairs = nn.Sequential(
            nn.Linear(PAIR_FEATURES, a.pair_hidden), nn.ReLU(), nn.Linear(a.pair_hidden, a.layers * a.heads)
        )
        self.layers = nn.ModuleList(EncoderLayer(a) for _ in range(a.layers))
        self.norm = nn.LayerNorm(a.width)
        self.project = nn.Linear(a.width, 3 * a.width, bias=False)
        self.query = nn.Sequential(
            nn.Linear(5 * a.width + NUM_CONTEXT, 2 * a.width), nn.ReLU(), nn.Linear(2 * a.width, a.width)
        )
        self.glimpse = nn.Linear(a.width, a.width)
        self.judge_node = nn.Linear(a.width, a.move_hidden)
        self.judge_situation = nn.Linear(a.width, a.move_hidden, bias=False)
        self.judge_move = nn.Linear(NUM_MOVE_FEATURES, a.move_hidden, bias=False)
        self.judge = nn.Linear(a.move_hidden, 1)

    def config(self) -> dict[str, Any]:
        """The architecture as plain values, for a checkpoint."""
        return asdict(self.architecture)

    def encode(self, problem: Problem, xy: Tensor) -> Memory:
        """Read the request sets; xy [B, N, 2] in tens of km."""
        hidden = self.embed(node_features(problem, xy))
        bias = self.pairs(pair_features(problem)).permute(0, 3, 1, 2)  # [B, layers * heads, N, N]
        bias = bias.masked_fill(~problem.wanted[:, None, None, :], _NEVER)
        for layer, layer_bias in zip(self.layers, bias.chunk(len(self.layers), 1), strict=True):
            hidden = layer(hidden, layer_bias)
        hidden = self.norm(hidden)
        there = problem.wanted[..., None]
        mean = (hidden * there).sum(1) / there.sum(1)
        keys, values, logit_keys = self.project(hidden).chunk(3, -1)
        keys, values = (self._split(part).contiguous() for part in (keys, values))  # once, not at every step
        return Memory(hidden, keys, values, logit_keys.transpose(1, 2).contiguous(), self.judge_node(hidden), mean)

    def _split(self, part: Tensor) -> Tensor:
        """[B, N, d] -> [B, heads, N, d / heads]."""
        return part.unflatten(-1, (self.architecture.heads, -1)).transpose(1, 2)

    def decode(self, memory: Memory, view: View) -> Tensor:
        """Logits [B, T, N] of the next stop, forbidden ones at minus a billion."""
        a, (rows, moments) = self.architecture, view.here.shape
        query = self.query(self._situation(memory, view))
        open_nodes = (view.left | view.allowed)[:, None]
        seen = F.scaled_dot_product_attention(self._split(query), memory.keys, memory.values, attn_mask=open_nodes)
        query = query + self.glimpse(seen.transpose(1, 2).reshape(rows, moments, a.width))
        score = query @ memory.logit_keys / math.sqrt(a.width)
        judged = self.judge_move(view.moves) + self.judge_situation(query)[:, :, None] + memory.judged[:, None]
        score = score + self.judge(F.relu(judged)).squeeze(-1)
        return (_CLIP * torch.tanh(score / _CLIP)).masked_fill(~view.allowed, _NEVER)

    def _situation(self, memory: Memory, view: View) -> Tensor:
        """[B, T, 5d + NUM_CONTEXT]: all nodes, those left, the present one, the depot, those on board, the numbers."""
        rows, moments = view.here.shape
        row = torch.arange(rows, device=view.here.device)
        present = memory.nodes[row[:, None], view.here]
        riding = memory.nodes[row[:, None, None], view.aboard]  # [B, T, C, d]
        on = (view.aboard > 0)[..., None]
        riding = (riding * on).sum(2) / on.sum(2).clamp(min=1)
        left = view.left.to(present.dtype)
        waiting = left @ memory.nodes / left.sum(-1, keepdim=True).clamp(min=1)
        shape = (rows, moments, -1)
        mean, depot = memory.mean[:, None].expand(shape), memory.nodes[:, :1].expand(shape)
        return torch.cat([mean, waiting, present, depot, riding, view.numbers], -1)


class EncoderLayer(nn.Module):
    """Self-attention with a bias per pair, and a feed-forward layer, both residual."""

    def __init__(self, a: Architecture) -> None:
        super().__init__()
        self.heads = a.heads
        self.norm_attention, self.norm_forward = nn.LayerNorm(a.width), nn.LayerNorm(a.width)
        self.project, self.merge = nn.Linear(a.width, 3 * a.width), nn.Linear(a.width, a.width)
        self.forward_in, self.forward_out = nn.Linear(a.width, a.hidden), nn.Linear(a.hidden, a.width)

    def forward(self, hidden: Tensor, bias: Tensor) -> Tensor:
        """hidden [B, N, d], bias [B, heads, N, N] -> [B, N, d]."""
        rows, nodes, width = hidden.shape
        parts = self.project(self.norm_attention(hidden)).reshape(rows, nodes, 3, self.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(query, key, value, attn_mask=bias)
        hidden = hidden + self.merge(seen.transpose(1, 2).reshape(rows, nodes, width))
        return hidden + self.forward_out(F.relu(self.forward_in(self.norm_forward(hidden))))


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
    """[B, N, N, PAIR_FEATURES]: driving there and back, gap between the windows, and time to spare from i to j."""
    seconds, opens, closes = problem.seconds, problem.opens, problem.closes
    gap = (opens[:, None] - opens[:, :, None]) / 3600
    spare = (closes[:, None] - torch.maximum(opens[:, :, None] + seconds, opens[:, None])) / 1800
    return torch.stack([seconds / 1800, seconds.transpose(1, 2) / 1800, gap.clamp(-3, 3), spare.clamp(-3, 3)], -1)
