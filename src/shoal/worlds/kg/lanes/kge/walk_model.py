"""Walks as a model of facts: what lies close by, along relations that matter for the question, is likely true.

The score of p(h,t) is the log of the weight that walks of up to K facts carry from h to t, with weights learned for
every p (path ranking, Lao and Cohen 2010, with the hidden states of a weighted automaton in place of a list of paths),
plus what the relations that h and t already have say about the question. It has no vector per entity: a few thousand
numbers, learned while the fact that is asked for is hidden, so it knows how *missing* facts look.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from shoal.jit import entry_points
from shoal.worlds.kg.lanes.data.knowledge import FactIndex
from shoal.worlds.kg.lanes.engine.jit import zeros
from shoal.worlds.kg.lanes.kge import walk_kernel
from shoal.worlds.kg.lanes.kge.models import KGEConfig
from shoal.worlds.kg.lanes.kge.walk_kernel import Graph, Questions, Scratch

HEAD, TAIL = 0, 1
ASKED_AT_ONCE = 256  # questions, when scoring
STEP_WEIGHT, FLOOR = 0.3, 1e-3  # of an untrained walker


class WalkModel(nn.Module):
    """Scores by walks of up to `max_length` facts by a walker of `num_states` states."""

    counts: Tensor

    def __init__(self, facts: FactIndex, num_states: int, max_length: int) -> None:
        super().__init__()
        P, m = facts.num_predicates, num_states
        self.num_relations, self.num_entities = P, facts.num_constants
        self.log_step = nn.Parameter(np.log(STEP_WEIGHT / m) + 0.3 * torch.randn(P + 1, 2 * P + 1, m, m))
        self.log_first = nn.Parameter(0.1 * torch.randn(P + 1, m))
        self.log_last = nn.Parameter(0.1 * torch.randn(P + 1, m))
        self.log_floor = nn.Parameter(torch.full((P + 1,), np.log(FLOOR)))
        self.profile = nn.Parameter(torch.zeros(P + 1, 2, 2, 2 * P + 1))  # predicate, side, one or more, relation
        self.graph, counts = make_graph(facts)
        self.register_buffer("counts", torch.from_numpy(counts), persistent=False)  # [n + 1, 2 P + 1]
        self._scratch = make_scratch(facts.num_constants, P, num_states, max_length)

    def forward(self, anchor: Tensor, relation: Tensor, candidate: Tensor, hidden: Tensor | None = None) -> Tensor:
        """Scores [b, k] of candidates [b, k] as tails of anchors and relations [b] (heads, for inverse relations).

        With `hidden` [b] the facts that lead there are not known to the model.
        """
        p, backward = self._base(relation)
        none = torch.zeros_like(anchor) if hidden is None else hidden
        questions = Questions(*[part.int().contiguous().numpy() for part in (anchor, relation, none, candidate)])
        mass = Reach.apply(self.log_step.exp(), self.log_first.exp(), self.log_last.exp(), self, questions)
        counts = self.counts[candidate]
        if hidden is not None:
            row, column = torch.nonzero(candidate == hidden[:, None], as_tuple=True)
            counts[row, column, self.inverse(relation)[row]] -= 1
        side = torch.where(backward, HEAD, TAIL)
        return torch.log(mass + self.log_floor[p].exp()[:, None]) + self._ends(p, side, counts)

    def anchor_score(self, anchor: Tensor, relation: Tensor) -> Tensor:
        """What the relations of the anchors [b] themselves say, [b]: the same for all candidates."""
        p, backward = self._base(relation)
        return self._ends(p, torch.where(backward, TAIL, HEAD), self.counts[anchor][:, None])[:, 0]

    def inverse(self, relation: Tensor) -> Tensor:
        """The relation [m] read from tail to head."""
        return torch.where(relation > self.num_relations, relation - self.num_relations, relation + self.num_relations)

    def _base(self, relation: Tensor) -> tuple[Tensor, Tensor]:
        backward = relation > self.num_relations
        return torch.where(backward, relation - self.num_relations, relation), backward

    def _ends(self, p: Tensor, side: Tensor, counts: Tensor) -> Tensor:
        """[b, k] for entities with this many edges of each relation [b, k, 2 P + 1]."""
        weight = self.profile[p, side]
        return sum(torch.einsum("bkr,br->bk", (counts > more).to(weight.dtype), weight[:, more]) for more in (0, 1))  # type: ignore[return-value]


class Reach(torch.autograd.Function):
    """`walk_kernel.reach` with its gradient."""

    @staticmethod
    def forward(ctx: Any, step: Tensor, first: Tensor, last: Tensor, model: WalkModel, questions: Questions) -> Tensor:
        """Weights [b, k] of the walks to the candidates of `questions`."""
        ctx.model, ctx.questions, ctx.weights = model, questions, [w.double().numpy() for w in (step, first, last)]
        out = np.zeros(questions.candidate.shape)
        walk_functions()["reach"](model.graph, questions, *ctx.weights, model._scratch, out)
        return torch.from_numpy(out)

    @staticmethod
    def backward(ctx: Any, *pull: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients by the three weights."""
        made = [np.zeros_like(weight) for weight in ctx.weights]
        arguments = (ctx.model.graph, ctx.questions, *ctx.weights, ctx.model._scratch)
        walk_functions()["reach_back"](*arguments, np.ascontiguousarray(pull[0].numpy()), *made)
        return *(torch.from_numpy(array) for array in made), None, None


class ScoredByWalks:
    """A `WalkModel` as `KGE` asks it. The score of a triple is the same, whichever end the walks begin at."""

    def __init__(self, model: WalkModel, facts: FactIndex, config: KGEConfig) -> None:
        self.model, self.facts, self.config = model, facts, config

    @torch.no_grad()
    def raw(self, triples: Tensor) -> Tensor:
        """Triples that share an end and a predicate share their walks; the end with more in common is the anchor."""
        p, h, t = triples.unbind(-1)
        stride = self.model.num_entities + 1
        from_head, from_tail = (torch.unique(p * stride + end, return_inverse=True) for end in (h, t))
        if len(from_head[0]) <= len(from_tail[0]):
            return self._grouped(h, p, t, from_head[1])
        return self._grouped(t, self.model.inverse(p), h, from_tail[1])

    def _grouped(self, anchor: Tensor, relation: Tensor, candidate: Tensor, group: Tensor) -> Tensor:
        """Scores [m] of candidates, of which those with the same `group` [m] have the same anchor and relation."""
        scores, order = torch.zeros(len(group), dtype=torch.float64), torch.argsort(group, stable=True)
        sizes = torch.bincount(group).tolist()
        rows = order.split(sizes)
        by_size = sorted(range(len(rows)), key=sizes.__getitem__)
        for begin in range(0, len(rows), ASKED_AT_ONCE):
            part = [rows[g] for g in by_size[begin : begin + ASKED_AT_ONCE]]
            padded = torch.nn.utils.rnn.pad_sequence([candidate[r] for r in part], batch_first=True)
            first = torch.stack([r[0] for r in part])
            made = self._score(anchor[first], relation[first], padded)
            for row, made_row in zip(part, made, strict=True):
                scores[row] = made_row[: len(row)]
        return scores

    def _score(self, anchor: Tensor, relation: Tensor, candidate: Tensor) -> Tensor:
        return self.model(anchor, relation, candidate) + self.model.anchor_score(anchor, relation)[:, None]

    @torch.no_grad()
    def raw_tails(self, head: Tensor, predicate: Tensor) -> Tensor:
        everyone = torch.arange(1, self.model.num_entities + 1)[None]
        return torch.cat([self._score(h, p, everyone) for h, p in zip(head.split(1), predicate.split(1), strict=True)])

    def raw_heads(self, predicate: Tensor, tail: Tensor) -> Tensor:
        return self.raw_tails(tail, self.model.inverse(predicate))

    def knows(self, triples: Tensor) -> Tensor:
        return torch.ones(len(triples), dtype=torch.bool)


def make_graph(facts: FactIndex) -> tuple[Graph, np.ndarray]:
    """Edges in both directions, and how many of each relation an entity has: [n + 1, 2 P + 1] int32."""
    P, n = facts.num_predicates, facts.num_constants
    p, h, t = facts.triples.astype(np.int64).T
    source, relation, other = np.r_[h, t], np.r_[p, p + P], np.r_[t, h]
    order = np.lexsort((other, relation, source))
    source, relation, other = source[order], relation[order], other[order]
    counts = np.zeros((n + 1, 2 * P + 1), np.int32)
    np.add.at(counts, (source, relation), 1)
    inverse = np.where(relation > P, relation - P, relation + P)
    share = 1.0 / np.sqrt(counts[source, relation].astype(np.float64) * counts[other, inverse])
    start = np.searchsorted(source, np.arange(n + 2)).astype(np.int32)
    return Graph(P, start, other.astype(np.int32), relation.astype(np.int32), share.astype(np.float32)), counts


def make_scratch(num_entities: int, num_relations: int, num_states: int, max_length: int) -> Scratch:
    """Zeroed memory."""
    N, K = num_entities + 1, max_length
    return zeros(Scratch, N=N, K=K, m=num_states, R=2 * num_relations + 1, **{"K*N": K * N, "K+1": K + 1})


@cache
def walk_functions() -> Mapping[str, Callable]:
    """Compiled `reach` and `reach_back`."""
    graph, _ = make_graph(FactIndex(np.array([[1, 1, 2]]), 1, 2))
    ids, ends = np.ones(1, np.int32), np.ones((2, 1))
    questions = Questions(ids, ids, ids, np.ones((1, 1), np.int32))
    weights = (np.ones((2, 3, 1, 1)), ends, ends)
    arguments = (graph, questions, *weights, make_scratch(2, 1, 1, 1), np.zeros((1, 1)))
    return entry_points("kg_walks", {walk_kernel.reach: arguments, walk_kernel.reach_back: (*arguments, *weights)})
