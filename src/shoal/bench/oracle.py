"""`shoal bench oracle dvrp`: every routing oracle against proven optima, in one table."""

from __future__ import annotations

import json
import statistics
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from shoal.bench.machine import commit, machine, versions
from shoal.errors import ConfigError, MissingExtra, unknown_name

if TYPE_CHECKING:
    from shoal.worlds.dvrp.instances import Instances
    from shoal.worlds.dvrp.oracles import RoutingOracle
    from shoal.worlds.dvrp.settings import Scenario

SIZES = (10, 20, 30)
CONTENDERS: dict[str, tuple[str, dict[str, Any]]] = {
    "insertion": ("insertion", {}),
    "ruin": ("ruin", {}),
    "ruin, 60 rounds": ("ruin", {"iterations": 60}),
    "neural, greedy": ("neural", {}),
    "neural, best of 16": ("neural", {"decoding": "best_of_k", "samples": 16}),
    "pyvrp": ("pyvrp", {}),
}
BASELINE = "ruin"


@dataclass(frozen=True)
class OracleArgs:
    """Compare routing oracles: how far from the optimum, how fast, and whether they get the effect of offers right."""

    world: Annotated[Literal["dvrp"], tyro.conf.Positional] = "dvrp"
    """The world whose oracles are measured."""
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


def run(argv: list[str]) -> int:
    """The command."""
    args = tyro.cli(OracleArgs, args=argv, prog="shoal bench oracle")
    if args.instances < args.rounds or args.rounds < 1:
        raise ConfigError(f"--instances {args.instances} cannot be dealt out to --rounds {args.rounds}.")
    from shoal.worlds.dvrp.config import Place, make_scenario
    from shoal.worlds.dvrp.fleet import Fleet

    scenario = make_scenario(Place(), Fleet())
    oracles, notes = make_contenders(scenario, args.only)
    rows = measure(oracles, scenario, args.instances, args.rounds)
    effects = offer_effects(oracles, scenario)
    print_table(rows, effects, notes)
    if args.out is not None:
        document: dict[str, Any] = {
            "rows": [asdict(row) for row in rows],
            "offer_effect_correlation": effects,
            "notes": notes,
        }
        document |= {"machine": machine(), "versions": versions(), "commit": commit()}
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(document, indent=1) + "\n")
    return 0


def make_contenders(scenario: Scenario, only: str) -> tuple[dict[str, RoutingOracle], list[str]]:
    """The oracles that can be made here, and in words which cannot."""
    from shoal.worlds.dvrp.oracles import make_oracle

    chosen = {name: made for name, made in CONTENDERS.items() if only in name}
    if not chosen:
        raise unknown_name("oracle", only, CONTENDERS, "`shoal bench oracle dvrp`")
    oracles, notes = {}, []
    for name, (kind, options) in chosen.items():
        try:
            oracles[name] = make_oracle(kind, scenario.city, scenario.fleet, **options)
        except MissingExtra as error:
            notes.append(f"{name}: {error}")
    return oracles, notes


def measure(oracles: dict[str, RoutingOracle], scenario: Scenario, instances: int, rounds: int) -> list[Row]:
    """From scratch at three sizes, then as an episode unfolds; every oracle in turn on each share of the sets."""
    from shoal.worlds.dvrp.gaps import prefix_gap, static_gap
    from shoal.worlds.dvrp.instances import load_dynamic, load_static

    rows = []
    works: list[tuple[str, Any, Any]] = [
        (f"{size} requests", static_gap, load_static(scenario, size)) for size in SIZES
    ]
    works.append(("every step of an episode of 30", prefix_gap, load_dynamic(scenario, SIZES[-1])))
    for work, gap, every in works:
        shares = [_share(every, instances, k, rounds) for k in range(rounds)]
        found: dict[str, list[Any]] = {name: [] for name in oracles}
        for share in shares:
            for name, oracle in oracles.items():
                if not (gap is prefix_gap and name == "pyvrp"):  # a minute per episode
                    found[name].append(gap(oracle, scenario, share))
        speed = {name: statistics.median(g.per_second for g in gaps) for name, gaps in found.items() if gaps}
        for name, gaps in found.items():
            if not gaps:
                continue
            wrong = [problem for g in gaps for problem in g.violations]
            if wrong:
                raise ConfigError(f"Oracle {name} made an impossible plan. {wrong[0]}")
            rates = [g.per_second for g in gaps]
            percent = statistics.fmean(g.percent for g in gaps)
            spread = (max(rates) - min(rates)) / speed[name]
            ratio = speed.get(BASELINE, speed[name]) / speed[name]
            rows.append(Row("oracle", f"dvrp, {work}", instances, name, speed[name], spread, ratio, percent))
    return rows


def _share(every: Instances, count: int, part: int, parts: int) -> Instances:
    """Part `part` of `parts` of the first `count` request sets."""
    return type(every)(*(array[:count][part::parts] for array in every))


def offer_effects(oracles: dict[str, RoutingOracle], scenario: Scenario) -> dict[str, float]:
    """Correlation of each oracle's offer effects with the exact ones. PyVRP would take minutes and is left out."""
    from shoal.worlds.dvrp.gaps import offer_effect_correlation
    from shoal.worlds.dvrp.instances import load_deltas

    deltas = load_deltas(scenario)
    quick = {name: oracle for name, oracle in oracles.items() if name != "pyvrp"}
    return {name: round(offer_effect_correlation(oracle, deltas), 3) for name, oracle in quick.items()}


def print_table(rows: list[Row], effects: dict[str, float], notes: list[str]) -> None:
    """Gap and speed of every oracle at every work, side by side."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    works = list(dict.fromkeys(row.work for row in rows))
    table = Table(
        title="gap to the optimum, and request sets (or steps) per CPU second", title_justify="left", box=None
    )
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
