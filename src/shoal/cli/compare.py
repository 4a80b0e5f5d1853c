"""`shoal compare A B`: which of several runs or experiments is better, by how much, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated

from shoal.cli.options import parse
from shoal.errors import ConfigError
from shoal.options import Flag

PROG = "shoal compare"


@dataclass(frozen=True)
class CompareCommand:
    """Compare runs and experiments at equal steps: difference, interval, verdict, and a page.

    Also takes what other libraries leave behind: monitor.csv of Stable-Baselines3, and TensorBoard files of CleanRL,
    RLlib and others; a folder of such folders counts as one method with several seeds.
    """

    paths: Annotated[tuple[str, ...], Flag("A B", positional=True)]
    """Two or more experiments, run folders, or folders of other libraries."""
    metric: Annotated[str | None, Flag("NAME")] = None
    """What to compare, by its name in metrics.jsonl; by default the evaluation if all have one, else the training
    return."""
    out: Annotated[str | None, Flag("FILE")] = None
    """Where the page is written, instead of compare__A__B.html."""
    until_sure: bool = False
    """Train more seeds of two experiments in turn until one is better, they are equal, or the budget runs out."""
    max_seeds: int = 32
    """At most this many seeds of each."""
    margin: float | None = None
    """Differences smaller than this count as equal."""
    processes: int | None = None
    """Runs to train at once; by default as many as there are processors."""


def main(argv: list[str]) -> int:
    """`shoal compare A B [C ...]`."""
    command = parse(CompareCommand, argv, PROG)

    from shoal.experiments.compare import compare
    from shoal.experiments.compare_page import write_comparison
    from shoal.experiments.sources import read_source
    from shoal.experiments.statistics import SequentialTest
    from shoal.experiments.train import Keeping
    from shoal.experiments.until_sure import LEAST, page_of, until_sure

    paths, ending = list(command.paths), ""
    if command.margin is not None and not command.margin > 0:
        raise ConfigError(f"margin must be above 0, not {command.margin}.")
    if command.until_sure:
        if command.max_seeds < LEAST:
            raise ConfigError(f"max-seeds must be at least {LEAST}, not {command.max_seeds}: fewer can never be sure.")
        test = SequentialTest(command.max_seeds, command.margin)
        keeping = Keeping(processes=command.processes)
        comparison, ending = until_sure(paths, command.metric, test, keeping, partial(print, flush=True))
    else:
        comparison = compare([read_source(path) for path in paths], command.metric)
    for sentence in (*comparison.verdicts, *comparison.remarks, ending):
        if sentence:
            print(sentence)
    print(f"Page: {write_comparison(comparison, page_of(paths, command.out))}")
    return 0
