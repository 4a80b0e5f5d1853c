"""Embedding models. Entities and relations are the world's ids: row 0 is padding, relation p has its inverse at p + P.

A model scores triples, and all tails of (head, relation) at once; heads are tails of the inverse relation.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from shoal.errors import unknown_name

INIT_SCALE = 1e-3


class Embeddings(nn.Module):
    """Tables shared by the models: `rank` complex numbers per entity, real parts first."""

    def __init__(self, num_entities: int, num_relations: int, rank: int, relation_width: int) -> None:
        super().__init__()
        self.num_relations, self.rank = num_relations, rank
        self.entity = nn.Parameter(torch.randn(num_entities + 1, 2 * rank))
        self.relation = nn.Parameter(torch.randn(2 * num_relations + 1, relation_width))

    def inverse(self, relation: Tensor) -> Tensor:
        """The relation [m] read from tail to head."""
        return torch.where(relation > self.num_relations, relation - self.num_relations, relation + self.num_relations)


class ComplEx(Embeddings):
    """Re <h, r, conj(t)> (Trouillon et al. 2016), with reciprocal relations and N3 (Lacroix et al. 2018)."""

    def __init__(self, num_entities: int, num_relations: int, rank: int) -> None:
        super().__init__(num_entities, num_relations, rank, 2 * rank)
        with torch.no_grad():
            self.entity.mul_(INIT_SCALE)
            self.relation.mul_(INIT_SCALE)

    def query(self, head: Tensor, relation: Tensor) -> Tensor:
        """The vector [m, 2 rank] whose product with a tail is its score."""
        (hr, hi), (rr, ri) = self.entity[head].chunk(2, -1), self.relation[relation].chunk(2, -1)
        return torch.cat([hr * rr - hi * ri, hr * ri + hi * rr], -1)

    def scores(self, head: Tensor, relation: Tensor, tails: Tensor | None) -> Tensor:
        """[m, k] scores of `tails` [k], or of all rows of the table."""
        table = self.entity if tails is None else self.entity[tails]
        return self.query(head, relation) @ table.T

    def heads(self, relation: Tensor, tail: Tensor) -> Tensor:
        """[m, entities + 1] scores of all heads of (relation, tail)."""
        (rr, ri), (tr, ti) = self.relation[relation].chunk(2, -1), self.entity[tail].chunk(2, -1)
        return torch.cat([rr * tr + ri * ti, rr * ti - ri * tr], -1) @ self.entity.T

    def triples(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        """[m] scores."""
        return (self.query(head, relation) * self.entity[tail]).sum(-1)

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

    def __init__(self, num_entities: int, num_relations: int, rank: int) -> None:
        super().__init__(num_entities, num_relations, rank, rank)
        bound = (self.MARGIN + 2) / rank
        with torch.no_grad():
            self.entity.uniform_(-bound, bound)
            self.relation.uniform_(-torch.pi, torch.pi)

    def turned(self, head: Tensor, relation: Tensor) -> Tensor:
        """The head after the rotation, [m, 2 rank]."""
        backwards = (relation > self.num_relations).unsqueeze(-1)
        base = torch.where(relation > self.num_relations, relation - self.num_relations, relation)
        phase = torch.where(backwards, -self.relation[base], self.relation[base])
        (hr, hi), cosine, sine = self.entity[head].chunk(2, -1), phase.cos(), phase.sin()
        return torch.cat([hr * cosine - hi * sine, hr * sine + hi * cosine], -1)

    def scores(self, head: Tensor, relation: Tensor, tails: Tensor | None) -> Tensor:
        table = self.entity if tails is None else self.entity[tails]
        return self.MARGIN - _distance(self.turned(head, relation).unsqueeze(1), table.unsqueeze(0))

    def heads(self, relation: Tensor, tail: Tensor) -> Tensor:
        return self.scores(tail, self.inverse(relation), None)

    def triples(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        return self.MARGIN - _distance(self.turned(head, relation), self.entity[tail])

    def penalty(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        """Rotations need no regulariser."""
        return torch.zeros((), device=head.device)


def _distance(one: Tensor, other: Tensor) -> Tensor:
    real, imaginary = (one - other).chunk(2, -1)
    return (real**2 + imaginary**2 + 1e-12).sqrt().sum(-1)


MODELS: dict[str, type[ComplEx] | type[RotatE]] = {"complex": ComplEx, "rotate": RotatE}


def make_model(name: str, num_entities: int, num_relations: int, rank: int) -> ComplEx | RotatE:
    """A fresh model by name."""
    if name not in MODELS:
        raise unknown_name("KGE model", name, MODELS, "`shoal.worlds.kg.kge.models`")
    return MODELS[name](num_entities, num_relations, rank)
