"""Link prediction: rank every true triple of a split against its corruptions, by proofs, by a KGE model, or by both.

| mode | score of a candidate; lp = log-probability of the proof found, k = log KGE score, w = score by walks |
|---|---|
| rl_only | lp if proved, else lp - fail_penalty |
| kge_only | k; the environment is not run |
| hybrid | kge_weight k + rl_weight lp if proved, else kge_weight k - fail_penalty; with walks also walk_weight w |
| hybrid_bonus | 2 k + 1 if proved, else 2 k - 0.5 |
| symbolic | minus the fewest steps to a proof; what has none comes last |

Ties: half of the tied candidates count as better (`realistic`), unless asked otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from shoal.errors import ConfigError
from shoal.worlds.kg.dataset import Dataset, Queries
from shoal.worlds.kg.fusion import fit_weights
from shoal.worlds.kg.metrics import auc_pr, auc_roc, rank_metrics, ranks
from shoal.worlds.kg.negatives import SIDES, corrupt
from shoal.worlds.kg.options import KGOptions
from shoal.worlds.kg.outcomes import Outcomes, nothing_proved
from shoal.worlds.kg.prover import Prover

MODES = ("rl_only", "kge_only", "hybrid", "hybrid_bonus", "symbolic")
CHUNK = 200_000  # candidates at once
PROVED_AT_ONCE = 5_000  # candidates of exact search between two reports
FITTED_AGAINST = 100  # corruptions, where rankings are against all constants
WEIGHTS = ("kge_weight", "rl_weight", "fail_penalty", "walk_weight")
NEVER = -1e9  # what cannot be proved scores below everything that can

Share = Callable[[float], None]  # told how much of a task is done, from 0 to 1
Prove = Callable[[np.ndarray, Share], Outcomes]  # candidates [m, 3] -> what became of them


@dataclass(frozen=True)
class EvalConfig:
    """What is ranked, by what."""

    mode: Literal["rl_only", "kge_only", "hybrid", "hybrid_bonus", "symbolic"] = "rl_only"
    corruptions: int | None = 100
    """Per triple and side; none ranks against all admissible constants."""
    sides: tuple[str, ...] = ("head", "tail")
    ties: Literal["realistic", "optimistic", "pessimistic"] = "realistic"
    kge_weight: float = 2.0
    rl_weight: float = 1.0
    fail_penalty: float = 100.0
    walk_weight: float = 1.0
    """Of the score by walks, where such a model is given beside the KGE model."""
    prove_top: int | None = None
    """Give only this many candidates, the best by KGE score, to the prover; the others count as not proved."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ConfigError(f"mode={self.mode!r} is unknown. Use one of {', '.join(MODES)}.")
        if not self.sides or any(side not in ("head", "tail") for side in self.sides):
            raise ConfigError(f"sides={self.sides!r} are unknown. Use head, tail or both.")

    @property
    def needs_proofs(self) -> bool:
        return self.mode in ("rl_only", "hybrid", "hybrid_bonus")

    @property
    def needs_kge(self) -> bool:
        return self.mode in ("kge_only", "hybrid", "hybrid_bonus") or self.prove_top is not None


@dataclass
class Side:
    """All candidates of one side: column 0 is the true triple. [m, 1 + k] each but for the ranks [m]."""

    score: np.ndarray
    valid: np.ndarray
    proved: np.ndarray
    length: np.ndarray
    rank: np.ndarray
    kge_rank: np.ndarray
    """By the KGE model alone."""


class Evidence(NamedTuple):
    """What is known about candidates [m, 1 + k]; zeros where nothing was asked."""

    valid: np.ndarray
    log_kge: np.ndarray
    walk: np.ndarray
    proved: np.ndarray
    log_prob: np.ndarray
    length: np.ndarray


def rank_queries(
    data: Dataset,
    queries: Queries,
    config: EvalConfig,
    *,
    prove: Prove | None = None,
    kge: Any = None,
    walks: Any = None,
    fit_on: Queries | None = None,
    options: KGOptions | None = None,
    progress: Share | None = None,
) -> dict[str, Any]:
    """Metrics per side and their mean, as a JSON value.

    Args:
        prove: runs candidates through a policy, see `proving`; needed by the modes that prove.
        kge: a `KGE`; needed by the modes that ask one.
        walks: another `KGE`, whose score hybrid adds.
        fit_on: queries on which the weights of hybrid are fitted first, see `fusion`; none takes them as they are.
        options: limits of the symbolic search.
        progress: told the share that is done, again and again.
    """
    if config.needs_kge and kge is None:
        raise ConfigError(f"Mode {config.mode!r} asks a KGE model, but none was given. Pass one, or train it.")
    if config.needs_proofs and prove is None:
        raise ConfigError(f"Mode {config.mode!r} needs a policy that proves.")
    if not len(queries):
        raise ConfigError("There is no query to evaluate. Loosen the filters or name another split.")
    judge, show = Judge(data, config, prove, kge, walks, options or KGOptions()), progress or (lambda share: None)
    if fit_on is not None:
        judge.config = config = _fitted(data, fit_on, judge, _part(show, 0, 2))
        show = _part(show, 1, 2)
    sides = {}
    for number, side in enumerate(config.sides):
        part = _part(show, number, len(config.sides))
        sides[side] = _merge([judge(*chunk) for chunk in _chunks(data, queries, side, config, part)])
    weights = WEIGHTS if walks is not None else WEIGHTS[:-1]  # the last one is that of the walks
    return {
        "mode": config.mode,
        "ties": config.ties,
        "corruptions": config.corruptions,
        "weights": {name: getattr(config, name) for name in weights} if config.mode == "hybrid" else {},
        **_summary(sides, queries, data),
    }


def _fitted(data: Dataset, queries: Queries, judge: Judge, show: Share) -> EvalConfig:
    """The settings of `judge` with weights that suit `queries`."""
    config, found = replace(judge.config, corruptions=judge.config.corruptions or FITTED_AGAINST), []
    for number, side in enumerate(config.sides):
        for chunk in _chunks(data, queries, side, config, _part(show, number, len(config.sides))):
            found.append(judge.evidence(*chunk))
    return replace(judge.config, **fit_weights(found))  # type: ignore[arg-type]


def _part(show: Share, begin: float, whole: float, size: float = 1.0) -> Share:
    """How to report the share of a part that begins after `begin` and is `size` out of `whole`."""
    return lambda share: show((begin + size * share) / whole)


def _chunks(
    data: Dataset, queries: Queries, side: str, config: EvalConfig, show: Share
) -> Iterator[tuple[np.ndarray, np.ndarray, Share]]:
    """True triples with their corruptions [m, 1 + k, 3], which of them count [m, 1 + k], and whom to tell how far."""
    rng = np.random.default_rng([config.seed, SIDES[side]])
    widest = int(np.diff(data.domains.start).max()) if config.corruptions is None else config.corruptions
    chunk = max(1, CHUNK // (1 + widest))
    for begin in range(0, len(queries), chunk):
        true = queries.triples[begin : begin + chunk]
        made = corrupt(data, true, side, config.corruptions, rng)
        triples = np.concatenate([true[:, None], made.triples], 1)
        valid = np.concatenate([np.ones((len(true), 1), np.bool_), made.valid], 1)
        yield triples, valid, _part(show, begin, len(queries), len(true))
        show((begin + len(true)) / len(queries))


def _merge(parts: list[Side]) -> Side:
    width = max(part.score.shape[1] for part in parts)
    tables = [[getattr(part, name) for part in parts] for name in ("score", "valid", "proved", "length")]
    ranks_of = [np.concatenate([getattr(part, name) for part in parts]) for name in ("rank", "kge_rank")]
    return Side(*[np.concatenate([_widen(array, width) for array in arrays]) for arrays in tables], *ranks_of)


def _widen(array: np.ndarray, width: int) -> np.ndarray:
    """Rows of zeros (not valid) at the right."""
    return np.pad(array, ((0, 0), (0, width - array.shape[1])))


class Judge:
    """Scores of candidates under one mode."""

    def __init__(
        self, data: Dataset, config: EvalConfig, prove: Prove | None, kge: Any, walks: Any, options: KGOptions
    ) -> None:
        self.config, self.prove, self.kge, self.walks = config, prove, kge, walks
        limits = {"max_atoms": options.max_atoms, "selection": options.selection}
        self._symbolic = Prover(data.kb, **limits) if config.mode == "symbolic" else None  # type: ignore[arg-type]
        self._depth = options.max_depth

    def __call__(self, triples: np.ndarray, valid: np.ndarray, show: Share = lambda share: None) -> Side:
        """Candidates [m, 1 + k, 3] and which of them count [m, 1 + k]."""
        found, ties = self.evidence(triples, valid, show), self.config.ties
        score = self._score(found)
        by_kge = ranks(found.log_kge, valid, ties)
        return Side(score, valid, found.proved, found.length, ranks(score, valid, ties), by_kge)

    def evidence(self, triples: np.ndarray, valid: np.ndarray, show: Share = lambda share: None) -> Evidence:
        """Ask the models and the prover."""
        config = self.config
        log_kge, walk = np.zeros(valid.shape), np.zeros(valid.shape)
        if config.needs_kge:
            log_kge[valid] = self.kge.ranking_score(triples[valid])
        if self.walks is not None:
            walk[valid] = self.walks.logit(triples[valid])
        asked = valid if config.prove_top is None else valid & _is_top(log_kge, valid, config.prove_top)
        found = self._outcomes(triples[asked], show)
        proved, length, log_prob = np.zeros(valid.shape, np.bool_), np.zeros(valid.shape), np.zeros(valid.shape)
        proved[asked], length[asked], log_prob[asked] = found.success, found.length, found.log_prob
        return Evidence(valid, log_kge, walk, proved, log_prob, length)

    def _score(self, found: Evidence) -> np.ndarray:
        config = self.config
        if config.mode == "kge_only":
            return found.log_kge
        if config.mode == "symbolic":
            return np.where(found.proved, -found.length, NEVER)
        if config.mode == "rl_only":
            return np.where(found.proved, found.log_prob, found.log_prob - config.fail_penalty)
        if config.mode == "hybrid_bonus":
            return 2 * found.log_kge + np.where(found.proved, 1.0, -0.5)
        by_proof = np.where(found.proved, config.rl_weight * found.log_prob, -config.fail_penalty)
        by_walks = config.walk_weight * found.walk if self.walks is not None else 0.0
        return config.kge_weight * found.log_kge + by_proof + by_walks

    def _outcomes(self, triples: np.ndarray, show: Share) -> Outcomes:
        if self._symbolic is not None:
            parts = [np.zeros(0, np.int32)]
            for begin in range(0, len(triples), PROVED_AT_ONCE):
                parts.append(self._symbolic.prove(triples[begin : begin + PROVED_AT_ONCE], self._depth))
                show(begin / len(triples))
            steps = np.concatenate(parts)
            return Outcomes(np.zeros(len(steps)), steps > 0, np.maximum(steps, 0))
        if self.config.mode == "kge_only" or self.prove is None:
            return nothing_proved(len(triples))
        return self.prove(triples, show)


def _is_top(score: np.ndarray, valid: np.ndarray, top: int) -> np.ndarray:
    """[m, k] bool: among the `top` valid scores of its row. The true triple competes like the others."""
    order = np.argsort(np.argsort(-np.where(valid, score, -np.inf), axis=1, kind="stable"), axis=1)
    return order < top


# ---------------------------------------------------------------------- what is reported


def _summary(sides: dict[str, Side], queries: Queries, data: Dataset) -> dict[str, Any]:
    per_side = {name: {**rank_metrics(side.rank), **_classification(side)} for name, side in sides.items()}
    mean = {
        key: float(np.mean([numbers[key] for numbers in per_side.values()])) for key in next(iter(per_side.values()))
    }
    reciprocal = np.mean([1.0 / side.rank for side in sides.values()], axis=0)
    error = 1.96 * float(reciprocal.std()) / np.sqrt(len(reciprocal))  # of a mean over queries, 95 %
    proved = np.mean([side.proved[:, 0] for side in sides.values()], axis=0)
    return {
        "queries": len(queries),
        **mean,
        "mrr_low": mean["mrr"] - error,
        "mrr_high": mean["mrr"] + error,
        "sides": per_side,
        "over_kge": _over_kge(sides),
        "proved_by_depth": _by(queries.depth, proved, str),
        "proved_by_predicate": _by(queries.triples[:, 0], proved, lambda p: data.kb.vocabulary.predicates[p]),
    }


def _over_kge(sides: dict[str, Side]) -> dict[str, float]:
    """How much the MRR is above that of the KGE model alone, paired by query, and the half width of its interval."""
    gain = np.mean([1.0 / side.rank - 1.0 / side.kge_rank for side in sides.values()], axis=0)
    return {"mean": float(gain.mean()), "error": 1.96 * float(gain.std()) / np.sqrt(len(gain))}


def _by(keys: np.ndarray, values: np.ndarray, name: Callable[[Any], str]) -> dict[str, float]:
    return {name(key): float(values[keys == key].mean()) for key in np.unique(keys).tolist()}


def _classification(side: Side) -> dict[str, float]:
    """How well scores, and the mere fact of a proof, tell true triples from corruptions."""
    positive = np.zeros_like(side.valid)
    positive[:, 0] = True
    label, proved, length = positive[side.valid], side.proved[side.valid], side.length[side.valid]
    hits = int((proved & label).sum())
    precision = hits / max(1, int(proved.sum()))
    recall = hits / max(1, int(label.sum()))
    return {
        "auc_pr": auc_pr(side.score[side.valid], label),
        "auc_roc": auc_roc(side.score[side.valid], label),
        "accuracy": float((proved == label).mean()),
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / max(1e-12, precision + recall),
        "proved_negatives": float(proved[~label].mean()) if (~label).any() else 0.0,
        "proof_length": float(length[proved & label].mean()) if hits else 0.0,
    }
