"""The page of a comparison: verdict, curves, scores, who beats whom, and what differs in the settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from shoal.experiments.compare import Comparison, config_differences
from shoal.experiments.report import interval_curve
from shoal.experiments.sources import Curve, on_grid
from shoal.experiments.statistics import interval
from shoal.report import sections as build
from shoal.report.page import render_page
from shoal.report.sections import Block, Section
from shoal.training.files import explained, replace_file
from shoal.training.metrics import RETURN


def write_comparison(comparison: Comparison, target: Path) -> Path:
    """Write the page of a comparison; returns its path."""
    names = [source.name for source in comparison.sources]
    worlds = {source.world for source in comparison.sources if source.world}
    parts = [_verdict(comparison), _curves(comparison), _scores(comparison), _pairs(comparison), _settings(comparison)]
    page = render_page(" against ".join(names), ", ".join(sorted(worlds)), comparison.metric, parts)
    with explained(f"{target} could not be written", "Choose another --out."):
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_file(target, page)
    return target


def _verdict(comparison: Comparison) -> Section:
    text = "\n".join([*comparison.verdicts, *comparison.remarks])
    note = f"{comparison.metric} at {comparison.at:,.0f} steps; interquartile means, 95 % intervals over seeds."
    return Section("Verdict", [build.text("", text, size="wide")], note)


def _curves(comparison: Comparison) -> Section:
    """What is compared, where it is a curve; the return of training too, where all have one."""
    by_metric = {comparison.metric: comparison.curves}
    if all(source.has(RETURN) for source in comparison.sources):
        by_metric.setdefault(RETURN, tuple(source.curves(RETURN) for source in comparison.sources))
    blocks = [
        _means(metric, comparison, curves)
        for metric, curves in by_metric.items()
        if all(len(on_grid(each)[0]) > 1 for each in curves)
    ]
    note = "Interquartile mean of the seeds with its interval; every seed is faint behind it."
    return Section("Learning curves", blocks, note)


def _means(metric: str, comparison: Comparison, curves: Sequence[list[Curve]]) -> Block:
    lines: list[Block] = []
    for k, (source, each) in enumerate(zip(comparison.sources, curves, strict=True)):
        lines += interval_curve(source.name, each, color=k)
    lines.sort(key=lambda curve: not curve.get("faint", False))  # the means before all seeds
    return build.lines(metric, lines, size="wide", height=340)


def _scores(comparison: Comparison) -> Section:
    items: list[Block] = []
    rows = []
    for k, (source, scores) in enumerate(zip(comparison.sources, comparison.scores, strict=True)):
        value, low, high = interval(scores)
        items.append({"name": source.name, "value": value, "low": low, "high": high, "color": k})
        rows.append([source.name, len(scores), *map(float, np.quantile(scores, [0, 0.25, 0.5, 0.75, 1]))])
    columns = ["", "seeds", "worst", "quarter", "median", "three quarters", "best"]
    return Section("Scores", [build.bars("interquartile mean", items), build.table("spread", columns, rows)])


def _pairs(comparison: Comparison) -> Section:
    names = [source.name for source in comparison.sources]
    share = np.full((len(names), len(names)), np.nan)
    rows = []
    for pair in comparison.pairs:
        i, j = names.index(pair.a.name), names.index(pair.b.name)
        share[i, j], share[j, i] = pair.improvement.value, 1 - pair.improvement.value
        fewer = ", ".join(f"{n}: {rate:.0%}" for n, rate in pair.shown.items())
        drawn = "by seed" if pair.paired else "no"
        gap, improvement = (str(each).replace(" ", "\N{NO-BREAK SPACE}") for each in (pair.gap, pair.improvement))
        names_of = f"{pair.a.name}\N{NO-BREAK SPACE}–\N{NO-BREAK SPACE}{pair.b.name}"
        rows.append([names_of, gap, improvement, drawn, fewer])
    columns = ["", "difference", "probability of improvement", "paired", "fewer seeds would have shown it"]
    blocks = [
        build.table("differences", columns, rows, size="wide"),
        build.matrix("how often the row beats the column", names, names, share, 0, 1, percent=True),
    ]
    return Section("Each against each", blocks)


def _settings(comparison: Comparison) -> Section:
    rows = config_differences(comparison.sources)
    names = [source.name for source in comparison.sources]
    known = sum(source.config is not None for source in comparison.sources)
    if not rows:
        return Section("What differs", [build.text("", "Their settings are the same.")] if known > 1 else [])
    return Section("What differs", [build.table("settings", ["setting", *names], rows, size="wide")])
