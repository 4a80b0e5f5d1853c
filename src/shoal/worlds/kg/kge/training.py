"""Train an embedding model on the facts of a knowledge base: minutes or seconds on one core.

Reciprocal relations turn every head question into a tail question. The loss is a cross entropy over all entities, or
over the true one and `num_negatives` random ones that a batch shares (a sampled softmax) where there are many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from shoal.errors import ConfigError
from shoal.worlds.kg.dataset import Dataset
from shoal.worlds.kg.kge.engine import KGE
from shoal.worlds.kg.kge.models import ComplEx, RotatE, make_model
from shoal.worlds.kg.negatives import corrupt

ALL_BELOW = 5_000  # entities up to which every one is a candidate


@dataclass(frozen=True)
class KGEConfig:
    """How an embedding model is trained."""

    model: Literal["complex", "rotate"] = "complex"
    rank: int = 100
    """Complex numbers per entity."""
    epochs: int = 30
    batch_size: int = 1000
    lr: float = 0.1
    """Of Adagrad."""
    regulariser: float = 1e-2
    """Weight of the model's own penalty."""
    num_negatives: int | None = None
    """Shared negatives per batch; none is all entities where these are few, else 1000."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("rank", "epochs", "batch_size"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}={getattr(self, name)} leaves nothing to train. It must be at least 1.")
        if self.num_negatives is not None and self.num_negatives < 1:
            raise ConfigError(f"num_negatives={self.num_negatives} must be at least 1, or none.")


class OwnModel:
    """A model of ours as `KGE` asks it: the mean of a triple's score read from head to tail and from tail to head."""

    def __init__(self, model: ComplEx | RotatE, config: KGEConfig) -> None:
        self.model, self.config = model, config

    def raw(self, triples: Tensor) -> Tensor:
        p, h, t = triples.unbind(-1)
        return (self.model.triples(h, p, t) + self.model.triples(t, self.model.inverse(p), h)) / 2

    def raw_tails(self, head: Tensor, predicate: Tensor) -> Tensor:
        forward = self.model.scores(head, predicate, None)[:, 1:]
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
    config = config or KGEConfig()
    generator = torch.Generator().manual_seed(config.seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        facts = data.kb.facts
        model = make_model(config.model, facts.num_constants, facts.num_predicates, config.rank)
    triples = torch.as_tensor(facts.triples).long()
    p, h, t = triples.unbind(-1)
    questions = torch.cat([torch.stack([h, p, t], 1), torch.stack([t, model.inverse(p), h], 1)])
    optimizer = torch.optim.Adagrad(model.parameters(), lr=config.lr)
    for epoch in range(config.epochs):
        total = 0.0
        order = torch.randperm(len(questions), generator=generator)
        for rows in order.split(config.batch_size):
            loss = batch_loss(model, questions[rows], config, generator)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += float(loss.detach()) * len(rows)
        if progress is not None:
            progress(epoch + 1, total / len(questions))
    kge = KGE(OwnModel(model.eval(), config), data.kb.vocabulary)
    calibrate(kge, data, config.seed)
    return kge


def batch_loss(model: ComplEx | RotatE, rows: Tensor, config: KGEConfig, generator: torch.Generator) -> Tensor:
    """Cross entropy of the tails of rows [b, 3] (head, relation, tail), plus the regulariser."""
    head, relation, tail = rows.unbind(-1)
    num_entities = len(model.entity) - 1
    wanted = config.num_negatives or (None if num_entities <= ALL_BELOW else 1000)
    if wanted is None:
        scores = model.scores(head, relation, None)[:, 1:]
        loss = F.cross_entropy(scores, tail - 1)
    else:
        negative = torch.randint(1, num_entities + 1, (wanted,), generator=generator)
        scores = model.scores(head, relation, negative)
        scores = scores.masked_fill(negative == tail[:, None], -1e9)
        true = model.triples(head, relation, tail)
        # each of the others stands for many, as in a softmax over everything
        others = torch.logsumexp(scores, 1) + float(np.log(max(1.0, num_entities / wanted)))
        loss = (torch.logaddexp(true, others) - true).mean()
    return loss + config.regulariser * model.penalty(head, relation, tail)


def calibrate(kge: KGE, data: Dataset, seed: int) -> None:
    """Fit the sigmoid to validation triples (facts where there are none) and as many corruptions of them."""
    positive = data.valid.triples if len(data.valid) else data.kb.facts.triples[:2000]
    rng = np.random.default_rng([seed, 7])
    drawn = [corrupt(data, positive, side, 4, rng) for side in ("head", "tail")]
    negative = np.concatenate([candidates.triples[candidates.valid] for candidates in drawn])
    kge.calibrate(positive, negative)
