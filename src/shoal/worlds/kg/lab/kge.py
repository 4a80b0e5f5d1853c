"""Train KGE models on the facts of a knowledge base, minutes or seconds on one core, and write facts they predict.

Reciprocal relations turn every head question into a tail question. The loss of embeddings is a cross entropy over all
entities, or over the true one and `num_negatives` random ones that a batch shares (a sampled softmax) where there are
many. Walks guess each fact's tail, and its head, among random entities while the fact itself is hidden.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn import functional as F

from shoal.errors import ConfigError
from shoal.worlds.kg.lanes.data.corruptions import corrupt
from shoal.worlds.kg.lanes.data.dataset import Dataset
from shoal.worlds.kg.lanes.data.knowledge import FactIndex
from shoal.worlds.kg.lanes.kge.models import Embeddings, KGEConfig, OwnModel, make_model
from shoal.worlds.kg.lanes.kge.scoring import KGE
from shoal.worlds.kg.lanes.kge.walk_model import ScoredByWalks, WalkModel

ALL_BELOW = 5_000  # entities up to which every one is a candidate
FALL_FROM = 1 / 3  # of the training of walks; until there the learning rate stays, then it falls to 0

Show = Callable[[int, float], None]
"""Told the epoch that is over and its loss."""


def train_kge(data: Dataset, config: KGEConfig | None = None, progress: Show = lambda epoch, loss: None) -> KGE:
    """Train on the facts of `data`, calibrate on its validation split."""
    config = config or KGEConfig()
    train = _train_walks if config.model == "walks" else _train_embeddings
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        model = train(data.kb.facts, config, progress)
    kge = KGE(model, data.kb.vocabulary)
    calibrate(kge, data, config.seed)
    return kge


def _train_embeddings(facts: FactIndex, config: KGEConfig, show: Show) -> OwnModel:
    generator = torch.Generator().manual_seed(config.seed)
    model = make_model(config.model, facts.num_constants, facts.num_predicates, config.rank)
    questions = _questions(facts, model)
    learner = Learner(model, Walks(questions, facts.num_constants), config, generator)
    for epoch in range(config.epochs):
        order = torch.randperm(len(questions), generator=generator)
        total = sum(learner.learn(questions[rows]) * len(rows) for rows in order.split(config.batch_size))
        show(epoch + 1, total / len(questions))
    return OwnModel(model.eval(), config)


def _train_walks(facts: FactIndex, config: KGEConfig, show: Show) -> ScoredByWalks:
    generator = torch.Generator().manual_seed(config.seed)
    model = WalkModel(facts, config.rank, config.walk_length)
    questions = _questions(facts, model)
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
            again = F.pad(others == true[:, None], (1, 0))  # the true one drawn once more is not a wrong one
            loss = F.cross_entropy(score.masked_fill(again, -1e9), torch.zeros_like(true))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            total += float(loss.detach()) * len(rows)
        show(epoch + 1, total / len(questions))
    return ScoredByWalks(model.eval(), facts, config)


def _questions(facts: FactIndex, model: Embeddings | WalkModel) -> Tensor:
    """Facts as (head, relation, tail), and read backwards: [2 F, 3]."""
    p, h, t = torch.as_tensor(facts.triples).long().unbind(-1)
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


# ---------------------------------------------------------------------- soft facts


def predict_facts(
    kge: KGE, data: Dataset, top_k: int = 1, threshold: float = 0.9, chunk: int = 256
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The best completions of every (predicate, anchor) that a model is sure enough of, but for what a split has.

    Nothing of the validation or test split may come back this way; what is a fact already is left out too.

    Returns:
        Triples [m, 3], their scores [m] and ranks [m] (1 is the best of its anchor), sorted by falling score.
    """
    if top_k < 1 or not 0.0 <= threshold < 1.0:
        raise ConfigError(f"top_k must be at least 1, not {top_k}, and threshold in [0, 1), not {threshold}.")
    facts = data.kb.facts.triples
    best_of: dict[tuple[int, int, int], tuple[float, int]] = {}
    for side in ("tail", "head"):
        anchors = np.unique(facts[:, [0, 1 if side == "tail" else 2]], axis=0)
        for begin in range(0, len(anchors), chunk):
            predicate, anchor = anchors[begin : begin + chunk].T
            for triple, score, rank in _best(kge, data, predicate, anchor, side, top_k, threshold):
                old = best_of.get(triple, (0.0, rank))
                best_of[triple] = (max(score, old[0]), min(rank, old[1]))
    order = sorted(best_of, key=lambda triple: (-best_of[triple][0], triple))
    triples = np.array(order, np.int32).reshape(-1, 3)
    return triples, np.array([best_of[t][0] for t in order]), np.array([best_of[t][1] for t in order])


def _best(
    kge: KGE, data: Dataset, predicate: np.ndarray, anchor: np.ndarray, side: str, top_k: int, threshold: float
) -> list[tuple[tuple[int, int, int], float, int]]:
    scores = kge.score_tails(anchor, predicate) if side == "tail" else kge.score_heads(predicate, anchor)
    m, n = scores.shape
    others = np.broadcast_to(np.arange(1, n + 1), (m, n))
    mine, theirs = np.broadcast_to(anchor[:, None], (m, n)), others
    pair = (mine, theirs) if side == "tail" else (theirs, mine)
    triples = np.stack([np.broadcast_to(predicate[:, None], (m, n)), *pair], -1)
    scores = np.where(data.known.contains(triples) | (mine == theirs), 0.0, scores)
    best = np.argsort(-scores, axis=1, kind="stable")[:, :top_k]
    return [
        (tuple(triples[row, column].tolist()), float(scores[row, column]), rank)
        for row in range(m)
        for rank, column in enumerate(best[row], 1)
        if scores[row, column] > threshold
    ]


def write_soft_facts(path: str | Path, kge: KGE, data: Dataset, top_k: int = 1, threshold: float = 0.9) -> int:
    """Write `pred(a,b) score rank` lines, as the loader's `soft_facts` reads them; returns how many."""
    triples, score, rank = predict_facts(kge, data, top_k, threshold)
    atom = data.kb.vocabulary.atom
    lines = [f"{atom(t)} {s:.4f} {r}\n" for t, s, r in zip(triples, score, rank, strict=True)]
    Path(path).write_text("".join(lines))
    return len(lines)
