"""The picture of a search: what was tried, what was expected, how the best got better, how far the truth is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from shoal.errors import ConfigError
from shoal.report import sections as build
from shoal.report.page import render_page
from shoal.report.sections import Block, Section
from shoal.search.config import SearchConfig
from shoal.search.search import Row, WorkflowSearch, read_picks
from shoal.search.strategies import same_rule
from shoal.training.files import read_json, replace_file
from shoal.worlds.cage2.names import UNIT_TYPES


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
            _overview(rows, regret),
            _progress(rows, regret),
            _tried(rows),
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
        raise ConfigError(f"{folder} is no search folder, so it cannot serve as the truth.")
    saved = read_json(folder / "config.json")
    if saved["strategy"] != "exhaustive":
        raise ConfigError(f"{folder} is a search by {saved['strategy']!r}; the truth must be an exhaustive one.")
    for name in ("red", "variant", "compliance", "length"):
        if saved[name] != getattr(config, name):
            raise ConfigError(f"{folder} was searched with {name}={saved[name]!r}, not {getattr(config, name)!r}.")
    return read_picks(folder)


def regrets(config: SearchConfig, rows: list[Row], truth: list[Row]) -> list[float]:
    """[picks]: how much worse than the best order the best one picked so far is, by the exhaustive search's values."""
    best = max(row["value"] for row in truth)
    so_far, regret = -np.inf, []
    for row in rows:
        order = tuple(row["order"])
        known = [other["value"] for other in truth if same_rule(config, order, tuple(other["order"]))]
        so_far = max([so_far, *known])
        regret.append(float(best - so_far))
    return regret


def _overview(rows: list[Row], regret: list[float] | None) -> Section:
    best = max(rows, key=lambda row: row["value"])
    learned = [row for row in rows if row["reached"]]
    items: list[tuple[str, Any]] = [
        ("best return", best["value"]),
        ("orders trained", len(rows)),
        ("of them followed", len(learned)),
        ("episodes", sum(row["episodes"] for row in rows)),
        ("minutes", sum({row["round"]: row["seconds"] for row in rows}.values()) / 60),
    ]
    if regret is not None:
        items.append(("regret against all orders", regret[-1]))
    return Section("Overview", [build.stats(items)], f"Best order: {best['name']}.")


def _progress(rows: list[Row], regret: list[float] | None) -> Section:
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
        blocks.append(build.lines("regret", [build.series("regret", x, regret, color=4)], x="pick", zero=True))
    return Section("Search", blocks, "Returns are of the environment alone. Bands: 95 % intervals, one deviation.")


def _tried(rows: list[Row]) -> Section:
    best = np.full((5, 5), np.nan)  # by first and second type
    for row in rows:
        first, second = row["order"][:2]
        best[first, second] = np.fmax(best[first, second], row["value"])
    low, high = float(np.nanmin(best)), float(np.nanmax(best))
    picture = build.matrix(
        "best return by the first type (row) and the second", UNIT_TYPES, UNIT_TYPES, best, low, high
    )
    columns = ["pick", "order", "expected", "UCB", "visits", "nearest", "return", "compliance", "outcome", "episodes"]
    table = build.table("every pick", columns, [_table_row(row) for row in rows], size="wide")
    return Section("What was tried", [picture, table])


def _table_row(row: Row) -> list[Any]:
    expected = "" if row["mean"] is None else f"{row['mean']:.1f} ± {row['std']:.1f}"
    bound = "" if row["ucb"] is None else round(row["ucb"], 1)
    near = "" if row["nearest"] is None else f"{row['nearest']} ({row['nearest_distance']:.1f})"
    outcome = "followed" if row["reached"] else row["reason"]
    numbers = [round(row["value"], 2), round(row["compliance"], 3), outcome, row["episodes"]]
    return [row["pick"] + 1, row["name"], expected, bound, row["visits"], near, *numbers]


def _learning(folder: Path, rows: list[Row]) -> Section:
    titles = {"compliance": "compliance", "env_return": "return of the environment", "alignment": "alignment reward"}
    blocks = []
    rounds = sorted({row["round"] for row in rows})
    curves = {number: read_json(folder / "curves" / f"{number}.json") for number in rounds}
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
    ranking = read_json(folder / "ranking.json")
    rows = [
        [k + 1, row["name"], round(row["value"], 2), round(row["compliance"], 3), "yes" if row["trained"] else ""]
        for k, row in enumerate(ranking)
    ]
    note = "All orders scored with the last network, whether it was trained on them or not."
    table = build.table("orders, best first", ["", "order", "return", "compliance", "trained"], rows, size="wide")
    return Section("Zero-shot ranking", [table], note)


def _column(rows: list[Row], name: str) -> np.ndarray:
    return np.array([np.nan if row[name] is None else row[name] for row in rows], float)
