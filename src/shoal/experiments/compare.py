"""Which method is better, by how much, and how sure that is: over runs, experiments and other libraries' logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from shoal.errors import ConfigError
from shoal.experiments.sources import Curve, Source, default_metric, final_scores
from shoal.experiments.statistics import ENOUGH, Interval, difference, probability_of_improvement, seeds_needed
from shoal.training.settings import differences

SAME_LENGTH = 0.02
"""Runs whose lengths differ by no more than this share are equally long: the last iteration may go a little beyond."""


@dataclass(frozen=True)
class Pair:
    """Two sides against each other."""

    a: Source
    b: Source
    gap: Interval
    """Difference of the interquartile means, a - b."""
    improvement: Interval
    """How often a seed of a is better than one of b."""
    seeds: tuple[int, int]
    paired: bool
    """Whether both have the same seeds, which are then drawn together."""
    shown: dict[int, float]
    """How often fewer seeds would have shown the difference."""

    @property
    def sure(self) -> bool:
        """Whether the interval excludes that both are equal, and there are seeds enough for it to mean something."""
        return min(self.seeds) >= ENOUGH and (self.gap.low > 0 or self.gap.high < 0)

    def verdict(self) -> str:
        """In one sentence."""
        if min(self.seeds) < 2:
            return (
                f"{self.a.name} has {self.gap.value:+.4g} against {self.b.name}, but one seed says nothing about a "
                "method: train several with --seeds."
            )
        first, second = (self.a, self.b) if self.gap.value >= 0 else (self.b, self.a)
        value, low, high = self.gap if self.gap.value >= 0 else (-self.gap.value, -self.gap.high, -self.gap.low)
        gap = f"{value:+.4g} [{low:.4g}, {high:.4g}]"
        count = f"{self.seeds[0]} seeds" if len(set(self.seeds)) == 1 else f"{self.seeds[0]} and {self.seeds[1]} seeds"
        few = f"; fewer than {ENOUGH} seeds are a hint at best" if min(self.seeds) < ENOUGH else ""
        if few and low > 0:
            return f"{first.name} looks better than {second.name}: {gap}, {count}{few}."
        if not self.sure:
            return f"{self.a.name} and {self.b.name} cannot be told apart: {gap} for {first.name}, {count}{few}."
        missed = [n for n, share in self.shown.items() if share < 0.5]
        hint = f"; {max(missed)} seeds would most likely not have shown it" if missed else ""
        return f"{first.name} is better than {second.name}: {gap}, {count}{hint}."


@dataclass(frozen=True)
class Comparison:
    """All sides on one metric."""

    metric: str
    at: float
    """Environment steps at which scores are taken: as far as all have come."""
    sources: tuple[Source, ...]
    curves: tuple[list[Curve], ...]
    scores: tuple[np.ndarray, ...]
    """Of every source [N], one per run."""
    pairs: tuple[Pair, ...]
    remarks: tuple[str, ...]

    @property
    def verdicts(self) -> list[str]:
        return [pair.verdict() for pair in self.pairs]


def compare(sources: Sequence[Source], metric: str | None = None) -> Comparison:
    """Hold sources against each other at equal steps. Without a metric, by evaluation or else by training return."""
    sources = _with_distinct_names(sources)
    _check(sources)
    metric = metric or default_metric(list(sources))
    curves = tuple(source.curves(metric) for source in sources)
    ends = [float(np.median([x[-1] for x, _ in each])) for each in curves]
    at = min(ends)
    scores = tuple(final_scores(each, at) for each in curves)
    remarks = [
        f"{source.name} went on to {end:,.0f} steps; it is compared at {at:,.0f}."
        for source, end in zip(sources, ends, strict=True)
        if end > at * (1 + SAME_LENGTH)
    ]
    pairs = tuple(_pair(sources[i], sources[j], scores[i], scores[j]) for i, j in combinations(range(len(sources)), 2))
    return Comparison(metric, at, tuple(sources), curves, scores, pairs, tuple(remarks))


def config_differences(sources: Sequence[Source]) -> list[list[Any]]:
    """[setting, value of each source] wherever those whose configuration is known differ; seeds apart."""
    known = [source for source in sources if source.config is not None]
    if len(known) < 2:
        return []
    first = known[0].config or {}
    names: dict[str, None] = {}
    for other in known[1:]:
        names |= dict.fromkeys(name for name, _, _ in differences(first, other.config or {}) if name != "seed")
    return [[name, *(_value(source.config, name) for source in sources)] for name in sorted(names)]


def _value(config: Any, dotted: str) -> str:
    for part in dotted.split("."):
        config = config.get(part) if isinstance(config, dict) else None
    return "–" if config is None else str(config)


def _check(sources: Sequence[Source]) -> None:
    if len(sources) < 2:
        raise ConfigError("A comparison needs at least two runs or experiments.")
    paths = [source.path.resolve() for source in sources]
    twice = next((source.path for source in sources if paths.count(source.path.resolve()) > 1), None)
    if twice is not None:
        raise ConfigError(f"{twice} is named more than once, and nothing is better than itself. Name each side once.")
    worlds = {source.world: source.name for source in sources if source.world is not None}
    if len(worlds) > 1:
        (first, of_first), (second, of_second), *_ = worlds.items()
        raise ConfigError(
            f"{of_first} was trained on {first} and {of_second} on {second}. "
            "Returns of different worlds cannot be compared."
        )


def _with_distinct_names(sources: Sequence[Source]) -> list[Source]:
    """Names that tell the sides apart: with the folder above where two are called the same."""
    names = [source.name for source in sources]
    longer = [
        f"{source.path.resolve().parent.name}/{source.name}" if names.count(source.name) > 1 else source.name
        for source in sources
    ]
    distinct = [name if longer.count(name) == 1 else f"{name} ({k + 1})" for k, name in enumerate(longer)]
    return [replace(source, name=name) for source, name in zip(sources, distinct, strict=True)]


def _pair(a: Source, b: Source, x: np.ndarray, y: np.ndarray) -> Pair:
    shared = _shared_seeds(a, b)
    if shared is None:
        gap = difference(x, y)
    else:
        order = [a.seeds.index(seed) for seed in shared], [b.seeds.index(seed) for seed in shared]
        gap = difference(x[order[0]], y[order[1]], paired=True)
    counts = len(x), len(y)
    shown = seeds_needed(x, y) if min(counts) > 2 else {}
    return Pair(a, b, gap, probability_of_improvement(x, y), counts, shared is not None, shown)


def _shared_seeds(a: Source, b: Source) -> list[int | None] | None:
    """The seeds, if both have the same ones, each once."""
    distinct = None not in a.seeds and len({*a.seeds}) == len(a.seeds) == len(b.seeds)
    return list(a.seeds) if distinct and {*a.seeds} == {*b.seeds} else None
