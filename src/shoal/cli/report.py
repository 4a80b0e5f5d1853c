"""`shoal report RUN`: write report.html again from what the run folder holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from shoal.cli.options import parse
from shoal.options import Flag


@dataclass(frozen=True)
class ReportCommand:
    """Write a run's report.html: one file with curves, evaluations, replays, times and settings. Needs no network."""

    run: Annotated[str, Flag("RUN", positional=True)]
    """The folder of a run or an experiment; it may still be training."""


def main(argv: list[str]) -> int:
    """`shoal report RUN`."""
    command = parse(ReportCommand, argv, "shoal report")

    from shoal.experiments.folder import is_experiment, open_experiment
    from shoal.experiments.report import write_experiment_report
    from shoal.report.run_report import write_report
    from shoal.training.run import find_run

    if is_experiment(command.run):
        print(write_experiment_report(open_experiment(command.run)))
    else:
        print(write_report(find_run(command.run)))
    return 0
