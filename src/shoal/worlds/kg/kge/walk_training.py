"""Train a `WalkModel`: guess each fact's tail, and its head, among random entities while the fact itself is hidden."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from shoal.worlds.kg.facts import FactIndex
from shoal.worlds.kg.kge.config import KGEConfig
from shoal.worlds.kg.kge.walk_model import WalkModel

FALL_FROM = 1 / 3  # of the training; until there the learning rate stays, then it falls to 0
ASKED_AT_ONCE = 256  # questions, when scoring


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


def train_walks(facts: FactIndex, config: KGEConfig, progress: Callable[[int, float], None]) -> ScoredByWalks:
    """Train on `facts`; `progress(epoch, loss)` is called after each epoch."""
    generator = torch.Generator().manual_seed(config.seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        model = WalkModel(facts, config.rank, config.walk_length)
    p, h, t = torch.from_numpy(facts.triples.astype(np.int64)).unbind(1)
    questions = torch.cat([torch.stack([h, p, t], 1), torch.stack([t, model.inverse(p), h], 1)])
    steps = config.epochs * -(-len(questions) // config.batch_size)
    optimiser = torch.optim.Adam(model.parameters(), config.lr, betas=(0.9, 0.99))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda k: min(1.0, (1 - k / steps) / (1 - FALL_FROM)))
    for epoch in range(config.epochs):
        total = 0.0
        for rows in torch.randperm(len(questions), generator=generator).split(config.batch_size):
            anchor, relation, true = questions[rows].unbind(1)
            size = (len(rows), config.num_negatives or 100)
            others = torch.randint(1, facts.num_constants + 1, size, generator=generator)
            score = model(anchor, relation, torch.cat([true[:, None], others], 1), hidden=true)
            again = F.pad(others == true[:, None], (1, 0))  # the true one drawn once more is no wrong one
            loss = F.cross_entropy(score.masked_fill(again, -1e9), torch.zeros_like(true))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            total += float(loss.detach()) * len(rows)
        progress(epoch + 1, total / len(questions))
    return ScoredByWalks(model.eval(), facts, config)
