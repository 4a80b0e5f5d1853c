"""Walks as a model of facts: what lies close by, along relations that matter for the question, is likely true.

The score of p(h,t) is the log of the weight that walks of up to K facts carry from h to t, with weights learned for
every p (path ranking, Lao and Cohen 2010, with the hidden states of a weighted automaton in place of a list of paths),
plus what the relations that h and t already have say about the question. It has no vector per entity: a few thousand
numbers, learned while the fact that is asked for is hidden, so it knows how *missing* facts look.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from shoal.worlds.kg.engine.jit import load
from shoal.worlds.kg.facts import FactIndex
from shoal.worlds.kg.kge import walk_kernel
from shoal.worlds.kg.kge.walk_kernel import Graph, Questions, Scratch

HEAD, TAIL = 0, 1
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
        """[b, k] for entities with so many edges of each relation [b, k, 2 P + 1]."""
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
    n, K, m, R = num_entities + 1, max_length, num_states, 2 * num_relations + 1
    return Scratch(
        mass=np.zeros((K, n, m)),
        pull=np.zeros((K, n, m)),
        seen=np.zeros((K, n), np.bool_),
        front=np.zeros(K * n, np.int32),
        end=np.zeros(K + 1, np.int64),
        step=np.zeros((R, m, m)),
        step_pull=np.zeros((R, m, m)),
        final=np.zeros((R, m)),
        final_pull=np.zeros((R, m)),
    )


@cache
def walk_functions() -> dict[str, Any]:
    """Compiled `reach` and `reach_back`."""
    graph, _ = make_graph(FactIndex(np.array([[1, 1, 2]]), 1, 2))
    ids, ends = np.ones(1, np.int32), np.ones((2, 1))
    questions = Questions(ids, ids, ids, np.ones((1, 1), np.int32))
    weights = (np.ones((2, 3, 1, 1)), ends, ends)
    arguments = (graph, questions, *weights, make_scratch(2, 1, 1, 1), np.zeros((1, 1)))
    return load("kg_walks", {walk_kernel.reach: arguments, walk_kernel.reach_back: (*arguments, *weights)})
