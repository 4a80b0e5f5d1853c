"""`shoal bench [SUITE]`: Shoal and its peers, measured."""

from __future__ import annotations

from shoal.cli import run_command, table_of
from shoal.errors import MissingExtra, unknown_name
from shoal.registry import worlds
from shoal.world import Command, World


def suites() -> dict[str, Command]:
    """The general suites, then those of the worlds. They come with the source, not with an installed wheel."""
    try:
        from shoal.bench.suites import SUITES
    except ImportError:
        raise MissingExtra(
            "The benchmarks come with Shoal's source and not with the installed package: run them in a clone of it."
        ) from None
    doors = [world for world in worlds().values() if isinstance(world, World)]
    return {**SUITES, **{name: suite for world in doors for name, suite in world.benchmarks.items()}}


def usage() -> str:
    """The text of `shoal bench --help`."""
    title = "Measure Shoal and the peers installed here, interleaved in one run."
    closing = "`shoal bench` alone gives a first impression in under a minute; `shoal bench SUITE --help` has more."
    table = table_of({name: suite.summary for name, suite in suites().items()}, "shoal bench")
    return "\n".join([title, "", "Suites:", table, "", closing])


def main(argv: list[str]) -> int:
    """Run a suite; without one, the short version of `step`."""
    if argv and argv[0] in ("-h", "--help"):
        print(usage())
        return 0
    known = suites()
    if not argv:
        from shoal.bench.step.suite import run_short

        run_short({})
        return 0
    if argv[0] not in known:
        raise unknown_name("suite", argv[0], known, "`shoal bench --help`")
    return run_command(known[argv[0]].verb, argv[1:], f"shoal bench {argv[0]}")
