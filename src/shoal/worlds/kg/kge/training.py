"""Train an embedding model on the facts of a knowledge base: minutes or seconds on one core.

Reciprocal relations turn every head question into a tail question. The loss is a cross entropy over all entities, or
over the true one and `num_negatives` random ones that a batch shares (a sampled softmax) where there are many.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call

from shoal.worlds.kg.dataset import Dataset
from shoal.worlds.kg.facts import FactIndex
from shoal.worlds.kg.kge.config import KGEConfig
from shoal.worlds.kg.kge.engine import KGE
from shoal.worlds.kg.kge.models import Embeddings, make_model
from shoal.worlds.kg.negatives import corrupt

ALL_BELOW = 5_000  # entities up to which every one is a candidate


class OwnModel:
    """A model of ours as `KGE` asks it: the mean of a triple's score read from head to tail and from tail to head."""

    def __init__(self, model: Embeddings, config: KGEConfig) -> None:
        self.model, self.config = model, config

    def raw(self, triples: Tensor) -> Tensor:
        p, h, t = triples.unbind(-1)
        return (self.model.triples(h, p, t) + self.model.triples(t, self.model.inverse(p), h)) / 2

    def raw_tails(self, head: Tensor, predicate: Tensor) -> Tensor:
        forward = self.model.tails(head, predicate)[:, 1:]
        backward = self.model.heads(self.model.inverse(predicate), head)[:, 1:]
        return (forward + backward) / 2

    def raw_heads(self, predicate: Tensor, tail: Tensor) -> Tensor:
        return self.raw_tails(tail, self.model.inverse(predicate))

    def knows(self, triples: Tensor) -> Tensor:
        return torch.ones(len(triples), dtype=torch.bool)


def train_kge(
    data: Dataset, config: KGEConfig | None = None, progress: Callable[[int, float], None] | None = None
) -> KGE:
    """Train on the facts of `data`, calibrate on its validation split. `progress(epoch, loss)` is called after each."""
    config, show = config or KGEConfig(), progress or (lambda epoch, loss: None)
    if config.model == "walks":
        from shoal.worlds.kg.kge.walk_training import train_walks

        kge = KGE(train_walks(data.kb.facts, config, show), data.kb.vocabulary)
    else:
        kge = KGE(OwnModel(_train_embeddings(data.kb.facts, config, show), config), data.kb.vocabulary)
    calibrate(kge, data, config.seed)
    return kge


def _train_embeddings(facts: FactIndex, config: KGEConfig, show: Callable[[int, float], None]) -> Embeddings:
    generator = torch.Generator().manual_seed(config.seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        model = make_model(config.model, facts.num_constants, facts.num_predicates, config.rank)
    questions = _questions(torch.as_tensor(facts.triples).long(), model)
    learner = Learner(model, Walks(questions, facts.num_constants), config, generator)
    for epoch in range(config.epochs):
        order = torch.randperm(len(questions), generator=generator)
        total = sum(learner.learn(questions[rows]) * len(rows) for rows in order.split(config.batch_size))
        show(epoch + 1, total / len(questions))
    return model.eval()


def _questions(triples: Tensor, model: Embeddings) -> Tensor:
    """Facts [F, 3] as (head, relation, tail), and read backwards: [2 F, 3]."""
    p, h, t = triples.unbind(-1)
    return torch.cat([torch.stack([h, p, t], 1), torch.stack([t, model.inverse(p), h], 1)])


class Walks:
    """Random walks over the facts, in both directions."""

    def __init__(self, questions: Tensor, num_entities: int) -> None:
        self._sorted = questions[torch.argsort(questions[:, 0], stable=True)]
        self._count = torch.bincount(questions[:, 0], minlength=num_entities + 1)
        self._start = torch.cumsum(self._count, 0) - self._count

    def extend(self, questions: Tensor, length: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Go on from the tails of questions [b, 3] at random: relations and tails [b, length], theirs first."""
        relation, tail = [questions[:, 1]], [questions[:, 2]]
        for _ in range(length - 1):
            here = tail[-1]  # has at least the fact that led there
            chance = torch.rand(len(here), generator=generator)
            edge = self._sorted[self._start[here] + (chance * self._count[here]).long()]
            relation.append(edge[:, 1])
            tail.append(edge[:, 2])
        return torch.stack(relation, 1), torch.stack(tail, 1)


class Learner:
    """Takes gradient steps that cost as much as the rows a batch uses, however many entities there are."""

    def __init__(self, model: Embeddings, walks: Walks, config: KGEConfig, generator: torch.Generator) -> None:
        self.model, self.walks, self.config, self.generator = model, walks, config, generator
        self.entities = RowAdagrad(model.entity, config.lr)
        self.relations = RowAdagrad(model.relation, config.lr)
        few = len(model.entity) <= ALL_BELOW
        self.num_negatives = config.num_negatives or (None if few else model.usual_negatives)

    def learn(self, questions: Tensor) -> float:
        """One step on questions [b, 3] (head, relation, tail); returns the loss."""
        head = questions[:, 0]
        relation, tail = self.walks.extend(questions, self.config.walk_length, self.generator)
        if self.num_negatives is None:
            used, negative = torch.arange(len(self.model.entity)), None
        else:
            drawn = torch.randint(1, len(self.model.entity), (self.num_negatives,), generator=self.generator)
            used, place = torch.unique(torch.cat([head, tail.flatten(), drawn]), return_inverse=True)
            head, tail, negative = place.split([len(head), tail.numel(), len(drawn)])
            tail = tail.view_as(relation)
        rows = self.model.entity.detach()[used].requires_grad_()
        arguments = (head, relation, tail, negative, self.config.regulariser)
        loss = functional_call(self.model, {"entity": rows}, arguments)
        loss.backward()
        assert rows.grad is not None
        assert self.model.relation.grad is not None
        self.entities.step(used, rows.grad)
        self.relations.step(torch.arange(len(self.model.relation)), self.model.relation.grad)
        self.model.relation.grad = None
        return float(loss.detach())


class RowAdagrad:
    """Adagrad (Duchi et al. 2011) for rows of a table: those without a gradient stay, so they need not be touched."""

    def __init__(self, table: Tensor, lr: float) -> None:
        self.table, self.lr, self.squares = table.detach(), lr, torch.zeros_like(table)

    def step(self, rows: Tensor, grad: Tensor) -> None:
        """Descend along `grad` [k, ...] of the distinct `rows` [k]."""
        squares = self.squares[rows].addcmul_(grad, grad)
        self.squares[rows] = squares
        self.table[rows] -= self.lr * grad / (squares.sqrt() + 1e-10)


def calibrate(kge: KGE, data: Dataset, seed: int) -> None:
    """Fit the sigmoid to validation triples (facts where there are none) and as many corruptions of them."""
    positive = data.valid.triples if len(data.valid) else data.kb.facts.triples[:2000]
    rng = np.random.default_rng([seed, 7])
    drawn = [corrupt(data, positive, side, 4, rng) for side in ("head", "tail")]
    negative = np.concatenate([candidates.triples[candidates.valid] for candidates in drawn])
    kge.calibrate(positive, negative)
