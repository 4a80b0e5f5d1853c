"""Any PyKEEN model as a `KGE`: its labels are matched with the world's names once, then everything is tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from shoal.errors import ConfigError
from shoal.worlds.kg.lanes.data.vocabulary import Vocabulary
from shoal.worlds.kg.lanes.kge.scoring import KGE

if TYPE_CHECKING:
    from pykeen.models import Model
    from pykeen.triples import TriplesFactory


class PykeenModel:
    """Raw scores of a PyKEEN model in the world's ids. -1 marks names that PyKEEN has not seen."""

    def __init__(self, model: Model, entity: Tensor, relation: Tensor) -> None:
        """`entity` [n + 1] and `relation` [P + 1] map our ids to PyKEEN's."""
        self.model, self.entity, self.relation = model.eval(), entity, relation

    def knows(self, triples: Tensor) -> Tensor:
        p, h, t = triples.long().unbind(-1)
        return (self.relation[p] >= 0) & (self.entity[h] >= 0) & (self.entity[t] >= 0)

    def raw(self, triples: Tensor) -> Tensor:
        p, h, t = triples.unbind(-1)
        rows = torch.stack([self.entity[h], self.relation[p], self.entity[t]], 1).clamp(min=0)
        return self.model.score_hrt(rows).squeeze(-1)

    def raw_tails(self, head: Tensor, predicate: Tensor) -> Tensor:
        pairs = torch.stack([self.entity[head], self.relation[predicate]], 1).clamp(min=0)
        return self._columns(self.model.score_t(pairs), (self.entity[head] >= 0) & (self.relation[predicate] >= 0))

    def raw_heads(self, predicate: Tensor, tail: Tensor) -> Tensor:
        pairs = torch.stack([self.relation[predicate], self.entity[tail]], 1).clamp(min=0)
        return self._columns(self.model.score_h(pairs), (self.entity[tail] >= 0) & (self.relation[predicate] >= 0))

    def _columns(self, scores: Tensor, known: Tensor) -> Tensor:
        """PyKEEN's columns in the order of our constants; what it does not know scores lowest."""
        ours = scores[:, self.entity[1:].clamp(min=0)]
        return ours.masked_fill(~(known[:, None] & (self.entity[1:] >= 0)), -torch.inf)


def from_pykeen(model: Model, factory: TriplesFactory, vocabulary: Vocabulary) -> KGE:
    """Wrap a trained PyKEEN `model`; `factory` is the triples factory it was trained on, which has the labels."""
    entity = _map(factory.entity_to_id, ("", *vocabulary.constants))
    relation = _map(factory.relation_to_id, ("", *vocabulary.regular))
    if not (entity >= 0).any() or not (relation >= 0).any():
        raise ConfigError("The PyKEEN model knows none of these constants or predicates: it was trained on other data.")
    return KGE(PykeenModel(model, entity, relation), vocabulary)


def _map(theirs: Mapping[str, int], names: tuple[str, ...]) -> Tensor:
    return torch.tensor([theirs.get(name, -1) for name in names])
