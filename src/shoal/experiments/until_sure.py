"""`shoal compare A B --until-sure`: train more seeds of two experiments until it is clear which is better."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

from shoal.errors import ConfigError
from shoal.experiments.compare import Comparison, compare
from shoal.experiments.folder import Experiment, is_experiment, open_experiment
from shoal.experiments.sources import read_source
from shoal.experiments.statistics import Look, SequentialTest
from shoal.experiments.train import Keeping, carry_on
from shoal.training.interrupt import INTERRUPTED

LEAST = 6
"""Seeds of the first look, and the fewest that can be a budget."""


def until_sure(
    paths: list[str], metric: str | None, test: SequentialTest, keeping: Keeping, say: Callable[[str], None]
) -> tuple[Comparison, str]:
    """Add seeds to both in turn; the last comparison, and how it ended in a sentence."""
    if len(paths) != 2 or not all(map(is_experiment, paths)):
        raise ConfigError(
            "until-sure trains more seeds of two experiments. Name two folders that `shoal train --seeds` has made."
        )
    compare([read_source(path) for path in paths], metric)  # what cannot be compared is told before training
    for number in test.looks:
        if min(len(open_experiment(path).seeds) for path in paths) > number:
            continue
        for path in paths:
            if not _grow(open_experiment(path), number, keeping):
                return compare([read_source(each) for each in paths], metric), "Stopped before it was sure."
        comparison = compare([read_source(path) for path in paths], metric)
        look = test.look(*comparison.scores)
        say(f"{number} seeds each: {comparison.verdicts[0]} (p = {look.p_value:.3g}, sure at {test.alpha:.2g})")
        if look.verdict is not None:
            return comparison, _ending(comparison, look, number, test)
    comparison = compare([read_source(path) for path in paths], metric)
    names = [source.name for source in comparison.sources]
    return comparison, f"The budget of {test.looks[-1]} seeds is spent, and {names[0]} and {names[1]} are still open."


def _grow(experiment: Experiment, number: int, keeping: Keeping) -> bool:
    """Train until there are this many seeds; False if somebody stopped it."""
    unused = (seed for seed in count() if seed not in experiment.seeds)
    more = [next(unused) for _ in range(number - len(experiment.seeds))]
    return carry_on(experiment.with_seeds(more), keeping).reason != INTERRUPTED


def _ending(comparison: Comparison, look: Look, number: int, test: SequentialTest) -> str:
    a, b = (source.name for source in comparison.sources)
    if look.verdict == "equal":
        return f"{a} and {b} are equal within {test.margin:g}, after {number} seeds each."
    first, second = (a, b) if look.verdict == "better" else (b, a)
    return f"{first} is better than {second}, after {number} seeds each (p = {look.p_value:.2g})."


def page_of(paths: list[str], out: str | None) -> Path:
    """Where the page of a comparison is written."""
    return (
        Path(out)
        if out is not None
        else Path(f"compare__{'__'.join(Path(path).resolve().name for path in paths)}.html")
    )
