"""Embedding models. Entities and relations are the world's ids: row 0 is padding, relation p has its inverse at p + P.

A relation moves the point of a head to where the tail should be; a model says how, and how near a tail is.
m questions, k candidates, w numbers per entity, d per point.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from shoal.errors import ConfigError, unknown_name
from shoal.options import Values

INIT_SCALE = 1e-3
WALKS: Values = {"rank": 2, "epochs": 1, "batch_size": 128, "lr": 0.03, "num_negatives": 100, "walk_length": 5}
"""What suits walks better than the defaults, which suit embeddings."""


@dataclass(frozen=True)
class KGEConfig:
    """How a model is trained."""

    model: Literal["complex", "rotate", "rote", "walks"] = "complex"
    rank: int = 100
    """Complex numbers per entity; for walks the states of the walker."""
    epochs: int = 30
    batch_size: int = 1000
    lr: float = 0.1
    """Of Adagrad; for walks of Adam."""
    regulariser: float = 1e-2
    """Weight of the model's own penalty; walks have none."""
    num_negatives: int | None = None
    """Wrong entities per batch (per question for walks); none is all where these are few, else what suits the model."""
    walk_length: int = 1
    """Facts per question; from 2 on, random walks are asked too, whose ends must be found (Guu et al. 2015). For walks
    the most facts that one may have."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("rank", "epochs", "batch_size", "walk_length"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, not {getattr(self, name)}.")
        if self.num_negatives is not None and self.num_negatives < 1:
            raise ConfigError(f"num_negatives must be at least 1 or none, not {self.num_negatives}.")


def usual_config(model: str, **given: float | None) -> KGEConfig:
    """What suits `model`, but for what is `given` and not None."""
    chosen = {name: value for name, value in given.items() if value is not None}
    return KGEConfig(**{"model": model, **(WALKS if model == "walks" else {}), **chosen})


class Embeddings(nn.Module):
    """Tables and loss that the models share: `rank` complex numbers per entity, real parts first.

    Calling a model gives the loss of a batch, so that `torch.func.functional_call` can put the few rows that a batch
    uses in place of the table of entities.
    """

    usual_negatives = 200  # shared by a batch where there are too many entities for all of them

    def __init__(self, num_entities: int, num_relations: int, entity_width: int, relation_width: int) -> None:
        super().__init__()
        self.num_relations = num_relations
        self.entity = nn.Parameter(INIT_SCALE * torch.randn(num_entities + 1, entity_width))
        self.relation = nn.Parameter(INIT_SCALE * torch.randn(2 * num_relations + 1, relation_width))

    # ------------------------------------------------------------------ what a model is

    def points(self, entity: Tensor) -> Tensor:
        """Where entities [m] are, [m, d]."""
        return self.entity[entity]

    @abstractmethod
    def move(self, points: Tensor, relation: Tensor) -> Tensor:
        """Where the tails of heads at `points` [m, d] should be, by relations [m]."""

    @abstractmethod
    def move_back(self, points: Tensor, relation: Tensor) -> Tensor:
        """Where the heads of tails at `points` [m, d] should be."""

    @abstractmethod
    def near(self, points: Tensor, rows: Tensor) -> Tensor:
        """Scores [m, k] of the candidates with `rows` [k, w]."""

    @abstractmethod
    def fit(self, points: Tensor, rows: Tensor) -> Tensor:
        """Scores [m] of one candidate each, with `rows` [m, w]."""

    def penalty(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        """What is added to the loss of a batch, times a weight."""
        return torch.zeros((), device=head.device)

    # ------------------------------------------------------------------ what follows from it

    def tails(self, head: Tensor, relation: Tensor) -> Tensor:
        """[m, entities + 1] scores of all tails of (head, relation)."""
        return self.near(self.move(self.points(head), relation), self.entity)

    def heads(self, relation: Tensor, tail: Tensor) -> Tensor:
        """[m, entities + 1] scores of all heads of (relation, tail)."""
        return self.near(self.move_back(self.points(tail), relation), self.entity)

    def triples(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        """[m] scores."""
        return self.fit(self.move(self.points(head), relation), self.entity[tail])

    def inverse(self, relation: Tensor) -> Tensor:
        """The relation [m] read from tail to head."""
        return torch.where(relation > self.num_relations, relation - self.num_relations, relation + self.num_relations)

    def forward(self, head: Tensor, relation: Tensor, tail: Tensor, negative: Tensor | None, weight: float) -> Tensor:
        """The loss of walks: from `head` [b] along relations [b, L], by which one should come to tails [b, L].

        Cross entropy of each tail among all entities, or among itself and `negative` [k], plus `weight` of the penalty.
        """
        points, loss = self.points(head), torch.zeros((), device=head.device)
        for relations, tails in zip(relation.unbind(1), tail.unbind(1), strict=True):
            points = self.move(points, relations)
            loss = loss + self._cross_entropy(points, tails, negative)
        return loss / relation.shape[1] + weight * self.penalty(head, relation[:, 0], tail[:, 0])

    def _cross_entropy(self, points: Tensor, tail: Tensor, negative: Tensor | None) -> Tensor:
        if negative is None:
            return F.cross_entropy(self.near(points, self.entity)[:, 1:], tail - 1)
        others = self.near(points, self.entity[negative]).masked_fill(negative == tail[:, None], -1e9)
        true = self.fit(points, self.entity[tail])
        return (torch.logaddexp(true, torch.logsumexp(others, 1)) - true).mean()


class ComplEx(Embeddings):
    """Re <h, r, conj(t)> (Trouillon et al. 2016), with reciprocal relations and N3 (Lacroix et al. 2018)."""

    def __init__(self, num_entities: int, num_relations: int, rank: int) -> None:
        super().__init__(num_entities, num_relations, 2 * rank, 2 * rank)

    def move(self, points: Tensor, relation: Tensor) -> Tensor:
        (hr, hi), (rr, ri) = points.chunk(2, -1), self.relation[relation].chunk(2, -1)
        return torch.cat([hr * rr - hi * ri, hr * ri + hi * rr], -1)

    def move_back(self, points: Tensor, relation: Tensor) -> Tensor:
        (tr, ti), (rr, ri) = points.chunk(2, -1), self.relation[relation].chunk(2, -1)
        return torch.cat([rr * tr + ri * ti, rr * ti - ri * tr], -1)

    def near(self, points: Tensor, rows: Tensor) -> Tensor:
        return points @ rows.T

    def fit(self, points: Tensor, rows: Tensor) -> Tensor:
        return (points * rows).sum(-1)

    def penalty(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        """N3: the mean cubed modulus of what a batch touches."""
        total = torch.zeros((), device=head.device)
        for rows in (self.entity[head], self.relation[relation], self.entity[tail]):
            real, imaginary = rows.chunk(2, -1)
            total = total + (real**2 + imaginary**2).clamp(min=1e-18).pow(1.5).sum()
        return total / len(head)


class RotatE(Embeddings):
    """gamma - |h r - t|, relations are rotations (Sun et al. 2019) and their inverses the opposite ones."""

    MARGIN = 9.0
    usual_negatives = 100  # a sum of moduli is no matrix product

    def __init__(self, num_entities: int, num_relations: int, rank: int) -> None:
        super().__init__(num_entities, num_relations, 2 * rank, rank)
        bound = (self.MARGIN + 2) / rank
        with torch.no_grad():
            self.entity.uniform_(-bound, bound)
            self.relation.uniform_(-torch.pi, torch.pi)

    def move(self, points: Tensor, relation: Tensor) -> Tensor:
        return _rotate(points, self._phase(relation))

    def move_back(self, points: Tensor, relation: Tensor) -> Tensor:
        return _rotate(points, -self._phase(relation))

    def near(self, points: Tensor, rows: Tensor) -> Tensor:
        return self.MARGIN - _distance(points.unsqueeze(1), rows.unsqueeze(0))

    def fit(self, points: Tensor, rows: Tensor) -> Tensor:
        return self.MARGIN - _distance(points, rows)

    def _phase(self, relation: Tensor) -> Tensor:
        backwards = relation > self.num_relations
        base = self.relation[torch.where(backwards, relation - self.num_relations, relation)]
        return torch.where(backwards.unsqueeze(-1), -base, base)


class RotE(Embeddings):
    """-|h r + d - t|^2 plus a bias of t: relations rotate and shift (Chami et al. 2020). The bias is the last column.

    Squared distances are a matrix product and two norms, so this costs what ComplEx does. Walks keep their meaning in
    it, which places entities near those that several facts away belong to them.
    """

    def __init__(self, num_entities: int, num_relations: int, rank: int) -> None:
        super().__init__(num_entities, num_relations, 2 * rank + 1, 3 * rank)
        self.rank = rank
        with torch.no_grad():
            self.relation[:, :rank].uniform_(-torch.pi, torch.pi)

    def points(self, entity: Tensor) -> Tensor:
        return self.entity[entity][:, :-1]

    def move(self, points: Tensor, relation: Tensor) -> Tensor:
        phase, shift = self._parts(relation)
        return _rotate(points, phase) + shift

    def move_back(self, points: Tensor, relation: Tensor) -> Tensor:
        phase, shift = self._parts(relation)
        return _rotate(points - shift, -phase)

    def near(self, points: Tensor, rows: Tensor) -> Tensor:
        places = rows[:, :-1]
        squared = (points**2).sum(-1, keepdim=True) + (places**2).sum(-1) - 2 * points @ places.T
        return rows[:, -1] - squared

    def fit(self, points: Tensor, rows: Tensor) -> Tensor:
        return rows[:, -1] - ((points - rows[:, :-1]) ** 2).sum(-1)

    def heads(self, relation: Tensor, tail: Tensor) -> Tensor:
        return super().heads(relation, tail) - self.entity[:, -1] + self.entity[tail][:, -1:]

    def penalty(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        """The mean squared distance from the middle of what a batch touches."""
        return (self.points(head) ** 2 + self.points(tail) ** 2).sum() / len(head)

    def _parts(self, relation: Tensor) -> tuple[Tensor, Tensor]:
        rows = self.relation[relation]
        return rows[:, : self.rank], rows[:, self.rank :]


def _rotate(points: Tensor, phase: Tensor) -> Tensor:
    (real, imaginary), cosine, sine = points.chunk(2, -1), phase.cos(), phase.sin()
    return torch.cat([real * cosine - imaginary * sine, real * sine + imaginary * cosine], -1)


def _distance(one: Tensor, other: Tensor) -> Tensor:
    real, imaginary = (one - other).chunk(2, -1)
    return (real**2 + imaginary**2 + 1e-12).sqrt().sum(-1)


MODELS: dict[str, type[ComplEx] | type[RotatE] | type[RotE]] = {"complex": ComplEx, "rotate": RotatE, "rote": RotE}


def make_model(name: str, num_entities: int, num_relations: int, rank: int) -> Embeddings:
    """A fresh model by name."""
    if name not in MODELS:
        raise unknown_name("KGE model", name, MODELS, "`shoal kg train-kge --help`")
    return MODELS[name](num_entities, num_relations, rank)


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
