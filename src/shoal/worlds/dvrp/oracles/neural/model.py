"""The attention model: an encoder over the nodes, and a decoder that chooses the next stop (Kool et al. 2019).

Differences that matter here: pre-LayerNorm instead of batch norm, so that a request set is solved alike in any batch;
attention biased by driving times and windows of every pair, which coordinates alone cannot express; and logits that
also read what is known about each move (driving, waiting, slack, detour).
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
    move_hidden: int = 24


class Memory(NamedTuple):
    """What the encoder leaves for the decoder. [B, N, d] each, `mean` [B, d]."""

    nodes: Tensor
    keys: Tensor
    values: Tensor
    logit_keys: Tensor
    mean: Tensor


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
            nn.Linear(4 * a.width + NUM_CONTEXT, 2 * a.width), nn.ReLU(), nn.Linear(2 * a.width, a.width)
        )
        self.glimpse = nn.Linear(a.width, a.width)
        self.moves = nn.Sequential(nn.Linear(NUM_MOVE_FEATURES, a.move_hidden), nn.ReLU(), nn.Linear(a.move_hidden, 1))

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
        return Memory(hidden, keys, values, logit_keys, mean)

    def decode(
        self, memory: Memory, here: Tensor, aboard: Tensor, numbers: Tensor, moves: Tensor, allowed: Tensor
    ) -> Tensor:
        """Logits [B, T, N] of the next stop at T moments of every row, forbidden ones at minus a billion.

        Args:
            here: [B, T] node; aboard: [B, T, C] dropoffs on board, 0 for none.
            numbers: [B, T, NUM_CONTEXT]; moves: [B, T, N, NUM_MOVE_FEATURES]; allowed: [B, T, N] bool.
        """
        a, (rows, moments) = self.architecture, here.shape
        query = self.query(self._situation(memory, here, aboard, numbers))
        split = (rows, -1, a.heads, a.width // a.heads)
        asked, keys, values = (t.reshape(split).transpose(1, 2) for t in (query, memory.keys, memory.values))
        seen = F.scaled_dot_product_attention(asked, keys, values, attn_mask=allowed[:, None])
        query = self.glimpse(seen.transpose(1, 2).reshape(rows, moments, a.width))
        score = query @ memory.logit_keys.transpose(1, 2) / math.sqrt(a.width)
        score = score + self.moves(moves).squeeze(-1)
        return (_CLIP * torch.tanh(score)).masked_fill(~allowed, _NEVER)

    def _situation(self, memory: Memory, here: Tensor, aboard: Tensor, numbers: Tensor) -> Tensor:
        """[B, T, 4d + NUM_CONTEXT]: all nodes, the present one, the depot, the dropoffs on board, and the numbers."""
        rows, moments = here.shape
        row = torch.arange(rows, device=here.device)
        present = memory.nodes[row[:, None], here]
        riding = memory.nodes[row[:, None, None], aboard]  # [B, T, C, d]
        on = (aboard > 0)[..., None]
        riding = (riding * on).sum(2) / on.sum(2).clamp(min=1)
        shape = (rows, moments, -1)
        mean, depot = memory.mean[:, None].expand(shape), memory.nodes[:, :1].expand(shape)
        return torch.cat([mean, present, depot, riding, numbers], -1)


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
