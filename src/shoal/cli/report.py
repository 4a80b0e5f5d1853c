"""`shoal report RUN`: write report.html again from what the run folder holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import Positional, arg

from shoal.cli.options import parse


@dataclass(frozen=True)
class ReportCommand:
    """Write a run's report.html: one file with curves, evaluations, replays, times and settings. Needs no network."""

    run: Annotated[Positional[str], arg(metavar="RUN")]
    """The run folder; it may still be training."""


def main(argv: list[str]) -> int:
    """`shoal report RUN`."""
    command = parse(ReportCommand, argv, "shoal report")

    from shoal.report.run_report import write_report
    from shoal.training.run import find_run

    print(write_report(find_run(command.run)))
    return 0
