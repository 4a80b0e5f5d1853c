"""What can be compared: runs and experiments of Shoal, and what other libraries leave behind.

| given | what it is |
|---|---|
| an experiment | the runs of the seeds that have ended |
| a run folder | one run |
| a folder with `monitor.csv` or `*.monitor.csv`, or such a file | one run of Stable-Baselines3 |
| a folder with `events.out.tfevents.*` | one run of CleanRL, RLlib, or whoever else writes TensorBoard files |
| a folder of such folders | a run for each of them |

A metric that Shoal names `rollout/ep_rew_mean` is called differently elsewhere; `NAMES` lists what it is looked for as.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from shoal.errors import ConfigError, RunError, nearest
from shoal.experiments.events import read_events
from shoal.experiments.folder import Experiment, is_experiment, open_experiment
from shoal.experiments.tuning.folder import TUNE
from shoal.options import Values
from shoal.reading import shortened
from shoal.training.files import explained, read_json, read_table
from shoal.training.interrupt import INTERRUPTED
from shoal.training.metrics import EVALUATED, RETURN, read_rows
from shoal.training.run import find_run

Curve = tuple[np.ndarray, np.ndarray]
"""Environment steps [T] and values [T]."""
SECONDS = "time/time_elapsed"
WINDOW = 100  # episodes of a running mean, as Stable-Baselines3 and our own monitor have it
NAMES = {
    RETURN: (
        "charts/episodic_return",
        "ray/tune/env_runners/episode_return_mean",
        "env_runners/episode_return_mean",
        "ray/tune/episode_reward_mean",
        "episode_reward_mean",
    ),
    EVALUATED: (
        "ray/tune/evaluation/env_runners/episode_return_mean",
        "evaluation/env_runners/episode_return_mean",
        "ray/tune/evaluation/episode_reward_mean",
    ),
}
"""Other names of a metric, by ours."""
PER_EPISODE = ("charts/episodic_return",)
"""What is written once per episode, and not as a mean over some."""
STEPS = ("ray/tune/num_env_steps_sampled_lifetime", "ray/tune/timesteps_total")
"""Where a file that counts iterations keeps the environment steps."""


@dataclass(frozen=True)
class RunData:
    """One run: its metrics, read when they are asked for."""

    path: Path
    seed: int | None
    """What it was seeded with, where that is known."""
    read: Callable[[Path], dict[str, Curve]] = field(repr=False)

    @cached_property
    def metrics(self) -> dict[str, Curve]:
        return self.read(self.path)


@dataclass(frozen=True)
class Source:
    """One side of a comparison: a method, with a run or several."""

    name: str
    path: Path
    runs: tuple[RunData, ...]
    world: str | None = None
    config: Values | None = None

    def curves(self, metric: str) -> list[Curve]:
        """The curve of every run; a `ConfigError` names those who do not have it."""
        for run in self.runs:
            if metric not in run.metrics:
                meant = nearest(metric, run.metrics)
                hint = f" Did you mean {meant!r}?" if meant else f" It has {', '.join(sorted(run.metrics)) or 'none'}."
                raise ConfigError(f"{run.path} has no metric {metric!r}.{hint}")
        return [run.metrics[metric] for run in self.runs]

    def has(self, metric: str) -> bool:
        """Whether every run has it."""
        return all(metric in run.metrics and len(run.metrics[metric][0]) for run in self.runs)

    @property
    def seeds(self) -> list[int | None]:
        return [run.seed for run in self.runs]


def read_source(path: str | Path) -> Source:
    """What lies at a path, as one side of a comparison."""
    path = Path(path)
    if not path.exists():
        raise RunError(f"There is no run or experiment {str(path)!r}.")
    name = path.resolve().name
    if is_experiment(path):
        experiment = open_experiment(path)
        runs = [RunData(experiment.run(seed), seed, _shoals) for seed in _that_count(experiment)]
        if not runs:
            raise RunError(f"{path} has no run with metrics yet.")
        return Source(name, path, tuple(runs), experiment.config["world"], experiment.config)
    if path.is_file() and path.name.endswith("monitor.csv"):
        return Source(path.resolve().parent.name, path, (RunData(path, _number_in(path.parent), _monitors),))
    if (path / "config.json").is_file() and (path / "metrics.jsonl").is_file():
        run = find_run(path)
        config = read_json(run / "config.json")
        return Source(name, path, (RunData(run, config["seed"], _shoals),), config["world"], config)
    if (path / TUNE).is_file():
        raise RunError(
            f"{path} is a search, whose trials have different settings. Train what it found, with "
            f"`shoal train --config {path / 'best.json'} --seeds 8`, and compare that."
        )
    folders = [folder for folder in (path, *sorted(path.rglob("*"))) if folder.is_dir()]
    others = [data for folder in folders if (data := _foreign(folder)) is not None]
    if not others:
        raise RunError(
            f"{str(path)!r} is neither a run nor an experiment, and no monitor.csv or TensorBoard file lies in it."
        )
    return Source(name, path, tuple(others))


def default_metric(sources: list[Source]) -> str:
    """The evaluation where all have one, otherwise the return of the latest episodes of training."""
    return EVALUATED if all(source.has(EVALUATED) for source in sources) else RETURN


def _that_count(experiment: Experiment) -> list[int]:
    """Seeds that have ended; as long as none has, those under way. One that failed counts in nothing."""
    failed = experiment.failures()
    logs = {seed: experiment.run(seed) / "metrics.jsonl" for seed in experiment.seeds if seed not in failed}
    under_way = [seed for seed, log in logs.items() if log.exists() and log.stat().st_size]
    outcomes = experiment.outcomes()
    ended = [seed for seed in under_way if seed in outcomes and outcomes[seed].reason != INTERRUPTED]
    return ended or under_way


def _foreign(folder: Path) -> RunData | None:
    """The run of another library in this very folder."""
    if any(folder.glob("*monitor.csv")):
        return RunData(folder, _number_in(folder), _monitors)
    if any(folder.glob("events.out.tfevents.*")):
        return RunData(folder, _number_in(folder), _events)
    return None


def _number_in(folder: Path) -> int | None:
    """The seed of a run: in the parameters that RLlib leaves, or in the folder's name, as "seed" and a number, as
    CleanRL writes it (env__exp__SEED__time), or as a number at the end that is not part of a time."""
    parameters = folder / "params.json"
    if parameters.is_file():
        seed = read_table(parameters).get("seed")
        return seed if isinstance(seed, int) else None
    name = folder.resolve().name
    parts = name.split("__")
    if len(parts) >= 4 and parts[-2].isdigit():
        return int(parts[-2])
    match = re.search(r"seed[_=-]?(\d+)", name) or re.search(r"(?<!\d[_-]\d\d)[_-](\d{1,4})$", name)
    return int(match[1]) if match else None


def _shoals(run: Path) -> dict[str, Curve]:
    rows = read_rows(run / "metrics.jsonl")
    names = {name for row in rows for name, value in row.items() if isinstance(value, int | float)}
    points = {name: [(row["step"], row[name]) for row in rows if row.get(name) is not None] for name in names}
    curves = {name: np.array(pairs, float) for name, pairs in points.items() if pairs}
    return {name: (pairs[:, 0], pairs[:, 1]) for name, pairs in curves.items()}


def _monitors(path: Path) -> dict[str, Curve]:
    """Episodes of one file, or of all lanes in a folder in the order in which they ended."""
    files = [path] if path.is_file() else sorted(path.glob("*monitor.csv"))
    episodes = [episode for file in files for episode in _episodes(file)]
    if not episodes:
        raise RunError(f"{path} has no episode yet.")
    seconds, returns, lengths = np.array(sorted(episodes, key=lambda episode: episode[0])).T
    steps = lengths.cumsum()
    means = {RETURN: running_mean(returns), "rollout/ep_len_mean": running_mean(lengths), SECONDS: seconds}
    return {name: (steps, values) for name, values in means.items()}


def _episodes(file: Path) -> Iterator[tuple[float, float, float]]:
    """(seconds, return, length) of every episode in a monitor file: a line of JSON, names of columns, rows."""
    with explained(f"{file} cannot be read", "Check its permissions."):
        lines = file.read_bytes().decode(errors="replace").splitlines()
    wrong = f"{file} is not a monitor file of Stable-Baselines3"
    if len(lines) < 2 or not lines[0].startswith("#"):
        begins = f"begins with {shortened(lines[0])}" if lines else "is empty"
        raise RunError(f"{wrong}: it {begins}, where a line of # and a line of columns belong. Leave it out.")
    reader = csv.DictReader(lines[1:])
    columns = reader.fieldnames or []
    if missing := [name for name in ("r", "l", "t") if name not in columns]:
        raise RunError(f"{wrong}: it has no column {', '.join(missing)}, but {', '.join(columns)}. Leave it out.")
    for row in reader:
        try:
            yield float(row["t"]), float(row["r"]), float(row["l"])
        except (TypeError, ValueError):
            line = shortened(lines[reader.line_num])
            raise RunError(f"{file}, line {reader.line_num + 1}: {line} is not an episode. Remove the line.") from None


def _events(folder: Path) -> dict[str, Curve]:
    scalars = read_events(folder)
    if not scalars:
        raise RunError(f"{folder} has no scalar in its TensorBoard files yet.")
    counted = next((scalars[tag] for tag in STEPS if tag in scalars), None)
    if counted is not None:
        scalars = {tag: (np.interp(x, *counted), y) for tag, (x, y) in scalars.items()}
    for ours, theirs in NAMES.items():
        tag = next((tag for tag in theirs if tag in scalars), None)
        if ours not in scalars and tag is not None:
            steps, values = scalars[tag]
            scalars[ours] = steps, running_mean(values) if tag in PER_EPISODE else values
    return scalars


def running_mean(values: np.ndarray, window: int = WINDOW) -> np.ndarray:
    """Means [N] over the last `window` of values [N], of fewer at the beginning."""
    sums = np.concatenate([[0.0], values.cumsum()])
    ends = np.arange(1, len(values) + 1)
    begins = np.maximum(0, ends - window)
    return (sums[ends] - sums[begins]) / (ends - begins)


def on_grid(curves: list[Curve], points: int = 120) -> tuple[np.ndarray, np.ndarray]:
    """Steps [T] that all curves have in common, and the curves [N, T] there."""
    first, last = max(x[0] for x, _ in curves), min(x[-1] for x, _ in curves)
    inside = sorted({step for x, _ in curves for step in x if first <= step <= last})
    grid = np.array(inside) if len(inside) <= points else np.linspace(first, last, points)
    if not len(grid):
        return np.empty(0), np.empty((len(curves), 0))
    return grid, np.stack([np.interp(grid, x, y) for x, y in curves])


def final_scores(curves: list[Curve], at: float) -> np.ndarray:
    """The value [N] of every curve at step `at`, or at its end if that is earlier."""
    return np.array([np.interp(at, x, y) for x, y in curves])
