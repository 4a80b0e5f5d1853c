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
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.errors import ConfigError
from shoal.options import Values
from shoal.worlds.kg.lab.metrics import auc_pr, auc_roc, rank_metrics, ranks
from shoal.worlds.kg.lab.prover import Prove, Share, nothing_proved
from shoal.worlds.kg.lab.ranking_options import EvalConfig
from shoal.worlds.kg.lanes.data.corruptions import SIDES, corrupt
from shoal.worlds.kg.lanes.data.dataset import Dataset, Queries

if TYPE_CHECKING:
    from shoal.worlds.kg.lanes.kge.scoring import KGE

CHUNK = 200_000  # candidates at once
FITTED_AGAINST = 100  # corruptions, where rankings are against all constants
WEIGHTS = ("kge_weight", "rl_weight", "fail_penalty", "walk_weight")
NEVER = -1e9  # what cannot be proved scores below everything that can
RIDGE = 1e-4  # keeps weights finite where something separates true from wrong completely
NEWTON_STEPS = 30


class Side(NamedTuple):
    """All candidates of one side: column 0 is the true triple. [m, 1 + k] each but for the ranks [m]."""

    score: np.ndarray
    valid: np.ndarray
    proved: np.ndarray
    length: np.ndarray
    rank: np.ndarray
    kge_rank: np.ndarray  # by the KGE model alone


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
    kge: KGE | None = None,
    walks: KGE | None = None,
    fit_on: Queries | None = None,
    progress: Share = lambda share: None,
) -> Values:
    """Metrics per side and their mean, as a JSON value.

    Args:
        prove: tries to prove candidates, by a policy, for mode symbolic by exact search.
        kge: needed by the modes that ask a model.
        walks: another model, whose score hybrid adds.
        fit_on: queries on which the weights of hybrid are fitted first; none takes them as they are.
        progress: told the share that is done, again and again.
    """
    if config.needs_kge and kge is None:
        raise ConfigError(f"Mode {config.mode!r} asks a KGE model, but none was given. Pass one, or train it.")
    if config.needs_proofs and prove is None:
        raise ConfigError(f"Mode {config.mode!r} needs a prover, but none was given. Pass prove=...")
    if not len(queries):
        raise ConfigError("There is no query to evaluate. Loosen the filters or name another split.")
    judge = Judge(config, prove, kge, walks)
    if fit_on is not None:
        judge.config = config = _fitted(data, fit_on, judge, _part(progress, 0, 2))
        progress = _part(progress, 1, 2)
    sides = {}
    for number, side in enumerate(config.sides):
        part = _part(progress, number, len(config.sides))
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
    config, evidence = replace(judge.config, corruptions=judge.config.corruptions or FITTED_AGAINST), []
    for number, side in enumerate(config.sides):
        for chunk in _chunks(data, queries, side, config, _part(show, number, len(config.sides))):
            evidence.append(judge.evidence(*chunk))
    return replace(judge.config, **fit_weights(evidence))  # type: ignore[arg-type]


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
    """One below the other, with zeros (not valid) at the right of those that have fewer candidates."""
    width = max(part.score.shape[1] for part in parts)
    padded = [[np.pad(table, ((0, 0), (0, width - table.shape[1]))) for table in part[:4]] for part in parts]
    merged = [np.concatenate(column) for column in zip(*padded, strict=True)]
    return Side(*merged, *[np.concatenate(column) for column in zip(*[part[4:] for part in parts], strict=True)])


class Judge:
    """Scores of candidates under one mode."""

    def __init__(
        self, config: EvalConfig, prove: Prove | None = None, kge: KGE | None = None, walks: KGE | None = None
    ) -> None:
        self.config, self.prove, self.kge, self.walks = config, prove, kge, walks

    def __call__(self, triples: np.ndarray, valid: np.ndarray, show: Share = lambda share: None) -> Side:
        """Candidates [m, 1 + k, 3] and which of them count [m, 1 + k]."""
        evidence, ties = self.evidence(triples, valid, show), self.config.ties
        score = self._score(evidence)
        by_kge = ranks(evidence.log_kge, valid, ties)
        return Side(score, valid, evidence.proved, evidence.length, ranks(score, valid, ties), by_kge)

    def evidence(self, triples: np.ndarray, valid: np.ndarray, show: Share = lambda share: None) -> Evidence:
        """Ask the models and the prover."""
        config = self.config
        log_kge, walk = np.zeros(valid.shape), np.zeros(valid.shape)
        if config.needs_kge:
            assert self.kge is not None
            log_kge[valid] = self.kge.ranking_score(triples[valid])
        if self.walks is not None:
            walk[valid] = self.walks.logit(triples[valid])
        asked = valid if config.prove_top is None else valid & _is_top(log_kge, valid, config.prove_top)
        outcomes = nothing_proved(int(asked.sum()))
        if config.needs_proofs and self.prove is not None:
            outcomes = self.prove(triples[asked], show)
        proved, length, log_prob = np.zeros(valid.shape, np.bool_), np.zeros(valid.shape), np.zeros(valid.shape)
        proved[asked], length[asked], log_prob[asked] = outcomes.success, outcomes.length, outcomes.log_prob
        return Evidence(valid, log_kge, walk, proved, log_prob, length)

    def _score(self, evidence: Evidence) -> np.ndarray:
        config, proved, log_prob = self.config, evidence.proved, evidence.log_prob
        if config.mode == "kge_only":
            return evidence.log_kge
        if config.mode == "symbolic":
            return np.where(proved, -evidence.length, NEVER)
        if config.mode == "rl_only":
            return np.where(proved, log_prob, log_prob - config.fail_penalty)
        if config.mode == "hybrid_bonus":
            return 2 * evidence.log_kge + np.where(proved, 1.0, -0.5)
        by_proof = np.where(proved, config.rl_weight * log_prob, -config.fail_penalty)
        by_walks = config.walk_weight * evidence.walk if self.walks is not None else 0.0
        return config.kge_weight * evidence.log_kge + by_proof + by_walks


def _is_top(score: np.ndarray, valid: np.ndarray, top: int) -> np.ndarray:
    """[m, k] bool: among the `top` valid scores of its row. The true triple competes like the others."""
    order = np.argsort(np.argsort(-np.where(valid, score, -np.inf), axis=1, kind="stable"), axis=1)
    return order < top


# ---------------------------------------------------------------------- fitted weights


def fit_weights(evidence: list[Evidence]) -> dict[str, float]:
    """Weights of proofs, a KGE model and walks in one score; column 0 of each part is the true triple.

    A conditional logit: the probability that a candidate is the true one is the softmax, over its row, of the weighted
    sum of what is known about it. The four weights that make the true ones likeliest are found by Newton's method.
    """
    known = [np.stack([part.log_kge, part.proved * part.log_prob, part.proved, part.walk], -1) for part in evidence]
    valid, weight = [part.valid for part in evidence], np.array([1.0, 0.0, 0.0, 0.0])
    loss, slope, curve = _loss(known, valid, weight)
    for _ in range(NEWTON_STEPS):
        step, size = np.linalg.solve(curve, slope), 1.0
        while size > 1e-6 and _loss(known, valid, weight - size * step)[0] > loss:
            size /= 2
        weight = weight - size * step
        before, (loss, slope, curve) = loss, _loss(known, valid, weight)
        if before - loss < 1e-9:
            break
    return dict(zip(WEIGHTS, weight.tolist(), strict=True))


def _loss(known: list[np.ndarray], valid: list[np.ndarray], weight: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Mean cross entropy of column 0 among what is valid, with its gradient [f] and Hessian [f, f]."""
    size = sum(map(len, known))
    loss, slope, curve = RIDGE * float(weight @ weight), 2 * RIDGE * weight, 2 * RIDGE * np.eye(len(weight))
    for rows, counts in zip(known, valid, strict=True):
        score = np.where(counts, rows @ weight, -np.inf)
        score -= score.max(1, keepdims=True)
        chance = np.exp(score)
        total = chance.sum(1, keepdims=True)
        chance /= total
        mean = np.einsum("mk,mkf->mf", chance, rows)
        loss += float((np.log(total[:, 0]) - score[:, 0]).sum()) / size
        slope = slope + (mean - rows[:, 0]).sum(0) / size
        curve = curve + (np.einsum("mk,mkf,mkg->fg", chance, rows, rows, optimize=True) - mean.T @ mean) / size
    return loss, slope, curve


# ---------------------------------------------------------------------- what is reported


def _summary(sides: dict[str, Side], queries: Queries, data: Dataset) -> Values:
    per_side = {name: {**rank_metrics(side.rank), **_classification(side)} for name, side in sides.items()}
    names = next(iter(per_side.values()))
    mean = {name: float(np.mean([numbers[name] for numbers in per_side.values()])) for name in names}
    _, error = _mean_and_error([1.0 / side.rank for side in sides.values()])
    gain, gain_error = _mean_and_error([1.0 / side.rank - 1.0 / side.kge_rank for side in sides.values()])
    proved = np.mean([side.proved[:, 0] for side in sides.values()], axis=0)
    return {
        "queries": len(queries),
        **mean,
        "mrr_low": mean["mrr"] - error,
        "mrr_high": mean["mrr"] + error,
        "sides": per_side,
        "over_kge": {"mean": gain, "error": gain_error},  # of the MRR over the KGE model alone, paired by query
        "proved_by_depth": _by(queries.depth, proved, str),
        "proved_by_predicate": _by(queries.triples[:, 0], proved, lambda p: data.kb.vocabulary.predicates[p]),
    }


def _mean_and_error(of_sides: list[np.ndarray]) -> tuple[float, float]:
    """The mean over queries of values [m] of each side, and the half width of its 95 % interval."""
    value = np.mean(of_sides, axis=0)
    return float(value.mean()), 1.96 * float(value.std()) / np.sqrt(len(value))


def _by(keys: np.ndarray, values: np.ndarray, name: Callable[[int], str]) -> dict[str, float]:
    return {name(key): float(values[keys == key].mean()) for key in np.unique(keys).tolist()}


def _classification(side: Side) -> dict[str, float]:
    """How well scores, and the mere fact of a proof, tell true triples from corruptions."""
    positive = np.zeros_like(side.valid)
    positive[:, 0] = True
    label, proved, length, score = (a[side.valid] for a in (positive, side.proved, side.length, side.score))
    hits = int((proved & label).sum())
    precision = hits / max(1, int(proved.sum()))
    recall = hits / max(1, int(label.sum()))
    return {
        "auc_pr": auc_pr(score, label),
        "auc_roc": auc_roc(score, label),
        "accuracy": float((proved == label).mean()),
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / max(1e-12, precision + recall),
        "proved_negatives": float(proved[~label].mean()) if (~label).any() else 0.0,
        "proof_length": float(length[proved & label].mean()) if hits else 0.0,
    }
