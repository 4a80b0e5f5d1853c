"""The picture of a search: what was tried, what was expected, how the best got better, how far the truth is."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np

from shoal.errors import ConfigError
from shoal.report import sections as build
from shoal.report.page import render_page
from shoal.report.sections import Block, Section
from shoal.training.files import read_json, read_record, replace_file
from shoal.worlds.cage2.lab.search.config import SearchConfig
from shoal.worlds.cage2.lab.search.search import (
    Row,
    WorkflowSearch,
    best_of,
    outcome_of,
    read_list,
    read_picks,
    was_followed,
)
from shoal.worlds.cage2.lab.search.strategies import same_rule
from shoal.worlds.cage2.lanes.names import UNIT_TYPES

TRUTH_SETTINGS = (
    "red", "variant", "length", "compliance", "compliance_threshold", "alignment_weight",
    "preset", "num_envs", "max_episodes", "patience", "fixed_episodes",
)  # fmt: skip
"""What a truth must share with the picks that are held against it: the world, and how an order is trained."""


def write_search_report(search: WorkflowSearch, truth: str | Path | None = None) -> Path:
    """Write `report.html` into the search's folder; `truth` is the folder of an exhaustive search to compare with."""
    rows, config = search.rows, search.config
    if not rows:
        raise ConfigError(f"{search.folder} has no pick yet, so there is nothing to report.")
    regret = None if truth is None else regrets(config, rows, read_truth(Path(truth), config))
    page = render_page(
        "cage2",
        f"search over workflows, {config.strategy}",
        f"{search.folder.name} · {config.red} · {config.variant} · {config.compliance} compliance",
        [
            _overview(config, rows, regret),
            _progress(rows, regret),
            _tried(config, rows),
            _learning(search.folder, rows),
            _ranking(search.folder),
            Section("Settings", [build.fields("configuration", read_json(search.folder / "config.json"))]),
        ],
    )
    replace_file(search.folder / "report.html", page)
    return search.folder / "report.html"


def read_truth(folder: Path, config: SearchConfig) -> list[Row]:
    """The rows of an exhaustive search under the same rules."""
    if not (folder / "config.json").exists():
        raise ConfigError(f"{folder} is not the folder of a search, so it cannot serve as the truth.")
    saved = asdict(read_record(folder / "config.json", SearchConfig))
    if saved["strategy"] != "exhaustive":
        raise ConfigError(f"{folder} is a search by {saved['strategy']!r}; the truth must be an exhaustive one.")
    for name in TRUTH_SETTINGS:
        if saved[name] != getattr(config, name):
            raise ConfigError(
                f"{folder} was searched with {name}={saved[name]!r}, not {getattr(config, name)!r}. The truth is "
                "trained under the same rule as the picks, or regret would compare unlike things."
            )
    rows = read_picks(folder)
    if best_of(rows, config) is None:
        raise ConfigError(f"{folder} has no order that was followed, so there is nothing to be compared with.")
    return rows


def regrets(config: SearchConfig, rows: list[Row], truth: list[Row]) -> list[float | None]:
    """[picks]: how much worse than the best order the best one picked so far is, by the exhaustive search's values.

    Only orders that were followed count, in both; None until there is one.
    """
    followed = [row for row in truth if was_followed(row, config)]
    best = max(row["value"] for row in followed)
    known: list[float] = []
    regret: list[float | None] = []
    for row in rows:
        if was_followed(row, config):
            same = (other for other in followed if same_rule(config, tuple(row["order"]), tuple(other["order"])))
            known += [other["value"] for other in same]
        regret.append(float(best - max(known)) if known else None)
    return regret


def _overview(config: SearchConfig, rows: list[Row], regret: list[float | None] | None) -> Section:
    best = best_of(rows, config)
    items: list[tuple[str, object]] = [
        ("best return", "none was followed" if best is None else best["value"]),
        ("orders trained", len(rows)),
        ("of them followed", sum(was_followed(row, config) for row in rows)),
        ("episodes", sum(row["episodes"] for row in rows)),
        ("minutes", sum({row["round"]: row["seconds"] for row in rows}.values()) / 60),
    ]
    if regret is not None:
        items.append(("regret against all orders", regret[-1]))
    note = "No order was followed, so none is the best." if best is None else f"Best order: {best['name']}."
    return Section("Overview", [build.stats(items)], note)


def _progress(rows: list[Row], regret: list[float | None] | None) -> Section:
    x = [row["pick"] + 1 for row in rows]
    got = build.series("return", x, _column(rows, "value"), _column(rows, "low"), _column(rows, "high"), color=2)
    best = build.series("best so far", x, _column(rows, "best_so_far"), color=1)
    mean, std = _column(rows, "mean"), _column(rows, "std")
    expected = build.series("expected", x, mean, mean - std, mean + std, color=0)
    blocks: list[Block] = [build.lines("return of each pick", [got, best], x="pick")]
    if np.isfinite(mean).any():
        bound = build.series("upper confidence bound", x, _column(rows, "ucb"), color=3)
        blocks.append(build.lines("what was expected of it", [expected, bound], x="pick"))
    if regret is not None:
        missing = [np.nan if value is None else value for value in regret]
        blocks.append(build.lines("regret", [build.series("regret", x, missing, color=4)], x="pick", zero=True))
    return Section("Search", blocks, "Returns are of the environment alone. Bands: 95 % intervals, one deviation.")


def _tried(config: SearchConfig, rows: list[Row]) -> Section:
    best = np.full((5, 5), np.nan)  # by first and second type
    for row in rows:
        first, second = row["order"][:2]
        best[first, second] = np.fmax(best[first, second], row["value"])
    low, high = float(np.nanmin(best)), float(np.nanmax(best))
    picture = build.matrix(
        "best return by the first type (row) and the second", UNIT_TYPES, UNIT_TYPES, best, low, high
    )
    columns = ["pick", "order", "expected", "UCB", "visits", "nearest", "return", "compliance", "outcome", "episodes"]
    table = build.table("every pick", columns, [_table_row(row, config) for row in rows], size="wide")
    return Section("What was tried", [picture, table])


def _table_row(row: Row, config: SearchConfig) -> list[object]:
    expected = "" if row["mean"] is None else f"{row['mean']:.1f} ± {row['std']:.1f}"
    bound = "" if row["ucb"] is None else round(row["ucb"], 1)
    near = "" if row["nearest"] is None else f"{row['nearest']} ({row['nearest_distance']:.1f})"
    outcome = outcome_of(row, config) if row["reached"] else row["reason"]
    numbers = [round(row["value"], 2), round(row["compliance"], 3), outcome, row["episodes"]]
    return [row["pick"] + 1, row["name"], expected, bound, row["visits"], near, *numbers]


def _learning(folder: Path, rows: list[Row]) -> Section:
    titles = {"compliance": "compliance", "env_return": "return of the environment", "alignment": "alignment reward"}
    blocks = []
    rounds = sorted({row["round"] for row in rows})
    curves = {number: read_list(folder / "curves" / f"{number}.json", ("step", *titles)) for number in rounds}
    for key, title in titles.items():
        lines = [
            build.series(f"round {number + 1}", [row["step"] for row in curve], [row[key] for row in curve])
            for number, curve in curves.items()
            if curve
        ]
        blocks.append(build.lines(title, lines))
    return Section("Training of each round", blocks)


def _ranking(folder: Path) -> Section:
    if not (folder / "ranking.json").exists():
        return Section("Zero-shot ranking", [])
    ranking = read_list(folder / "ranking.json", ("value", "compliance"))
    rows = [
        [k + 1, row["name"], round(row["value"], 2), round(row["compliance"], 3), "yes" if row["trained"] else ""]
        for k, row in enumerate(ranking)
    ]
    note = "All orders scored with the last network, whether it was trained on them or not."
    table = build.table("orders, best first", ["", "order", "return", "compliance", "trained"], rows, size="wide")
    return Section("Zero-shot ranking", [table], note)


def _column(rows: list[Row], name: str) -> np.ndarray:
    return np.array([np.nan if row[name] is None else row[name] for row in rows], float)
