"""The report of a run, from what its folder holds."""

from __future__ import annotations

import re
import time
from pathlib import Path

import numpy as np

from shoal.reading import is_number, parse_json
from shoal.report import sections as build
from shoal.report.page import render_page
from shoal.report.ranges import ranges_section
from shoal.report.replay import read_replay, replay_section
from shoal.report.sections import Section, load_sections
from shoal.report.standstill import standstill
from shoal.training.files import explained, read_table, replace_file
from shoal.training.lab import Headline
from shoal.training.metrics import CPU_CORES, PHASES, RETURN, Row, numbers, read_evaluations, read_rows
from shoal.training.run import read_headlines

HEADLINE = (RETURN, "rollout/ep_len_mean")
PHASE_COLORS = (0, 6, 1, 3, 2, 7)
MAX_REPLAYS = 5


def write_report(run: Path) -> Path:
    """Write `report.html` into the run folder and return its path."""
    config, system = read_table(run / "config.json"), read_table(run / "system.json")
    rows = [{**numbers(row), **_texts(row)} for row in read_rows(run / "metrics.jsonl")]
    names = {name for row in rows for name in row}
    evaluations = read_evaluations(run)
    algo = config.get("algo")
    page = render_page(
        str(config.get("world", "?")),
        str(algo.get("name", "?") if isinstance(algo, dict) else algo),
        f"{run.name} · {_began(run)}",
        [
            _overview(rows, evaluations, read_headlines(run), standstill(run, last_step(rows))),
            _curves(rows, names),
            _evaluation(evaluations, rows, names),
            ranges_section(evaluations),
            _replays(run),
            _time(rows, system.get("cores")),
            _learner(rows, names),
            *load_sections(run),
            _setup(run, config, system),
        ],
    )
    with explained(f"{run / 'report.html'} could not be written", "Make room, or check the permissions of the folder."):
        replace_file(run / "report.html", page)
    return run / "report.html"


def last_step(rows: list[Row]) -> int:
    """How far a run has come."""
    return int(rows[-1]["step"]) if rows else 0


def _overview(rows: list[Row], evaluations: list[Row], headlines: list[Headline], warning: str | None) -> Section:
    if not rows:
        nothing = "No metrics yet: the run has not finished an iteration."
        return Section("Overview", [build.text("", nothing, size="wide")])
    last = rows[-1]
    items: list[tuple[str, object]] = [("environment steps", last["step"])]
    items += [("phase", last["phase"])] if "phase" in last else []
    latest = {key: value for row in rows for key, value in numbers(row).items()}
    items += [(h.label, format(latest[h.key], h.form)) for h in headlines if h.key in latest]
    if evaluations:
        items.append(("evaluation return, latest", evaluations[-1]["mean"]))
    named = {RETURN: "training return, last 100", "rollout/episodes": "episodes"}
    items += [(label, last[key]) for key, label in named.items() if key in last]
    if "time/time_elapsed" in last:
        items.append(("training time", _duration(last["time/time_elapsed"])))
        items.append(("steps per second, mean", last["step"] / max(last["time/time_elapsed"], 1e-9)))
    return Section("Overview", [build.stats(items)], warning or "")


def _curves(rows: list[Row], names: set[str]) -> Section:
    """How the agent does: the two numbers that everybody asks for, large, and what else a world counts per episode."""
    others = names - {*HEADLINE, "rollout/episodes"}
    keys = [*HEADLINE, *sorted(name for name in others if name.startswith("rollout/"))]
    blocks = [_curve(rows, key, "half" if key in HEADLINE else "third") for key in keys]
    return Section("Learning curves", [b for b in blocks if b], "Each point is one iteration; raw values are faint.")


def _learner(rows: list[Row], names: set[str]) -> Section:
    """Everything else that was logged; what never changed is a note, not a curve."""
    elsewhere = ("rollout/", "time/", "eval/", "step", "phase")
    keys = sorted(name for name in names if not name.startswith(elsewhere))
    values = {key: {row[key] for row in rows if is_number(row.get(key))} for key in keys}
    constant = [key for key in keys if len(rows) > 1 and len(values[key]) == 1]
    note = ", ".join(f"{key} {next(iter(values[key])):.4g}" for key in constant)
    blocks = [block for key in keys if key not in constant and (block := _curve(rows, key, "third"))]
    return Section("Inside the learner", blocks, f"Constant: {note}." if note else "")


def _curve(rows: list[Row], key: str, size: str) -> build.Block | None:
    points = [(row["step"], row[key]) for row in rows if is_number(row.get(key))]
    if not points:
        return None
    x, y = zip(*points, strict=True)
    height = 230 if size == "half" else 150
    return build.lines(key, [build.series(key, x, y)], smooth=True, size=size, height=height)


def _evaluation(evaluations: list[Row], rows: list[Row], names: set[str]) -> Section:
    if not evaluations:
        return Section("Evaluation", [])
    x = [row["step"] for row in evaluations]
    mean, low, high = ([row[key] for row in evaluations] for key in ("mean", "low", "high"))
    last = evaluations[-1]
    note = f"Mean return of {last['episodes']} episodes on seeds of their own, with the 95 % bootstrap interval."
    returns = last.get("returns") or []
    curve = build.series("mean return", x, mean, low, high, color=2)
    own = sorted(name for name in names if name.startswith("eval/") and not name.startswith("eval/mean_"))
    more = [block for name in own if (block := _curve(rows, name, "third"))]  # what the world counts, e.g. games won
    if len(set(returns)) == 1:  # a histogram of one bar would say less than a sentence
        note += f" At step {last['step']:,} every episode returned {returns[0]:.6g}."
        return Section("Evaluation", [build.lines("mean return", [curve], size="wide"), *more], note)
    blocks = [build.lines("mean return", [curve])]
    if returns:
        blocks.append(build.histogram(f"returns at step {last['step']:,}", returns, x="return"))
    return Section("Evaluation", blocks + more, note)


def _replays(run: Path) -> Section:
    numbered = (re.fullmatch(r"step_(\d+)", path.stem) for path in (run / "replays").glob("step_*.json"))
    steps = sorted(int(match[1]) for match in numbered if match)
    paths = [run / "replays" / f"step_{step}.json" for step in steps]
    if len(paths) > MAX_REPLAYS:  # the first, the last, and some between
        paths = [paths[i] for i in np.linspace(0, len(paths) - 1, MAX_REPLAYS).round().astype(int)]
    replays = [read_replay(path) for path in paths]
    note = "What the policy does, recorded during evaluation. Click a lane to enlarge it; space plays, arrows step."
    return replay_section(replays, note)


def _time(rows: list[Row], cores: int | None) -> Section:
    timed = [row for row in rows if is_number(row.get("time/fps"))]
    if not timed:
        return Section("Where the time went", [])
    x = [row["step"] for row in timed]
    blocks = [build.lines("environment steps per second", [build.series("steps/s", x, [r["time/fps"] for r in timed])])]
    blocks[0] |= {"zero": True, "smooth": True}
    seconds = np.array([[numbers(row).get(f"time/{phase}", 0.0) for phase in PHASES] for row in timed])  # [N, phases]
    if seconds.any():
        items = [
            {"name": name, "value": float(value), "color": color}
            for name, value, color in zip(PHASES, seconds.sum(0), PHASE_COLORS, strict=True)
        ]
        part = seconds / np.maximum(seconds.sum(1, keepdims=True), 1e-12)
        over_time = dict(zip(PHASES, part.T, strict=True))
        blocks.append(build.shares("share of each iteration", x, over_time, PHASE_COLORS))
        blocks.insert(0, build.parts("whole run", items, "s", size="wide"))
    used = [(row[CPU_CORES], sum(times)) for row, times in zip(timed, seconds, strict=True) if CPU_CORES in row]
    if not used:
        return Section("Where the time went", blocks)
    blocks.append(_curve(timed, CPU_CORES, "half") or {})
    blocks[-1] |= {"title": "processors in use", "zero": True}
    mean = np.average([use for use, _ in used], weights=[max(seconds, 1e-9) for _, seconds in used])
    of = "" if cores is None else f" of {cores}"
    return Section("Where the time went", blocks, f"{mean:.2f}{of} processors were in use on average.")


def _texts(row: Row) -> dict[str, str]:
    """The values of a row that are texts."""
    return {name: value for name, value in row.items() if isinstance(value, str)}


def _setup(run: Path, config: dict[str, object], system: dict[str, object]) -> Section:
    path = run / "command.txt"
    command = path.read_text(errors="replace").strip() if path.is_file() else ""
    blocks = [build.text("command", command, size="wide")] if command else []
    blocks += [build.fields("configuration", config), build.fields("system", system)]
    return Section("Configuration and system", blocks, "`shoal train --config config.json` repeats this run.")


def _began(run: Path) -> str:
    """When the run began, from the monitor's first line."""
    try:
        with (run / "monitor.csv").open() as file:
            head = parse_json(file.readline().lstrip("#"))
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(head["t_start"]))
    except (OSError, ValueError, LookupError, TypeError, OverflowError):
        return ""  # a report without a date is better than none


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s" if minutes else f"{seconds:.1f} s"
