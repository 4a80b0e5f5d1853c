"""A run is a folder: `{runs_dir}/{world}__{algo}__{seed}__{time}_vec{num_envs}/`.

| file | what it holds |
|---|---|
| config.json, config.hmac | the resolved configuration; `shoal train --config` with it repeats the run. Its signature |
| command.txt, system.json | how it was started, and on what |
| headlines.json | which of its metrics belong atop the report: opening a report imports nothing of the world |
| metrics.jsonl, evaluations.jsonl, events.out.tfevents.*, monitor.csv | see `metrics` |
| checkpoints/step_N/, latest, best | see `checkpoint` |
| replays/step_N.json | see `shoal.report.replay` |
| sections/NAME.json | pages that other tools add to the report, see `shoal.report.sections` |
| report.html | everything above to look at |
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from shoal.errors import ConfigError, RunError
from shoal.platform import cpu_name, lock, num_cores, total_memory
from shoal.reading import shortened
from shoal.training.checkpoint import KEEP, LINKS, META, UNREPORTED, Checkpoint, Checkpoints
from shoal.training.files import explained, read_json, read_record, read_table, replace_file
from shoal.training.lab import Headline
from shoal.training.metrics import EpisodeWindow, MetricsLog, Row
from shoal.training.trust import write_config

HEADLINES = "headlines.json"
EXPERIMENT = "experiment.json"
"""What makes a folder an experiment, whose runs are the folders in it: see `shoal.experiments.folder`."""


class Listener(Protocol):
    """Something that follows a run as it writes: the live display, a tracking service."""

    def row(self, step: int, row: Row) -> None: ...

    def saved(self, checkpoint: Path, best: bool) -> None: ...

    def say(self, sentence: str) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Book:
    """What a checkpoint keeps of the run folder itself."""

    files: dict[str, int]
    """Lengths of the log files."""
    window: dict[str, object]
    """The `EpisodeWindow`."""
    iterations: int
    elapsed: float
    """Seconds."""
    best_score: float | None
    """None before the first evaluation."""


class Run:
    """A run folder open for writing. The loop calls `log`, `episodes` and `checkpoint`, hooks call `say`."""

    def __init__(self, path: Path, config: Mapping[str, object], resumed: Checkpoint | None = None) -> None:
        """Open the folder that `create_run` made, or continue it from `resumed`. Use those functions.

        `config` is what its config.json holds.
        """
        self.path = path
        self.config: dict[str, Any] = dict(config)
        self.checkpoints = Checkpoints(path / "checkpoints", keep=self.config.get("keep", KEEP))
        self.listeners: list[Listener] = []
        self.last_row: Row = {}
        self.best_score = -np.inf
        self._lock = lock_folder(path)
        self._window = EpisodeWindow()
        self._iterations = 0
        self._elapsed_before = 0.0
        files = None
        if resumed is not None:
            book = read_record(resumed.path / META, Book, resumed.meta["run"])
            files = book.files
            self._window.restore(read_record(resumed.path / META, EpisodeWindow.Saved, book.window))
            self._iterations, self._elapsed_before = book.iterations, book.elapsed
            self.best_score = -np.inf if book.best_score is None else book.best_score
        self._log = MetricsLog(path, self.config["world"], files)
        self._began = self._last_logged = time.perf_counter()
        self._last_step = resumed.step if resumed else 0

    @property
    def elapsed(self) -> float:
        """Seconds of training so far, those before a resume included."""
        return self._elapsed_before + time.perf_counter() - self._began

    def log(self, step: int, metrics: Mapping[str, float | str]) -> None:
        """Write one row of metrics after an iteration that ended at `step`, with rates added."""
        self._iterations = int(metrics.get("time/iterations", self._iterations + 1))
        now = time.perf_counter()
        row: Row = {
            **{key: value if isinstance(value, str) else float(value) for key, value in metrics.items()},
            "time/fps": (step - self._last_step) / max(now - self._last_logged, 1e-9),
            "time/time_elapsed": self.elapsed,
            "time/iterations": self._iterations,
            "time/total_timesteps": step,
        }
        self._last_logged, self._last_step = now, step
        self._log.row(step, row)
        self.last_row = {"step": step, **row}
        for listener in self.listeners:
            listener.row(step, row)

    def evaluation(self, step: int, result: Mapping[str, Any]) -> None:
        """Keep the whole result of an evaluation at `step`, a JSON value."""
        self._log.evaluation(step, result)

    def episodes(self, step: int, returns: Any, lengths: Any) -> dict[str, float]:
        """Note episodes that ended by `step`, [N] returns and lengths in order of their ends; returns means to log."""
        if len(returns):
            returns, lengths = np.asarray(returns), np.asarray(lengths)
            self._window.add(returns, lengths)
            self._log.episodes(returns, lengths, self.elapsed)
        return self._window.means()

    def checkpoint(
        self, step: int, tensors: Mapping[str, Any], meta: dict[str, Any], score: float | None = None
    ) -> Path:
        """Save everything needed to go on from `step`. A `score` above all earlier ones makes it `best`."""
        best = score is not None and score > self.best_score
        if best:
            self.best_score = float(score)  # type: ignore[arg-type]
        best_score = self.best_score if np.isfinite(self.best_score) else None
        book = Book(self._log.sync(), asdict(self._window.state()), self._iterations, self.elapsed, best_score)
        saved = self.checkpoints.save(step, tensors, {**meta, "run": asdict(book)}, best=best)
        if UNREPORTED not in meta:  # otherwise the same is saved again, and told of, when it has been evaluated
            for listener in self.listeners:
                listener.saved(saved, best)
        return saved

    def say(self, sentence: str) -> None:
        """Tell those who watch the run. What worlds have to say goes this way: a panel would wipe what is printed."""
        for listener in self.listeners:
            listener.say(sentence)

    def close(self) -> None:
        """Close the files and let another process continue the run."""
        for listener in self.listeners:
            listener.close()
        self._log.close()
        self._lock.close()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def create_run(
    runs_dir: str | Path,
    config: Mapping[str, Any],
    command: str,
    headlines: Sequence[Headline] = (),
    name: str | None = None,
) -> Run:
    """Make the folder of a new run. `config` is what config.json shall hold; `headlines` stand atop the report.

    `name` is that of the folder; if there is none, one is made of world, agent, seed and time.
    """
    path = new_folder(runs_dir, config, config["seed"], name)
    with explained(f"{path} could not be written", "Choose another --runs-dir."):
        write_config(path, config)
        replace_file(path / "command.txt", command + "\n")
        replace_file(path / HEADLINES, json.dumps([asdict(headline) for headline in headlines]) + "\n")
        replace_file(path / "system.json", json.dumps(describe_system(), indent=2) + "\n")
    return Run(path, config)


def resume_run(path: str | Path, *, only_numbers: bool = False, trust: bool = False) -> tuple[Run, Checkpoint]:
    """Open a run where its newest checkpoint left it, environments and all. Log files are cut back to that moment.

    `only_numbers` and `trust`: see `Checkpoint.environments`.
    """
    path = find_run(path)
    checkpoint = Checkpoints(path / "checkpoints").load()
    environments = checkpoint.environments(only_numbers=only_numbers, trust=trust)
    checkpoint = replace(checkpoint, arrays=checkpoint.arrays | environments)
    if "run" not in checkpoint.meta:
        raise RunError(f"{checkpoint.path / META} was not saved by a training run, so there is nothing to resume.")
    return Run(path, read_table(path / "config.json"), checkpoint), checkpoint


def find_run(path: str | Path) -> Path:
    """The run folder meant by `path`: itself, or one above a file or checkpoint inside it."""
    path = Path(path)
    if not os.path.exists(path):  # which, unlike a Path, minds no impossible name
        if path.parent.name == "checkpoints" and (steps := Checkpoints(path.parent).steps()):
            have = ", ".join(f"step_{step}" for step in steps)
            raise RunError(f"{path.parent.parent} has no checkpoint {path.name!r}. It has {have}.")
        raise RunError(f"There is no run folder {shortened(str(path))}.")
    for folder in (path, *path.absolute().parents[:3]):
        if (folder / "config.json").is_file() and (folder / "metrics.jsonl").is_file():
            return folder
    if (path / EXPERIMENT).is_file():
        runs = sorted(path.glob("seed_*"))
        example = f", e.g. {runs[0]}" if runs else ""
        raise RunError(f"{str(path)!r} is an experiment, a folder of {len(runs)} runs. Name one of them{example}.")
    raise RunError(f"{str(path)!r} is not a run folder: it has no config.json and metrics.jsonl.")


def find_checkpoint(path: str | Path, which: str = "latest") -> tuple[Path, str]:
    """(run folder, name of a checkpoint) meant by `path`: a run, for which `which` counts, or RUN/checkpoints/step_N.

    `best` and `latest` may stand in place of step_N, with or without the folder between.
    """
    path = Path(path)
    run = find_run(path if os.path.exists(path) or path.name not in LINKS else path.parent)
    inside = path.name if path.name in LINKS or re.fullmatch(r"step_\d+", path.name) else None
    return run, which if inside is None else inside


def read_headlines(path: Path) -> list[Headline]:
    """Which metrics of a run belong on the screen."""
    if not (path / HEADLINES).exists():
        return []
    rows = read_json(path / HEADLINES)
    if not isinstance(rows, list):
        raise RunError(f"{path / HEADLINES} must hold a list, not {shortened(rows)}.")
    headlines = [read_record(path / HEADLINES, Headline, row) for row in rows]
    for headline in headlines:
        try:
            if re.search(r"\d{3}", headline.form):
                raise ValueError("it is too wide")
            format(0.5, headline.form)
        except ValueError as error:
            raise RunError(f"{path / HEADLINES}: form={shortened(headline.form)} cannot be used: {error}.") from None
    return headlines


def new_folder(runs_dir: str | Path, config: Mapping[str, Any], seed: Any, name: str | None = None) -> Path:
    """Make the folder of a new run or experiment; without a name, one is made of world, agent, seed and time."""
    runs_dir = Path(runs_dir)
    parts = (config["world"], config["algo"]["name"], seed, time.strftime("%Y%m%d-%H%M%S"))
    stem = "__".join(map(_plain, parts)) + f"_vec{config['num_envs']}"
    with explained(f"No run folder could be made in {runs_dir}", "Choose another --runs-dir."):
        runs_dir.mkdir(parents=True, exist_ok=True)
        return _unused_folder(runs_dir, stem) if name is None else _named_folder(runs_dir, name)


def _unused_folder(runs_dir: Path, stem: str) -> Path:
    for number in range(1, 1000):  # several runs may start within one second
        path = runs_dir / (stem if number == 1 else f"{stem}-{number}")
        with contextlib.suppress(FileExistsError):
            path.mkdir()
            return path
    raise RunError(f"{runs_dir} already has 999 runs named {stem}.")


def _named_folder(runs_dir: Path, name: str) -> Path:
    if name != _plain(name) or not name:
        raise ConfigError(f"run_name={name!r} is not a plain name. Use letters, digits, dots, _ and -.")
    path = runs_dir / name
    if path.exists():
        raise RunError(
            f"There is already a run {str(path)!r}. Choose another run_name, or resume it with --resume {path}."
        )
    path.mkdir()
    return path


def _plain(part: Any) -> str:
    """A part of a folder name, without what a file system or a shell minds."""
    return re.sub(r"[^\w.-]+", "-", str(part)).strip("-")


def lock_folder(path: Path) -> Any:
    """Hold the folder until closed or dead, so that two processes never write one run or experiment."""
    with explained(f"{path} could not be locked for writing", "Choose another --runs-dir."):
        file = open(path / ".lock", "a")  # noqa: SIM115 — held as long as the run
    if not lock(file, wait=False):
        file.close()
        raise RunError(f"{path} is being written by another process. Wait for it to end, or stop it.")
    return file


def command_line(world: str) -> str:
    """For command.txt: what was typed (`shoal ...` or `python -m shoal ...`), or the call in Python."""
    program = Path(sys.argv[0]) if sys.argv else Path()
    if program.name == "shoal" or program.parts[-2:] == ("shoal", "__main__.py"):
        return shlex.join(["shoal", *sys.argv[1:]])
    return f"shoal.train({world!r}, ...)"


PACKAGES = ("shoal", "numpy", "numba", "torch", "gymnasium")


def describe_system() -> dict[str, Any]:
    """Machine and versions as a JSON value. Nothing here names the user or their folders."""
    return {
        "platform": platform.platform(),
        "python": platform.python_version(),
        "cpu": cpu_name(),
        "cores": num_cores(),
        "memory_gib": None if (memory := total_memory()) is None else round(memory / 2**30, 1),
        "gpu": _gpu_name(),
        "versions": {package: _version(package) for package in PACKAGES},
        "commit": _commit(),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _gpu_name() -> str | None:
    torch = sys.modules.get("torch")  # a description is no reason to import it
    return torch.cuda.get_device_name() if torch is not None and torch.cuda.is_available() else None


def _commit() -> str | None:
    """The commit of the folder the run was started in, with + where files differ from it."""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--abbrev=12"], capture_output=True, text=True, timeout=5
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None
