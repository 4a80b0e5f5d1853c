"""`shoal bench [SUITE]`: Shoal and its peers, measured."""

from __future__ import annotations

import importlib

from shoal.bench.suites import SUITES
from shoal.errors import unknown_name


def usage() -> str:
    """The text of `shoal bench --help`."""
    width = max(map(len, SUITES))
    lines = [f"  shoal bench {name:<{width}}  {help_line}" for name, (_, help_line) in SUITES.items()]
    title = "Measure Shoal and the peers installed here, interleaved in one run."
    closing = "`shoal bench` alone gives a first impression in under a minute; `shoal bench SUITE --help` has more."
    return "\n".join([title, "", "Suites:", *lines, "", closing])


def main(argv: list[str]) -> int:
    """Run a suite; without one, the short version of `step`."""
    if argv and argv[0] in ("-h", "--help"):
        print(usage())
        return 0
    if not argv:
        from shoal.bench.step.suite import run_short

        run_short({})
        return 0
    if argv[0] not in SUITES:
        raise unknown_name("suite", argv[0], SUITES, "`shoal bench --help`")
    return importlib.import_module(SUITES[argv[0]][0]).run(argv[1:])
