"""`KGE`: a trained model as the world asks it, in the world's own ids. No strings, no loops.

Scores are probabilities: a sigmoid of the model's raw score, stretched and shifted (`calibrate`) so that it separates
true triples from corruptions. Triples with an entity or relation that the model does not know score 0.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from shoal.errors import ConfigError
from shoal.worlds.kg.lanes.data.vocabulary import Vocabulary

LOG_FLOOR = math.log(1e-9)
LAST = -1e9  # where a ranking puts what the model does not know


class RawModel(Protocol):
    """What any model answers: raw scores, the larger the likelier."""

    def raw(self, triples: Tensor) -> Tensor:
        """[m, 3] of (predicate, head, tail) -> [m]."""

    def raw_tails(self, head: Tensor, predicate: Tensor) -> Tensor:
        """[m], [m] -> [m, n]: column c is the constant c + 1."""

    def raw_heads(self, predicate: Tensor, tail: Tensor) -> Tensor:
        """[m], [m] -> [m, n]."""

    def knows(self, triples: Tensor) -> Tensor:
        """[m, 3] -> [m] bool."""


class KGE:
    """Calibrated scores of a model over `vocabulary`."""

    def __init__(self, model: RawModel, vocabulary: Vocabulary, scale: float = 1.0, shift: float = 0.0) -> None:
        self.model, self.vocabulary, self.scale, self.shift = model, vocabulary, scale, shift

    @torch.no_grad()
    def log_score_tensor(self, triples: Tensor) -> Tensor:
        """Log-probabilities [m] of triples [m, 3] (predicate, head, tail), at least log 1e-9."""
        self._check(triples)
        logs = F.logsigmoid(self._calibrated(self.model.raw(triples.long()))).float()
        return torch.where(self.model.knows(triples), logs, LOG_FLOOR).clamp(min=LOG_FLOOR)

    def log_score(self, triples: np.ndarray) -> np.ndarray:
        """The same on arrays, in chunks of bounded memory."""
        parts = [self.log_score_tensor(torch.as_tensor(part)) for part in _chunks(triples)]
        return torch.cat(parts).numpy() if parts else np.zeros(0, np.float32)

    @torch.no_grad()
    def raw_score(self, triples: np.ndarray) -> np.ndarray:
        """Raw scores [m], -inf for what the model does not know."""
        parts = [self._raw_score(torch.as_tensor(part).long()) for part in _chunks(triples)]
        return torch.cat(parts).numpy() if parts else np.zeros(0, np.float32)

    def _raw_score(self, triples: Tensor) -> Tensor:
        self._check(triples)
        return torch.where(self.model.knows(triples), self.model.raw(triples), -torch.inf)

    def logit(self, triples: np.ndarray) -> np.ndarray:
        """Calibrated scores [m] in double precision, before the sigmoid."""
        return self._calibrated(torch.as_tensor(self.raw_score(triples))).clamp(min=LAST).numpy()

    def ranking_score(self, triples: np.ndarray) -> np.ndarray:
        """Log-probabilities [m] in double precision and without a floor, since a floor would make ties."""
        return F.logsigmoid(torch.as_tensor(self.logit(triples))).numpy()

    @torch.no_grad()
    def score_tails(self, head: np.ndarray, predicate: np.ndarray) -> np.ndarray:
        """Probabilities [m, n] of every constant as the tail."""
        raw = self.model.raw_tails(torch.as_tensor(head).long(), torch.as_tensor(predicate).long())
        return torch.sigmoid(self._calibrated(raw)).numpy()

    @torch.no_grad()
    def score_heads(self, predicate: np.ndarray, tail: np.ndarray) -> np.ndarray:
        """Probabilities [m, n] of every constant as the head."""
        raw = self.model.raw_heads(torch.as_tensor(predicate).long(), torch.as_tensor(tail).long())
        return torch.sigmoid(self._calibrated(raw)).numpy()

    def calibrate(self, positive: np.ndarray, negative: np.ndarray, steps: int = 50) -> None:
        """Fit scale and shift so that the sigmoid tells positive [m, 3] from negative [k, 3] triples (Platt 1999)."""
        raw = np.concatenate([self.raw_score(positive), self.raw_score(negative)]).astype(np.float64)
        label = np.concatenate([np.ones(len(positive)), np.zeros(len(negative))])
        known = np.isfinite(raw)
        raw, label = raw[known], label[known]
        if not len(raw) or raw.std() == 0:
            return
        centre, spread = raw.mean(), raw.std()
        inputs = np.stack([(raw - centre) / spread, np.ones_like(raw)], 1)
        weight = np.array([1.0, 0.0])
        for _ in range(steps):  # Newton, with a little ridge where the classes separate
            chance = 1 / (1 + np.exp(-np.clip(inputs @ weight, -30, 30)))
            slope = inputs.T @ (chance - label) / len(raw) + 1e-4 * weight
            curve = (inputs * (chance * (1 - chance))[:, None]).T @ inputs / len(raw) + 1e-4 * np.eye(2)
            weight = weight - np.linalg.solve(curve, slope)
        if weight[0] > 0:
            self.scale, self.shift = float(weight[0] / spread), float(weight[1] - weight[0] * centre / spread)

    def _calibrated(self, raw: Tensor) -> Tensor:
        return self.scale * raw.double() + self.shift

    def _check(self, triples: Tensor) -> None:
        high = (self.vocabulary.num_regular, self.vocabulary.num_constants, self.vocabulary.num_constants)
        if len(triples) and (triples.min() < 1 or (triples > torch.tensor(high)).any()):
            raise ConfigError(
                f"The KGE model was asked for ids outside 1..{high[0]} (predicates) and 1..{high[1]} (constants). "
                "It scores ground triples of its own vocabulary only."
            )


def _chunks(triples: np.ndarray, size: int = 65_536) -> list[np.ndarray]:
    return [triples[i : i + size] for i in range(0, len(triples), size)]
