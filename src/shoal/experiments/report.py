"""The report of an experiment: what all seeds together say, every seed behind it, and three of them to look at."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from shoal.errors import RunError
from shoal.experiments.folder import Experiment, Outcome
from shoal.experiments.sources import SECONDS, Curve, RunData, Source, on_grid, read_source
from shoal.experiments.statistics import ENOUGH, curve_interval, interval
from shoal.report import sections as build
from shoal.report.page import render_page
from shoal.report.replay import Replay, replay_section
from shoal.report.sections import Block, Section
from shoal.report.standstill import standstill
from shoal.training.display import duration
from shoal.training.files import explained, read_json, replace_file
from shoal.training.interrupt import INTERRUPTED
from shoal.training.metrics import EVALUATED, RETURN, Row
from shoal.training.run import read_headlines

MILESTONES = (0.5, 0.75, 0.9)
"""Shares of the way from the first to the best interquartile mean."""


def write_experiment_report(experiment: Experiment) -> Path:
    """Write `report.html` into the folder of an experiment and return its path."""
    config, outcomes, failures = experiment.config, experiment.outcomes(), experiment.failures()
    parts = [_overview(experiment, outcomes, failures)]
    with suppress(RunError):  # before the first iteration of the first seed there is nothing to draw
        source = read_source(experiment.path)
        parts += [
            _curves(source, [headline.key for headline in read_headlines(source.runs[0].path)]),
            _spread(outcomes),
            _milestones(source),
            _replays(experiment, outcomes),
        ]
    parts += [_failures(failures), _setup(experiment)]
    caption = f"{experiment.path.resolve().name} · {len(experiment.seeds)} seeds"
    page = render_page(config["world"], config["algo"]["name"], caption, parts)
    target = experiment.path / "report.html"
    with explained(f"{target} could not be written", "Make room, or check the permissions of the folder."):
        replace_file(target, page)
    return target


def ranked(outcomes: dict[int, Outcome]) -> list[tuple[int, float]]:
    """(seed, score) of all that have a score, best first."""
    ended = {seed: outcome for seed, outcome in outcomes.items() if outcome.reason != INTERRUPTED}
    scores = {seed: outcome.score for seed, outcome in ended.items() if outcome.score is not None}
    return sorted(scores.items(), key=lambda pair: -pair[1])


def _overview(experiment: Experiment, outcomes: dict[int, Outcome], failures: dict[int, str]) -> Section:
    scores = ranked(outcomes)
    items: list[tuple[str, object]] = [("seeds ended", f"{len(scores)} of {len(experiment.seeds)}")]
    note = "No seed has ended yet."
    if scores:
        middle = interval([score for _, score in scores])
        items.append(("final return, interquartile mean", middle.value))
        items.append(("95 % interval over seeds", f"{middle.low:.4g} to {middle.high:.4g}"))
        items += [(f"best, seed {scores[0][0]}", scores[0][1]), (f"worst, seed {scores[-1][0]}", scores[-1][1])]
        note = (
            "A score is the mean return of a seed's last evaluation. The quarter of the seeds below and the quarter "
            "above are left out of the interquartile mean; its interval is bootstrapped over seeds."
        )
        if len(scores) < ENOUGH:
            note += f" With fewer than {ENOUGH} seeds an interval says little: train more."
    note += " ".join(["", *standstills(experiment)])
    if failures:
        items.append(("seeds failed", len(failures)))
    seconds = sum(outcome.seconds for outcome in outcomes.values())
    if seconds:
        items.append(("training time, all seeds", duration(seconds)))
    return Section("Overview", [build.stats(items)], note)


def standstills(experiment: Experiment) -> list[str]:
    """A sentence for those seeds, if any, whose episodes all came out the same; they are likely to have one cause."""
    steps = {seed: outcome.steps for seed, outcome in experiment.outcomes().items()}
    sentences = {seed: said for seed in steps if (said := standstill(experiment.run(seed), steps[seed]))}
    if not sentences:
        return []
    return [f"Seed {', '.join(map(str, sentences))}: {next(iter(sentences.values()))}"]


def interval_curve(name: str, curves: list[Curve], color: int = 0) -> list[Block]:
    """Every seed faint, and the interquartile mean of all with its interval before them."""
    x, values = on_grid(curves)
    faint = [build.series("", *curve, color=color, faint=True) for curve in curves]
    if not len(x):
        return faint
    return [*faint, build.series(name, x, *curve_interval(values), color=color)]


def _curves(source: Source, own: list[str]) -> Section:
    """Evaluation and training return, and what the world counts."""
    keys = [key for key in dict.fromkeys([EVALUATED, RETURN, *own]) if source.has(key)]
    several = [key for key in keys if min(len(x) for x, _ in source.curves(key)) > 1]
    blocks = [
        build.lines(key, interval_curve("interquartile mean", source.curves(key), color=2 * (key == EVALUATED)))
        for key in several
    ]
    for block in blocks[2:]:
        block["size"] = "third"
    if len(blocks) == 1:
        blocks[0]["size"] = "wide"
    note = f"Interquartile mean of {len(source.runs)} seeds with its 95 % interval; every seed is faint behind it."
    return Section("Learning curves", blocks, note)


def _spread(outcomes: dict[int, Outcome]) -> Section:
    scores = ranked(outcomes)
    if not scores:
        return Section("Final scores", [])
    items: list[Block] = [{"name": f"seed {seed}", "value": score} for seed, score in scores]
    blocks = [build.bars("by seed, best first", items)]
    values = [score for _, score in scores]
    if len(set(values)) > 1:
        blocks.append(build.histogram("spread", values, bins=max(6, min(24, len(values))), x="final return"))
    else:
        blocks[0]["size"] = "wide"
    return Section("Final scores", blocks)


def _milestones(source: Source) -> Section:
    """How many steps and seconds it takes to come how far."""
    metric = RETURN if source.has(RETURN) else EVALUATED
    if not source.has(metric):
        return Section("Steps and time to a return", [])
    x, values = on_grid(source.curves(metric))
    if len(x) < 2:
        return Section("Steps and time to a return", [])
    middle, _, _ = curve_interval(values)
    first, best = middle[0], middle.max()
    rows = [_milestone(source.runs, metric, first + share * (best - first)) for share in MILESTONES]
    columns = ["return", "seeds that reached it", "steps, median", "earliest", "latest", "seconds, median"]
    table = build.table(metric, columns, rows, size="wide")
    note = "Half, three quarters and nine tenths of the way from the first to the best interquartile mean."
    return Section("Steps and time to a return", [table], note)


def _milestone(runs: tuple[RunData, ...], metric: str, threshold: float) -> list[Any]:
    steps, seconds = [], []
    for run in runs:
        x, y = run.metrics[metric]
        above = np.flatnonzero(y >= threshold)
        if len(above):
            steps.append(x[above[0]])
            seconds += [np.interp(x[above[0]], *run.metrics[SECONDS])] if SECONDS in run.metrics else []
    reached = f"{len(steps)} of {len(runs)}"
    if not steps:
        return [float(f"{threshold:.4g}"), reached, None, None, None, None]
    times = float(np.median(seconds)) if seconds else None
    return [float(f"{threshold:.4g}"), reached, float(np.median(steps)), min(steps), max(steps), times]


def _replays(experiment: Experiment, outcomes: dict[int, Outcome]) -> Section:
    """The best, the median and the worst seed, each as its last evaluation left it."""
    scores = ranked(outcomes)
    places = (
        {"worst": len(scores) - 1, "median": len(scores) // 2, "best": 0} if scores else {}
    )  # the last is shown first
    replays: list[Replay] = []
    for word, place in places.items():
        seed, score = scores[place]
        path = _last_replay(experiment.run(seed))
        if path is not None:
            replay: Replay = read_json(path)
            replay["title"] = f"{word}: seed {seed}, return {score:.4g}"
            replays.append(replay)
    note = "What the best, the median and the worst seed do. Click a lane to enlarge it; space plays, arrows step."
    return replay_section(replays, note)


def _last_replay(run: Path) -> Path | None:
    paths = sorted((run / "replays").glob("step_*.json"), key=lambda path: int(path.stem.split("_")[1]))
    return paths[-1] if paths else None


def _failures(failures: dict[int, str]) -> Section:
    rows = [[f"seed {seed}", why] for seed, why in sorted(failures.items())]
    blocks = [build.table("", ["seed", "what happened"], rows, size="wide")] if rows else []
    return Section("Failures", blocks, "These seeds count in nothing above. Resuming the experiment tries them again.")


def _setup(experiment: Experiment) -> Section:
    command = experiment.path / "command.txt"
    blocks = [build.text("command", command.read_text().strip(), size="wide")] if command.exists() else []
    shared: Row = {name: value for name, value in experiment.config.items() if name != "seed"}
    blocks.append(build.fields("configuration of all seeds", shared))
    systems = [path for seed in experiment.seeds if (path := experiment.run(seed) / "system.json").exists()]
    blocks += [build.fields("system", read_json(systems[0]))] if systems else []
    note = f"`shoal train --resume {experiment.path.name} --seeds N` adds seeds."
    return Section("Configuration and system", blocks, note)
