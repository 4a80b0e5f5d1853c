"""`shoal bench oracle dvrp`: every routing oracle against proven optima, or on Li-Lim files, in one table."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from shoal.bench.machine import commit, machine, versions
from shoal.errors import ConfigError, MissingExtra, unknown_name
from shoal.options import Flag, Values
from shoal.training.lab import Verb

if TYPE_CHECKING:
    from shoal.worlds.dvrp.lab.gaps import Gap
    from shoal.worlds.dvrp.lanes.city import City
    from shoal.worlds.dvrp.lanes.fleet import Fleet
    from shoal.worlds.dvrp.lanes.oracles import RoutingOracle
    from shoal.worlds.dvrp.lanes.scenario import Scenario

SIZES = (10, 20, 30)
Contenders = Mapping[str, tuple[str, Values]]
"""Kind and options of oracles, by what they are called here."""
CONTENDERS: Contenders = {
    "insertion": ("insertion", {}),
    "ruin": ("ruin", {}),
    "ruin, 60 rounds": ("ruin", {"iterations": 60}),
    "neural, greedy": ("neural", {}),
    "neural, best of 16": ("neural", {"decoding": "best_of_k", "samples": 16}),
    "pyvrp": ("pyvrp", {}),
}
BASELINE = "ruin"
SLOW = ("pyvrp",)  # a minute per episode: these are left out where an episode unfolds


@dataclass(frozen=True)
class OracleArgs:
    """Compare routing oracles: how far from the optimum, how fast, and whether they get the effect of offers right."""

    world: Annotated[Literal["dvrp"], Flag("WORLD", positional=True)] = "dvrp"
    """The world whose oracles are measured."""
    files: Annotated[tuple[Path, ...], Flag("FILE", positional=True)] = ()
    """Li-Lim files, published or your own, to be solved instead of request sets with proven optima."""
    instances: int = 24
    """Request sets of each size, and episodes."""
    rounds: int = 3
    """Interleaved rounds; every round takes its share of the request sets."""
    only: str = ""
    """Measure only oracles whose name contains this."""
    out: Path | None = None
    """Write the rows here as JSON."""


@dataclass(frozen=True)
class Row:
    """One oracle at one work. `steps_per_s` counts request sets, or environment steps of an episode, per CPU second."""

    suite: str
    work: str
    num_envs: int
    name: str
    steps_per_s: float
    spread: float
    ratio_to_shoal: float
    gap_percent: float


def run(args: OracleArgs) -> int:
    """The command."""
    if args.instances < args.rounds or args.rounds < 1:
        raise ConfigError(f"--instances {args.instances} cannot be dealt out to --rounds {args.rounds}.")
    from shoal.worlds.dvrp.lanes.scenario import make_scenario
    from shoal.worlds.dvrp.lanes.settings import Place

    if args.files:
        from shoal.bench.li_lim import run_files

        return run_files(args.files, args.only, args.out)
    scenario = make_scenario(Place())
    oracles, notes = make_contenders(CONTENDERS, scenario.city, scenario.fleet, args.only)
    rows = measure(oracles, scenario, args.instances, args.rounds)
    effects = offer_effects(oracles, scenario)
    print_table(rows, effects, notes)
    if args.out is not None:
        document: Values = {"rows": [asdict(row) for row in rows], "offer_effect_correlation": effects, "notes": notes}
        document |= {"machine": machine(), "versions": versions(), "commit": commit()}
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(document, indent=1) + "\n")
    return 0


def make_contenders(
    contenders: Contenders, city: City, fleet: Fleet, only: str
) -> tuple[dict[str, RoutingOracle], list[str]]:
    """The oracles that can be made here, and in words which cannot."""
    from shoal.worlds.dvrp.lanes.oracles import make_oracle

    chosen = {name: made for name, made in contenders.items() if only in name}
    if not chosen:
        raise unknown_name("oracle", only, contenders, "`shoal bench oracle dvrp`")
    oracles, notes = {}, []
    for name, (kind, options) in chosen.items():
        try:
            oracles[name] = make_oracle(kind, city, fleet, **options)
        except MissingExtra as error:
            notes.append(f"{name}: {error}")
    return oracles, notes


def measure(oracles: dict[str, RoutingOracle], scenario: Scenario, instances: int, rounds: int) -> list[Row]:
    """From scratch at three sizes, then as an episode unfolds; every oracle in turn on each share of the sets."""
    from shoal.worlds.dvrp.lab.gaps import prefix_gap, static_gap
    from shoal.worlds.dvrp.lanes.instances import Instances, load_dynamic, load_static

    rows = []
    works = {f"{size} requests": load_static(scenario, size) for size in SIZES}
    works["every step of an episode of 30"] = load_dynamic(scenario, SIZES[-1])
    for work, every in works.items():
        unfolds = every.optimum.ndim == 2
        gap_of = prefix_gap if unfolds else static_gap
        quick = {name: oracle for name, oracle in oracles.items() if not (unfolds and name in SLOW)}
        gaps: dict[str, list[Gap]] = {name: [] for name in quick}
        for k in range(rounds):
            share = Instances(*(array[:instances][k::rounds] for array in every))
            for name, oracle in quick.items():
                gaps[name].append(gap_of(oracle, scenario, share))
        speed = {name: statistics.median(gap.per_second for gap in parts) for name, parts in gaps.items()}
        for name, parts in gaps.items():
            wrong = [problem for gap in parts for problem in gap.violations]
            if wrong:
                raise ConfigError(f"Oracle {name} made an impossible plan. {wrong[0]}")
            rates = [gap.per_second for gap in parts]
            percent = statistics.fmean(gap.percent for gap in parts)
            spread = (max(rates) - min(rates)) / speed[name]
            ratio = speed.get(BASELINE, speed[name]) / speed[name]
            rows.append(Row("oracle", f"dvrp, {work}", instances, name, speed[name], spread, ratio, percent))
    return rows


def offer_effects(oracles: dict[str, RoutingOracle], scenario: Scenario) -> dict[str, float]:
    """Correlation of each oracle's offer effects with the exact ones; slow oracles are left out."""
    from shoal.worlds.dvrp.lab.gaps import offer_effect_correlation
    from shoal.worlds.dvrp.lanes.instances import load_deltas

    deltas = load_deltas(scenario)
    quick = {name: oracle for name, oracle in oracles.items() if name not in SLOW}
    return {name: round(offer_effect_correlation(oracle, deltas), 3) for name, oracle in quick.items()}


def print_table(rows: list[Row], effects: dict[str, float], notes: list[str]) -> None:
    """Gap and speed of every oracle at every work, side by side."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    works = list(dict.fromkeys(row.work for row in rows))
    title = "gap to the optimum, and request sets (or steps) per CPU second"
    table = Table(title=title, title_justify="left", box=None)
    for heading in ("", *(work.removeprefix("dvrp, ") for work in works), "offer effects"):
        table.add_column(heading, justify="right" if heading else "left")
    by_place = {(row.name, row.work): row for row in rows}
    for name in dict.fromkeys(row.name for row in rows):
        cells = [by_place.get((name, work)) for work in works]
        shown = [f"{c.gap_percent:.2f} %  {c.steps_per_s:,.0f}/s" if c else "" for c in cells]
        table.add_row(name, *shown, f"{effects[name]:.2f}" if name in effects else "")
    console.print(table)
    for note in notes:
        console.print(f"not measured: {note}", style="dim", markup=False, highlight=False)
    here = machine()
    console.print(f"{here['cores']} cores of {here['cpu']}, load {here['load']}", style="dim", highlight=False)


SUITE = Verb(OracleArgs, run)
