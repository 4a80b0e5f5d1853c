"""A run is a folder: `{runs_dir}/{world}__{algo}__{seed}__{time}_vec{num_envs}/`.

| file | what it holds |
|---|---|
| config.json | the resolved configuration; `shoal train --config` with it repeats the run |
| command.txt, system.json | how it was started, and on what |
| metrics.jsonl, evaluations.jsonl, events.out.tfevents.*, monitor.csv | see `metrics` |
| checkpoints/step_N/, latest, best | see `checkpoint` |
| replays/step_N.json | see `shoal.report.replay` |
| sections/NAME.json | pages that other tools add to the report, see `shoal.report.sections` |
| report.html | everything above to look at |
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from shoal.errors import RunError
from shoal.training.checkpoint import Checkpoint, Checkpoints
from shoal.training.files import explained, read_json, replace_file
from shoal.training.metrics import EpisodeWindow, MetricsLog, Row
from shoal.training.system import describe_system


class Listener(Protocol):
    """Something that follows a run as it writes: the live display, a tracking service."""

    def row(self, step: int, row: Row) -> None: ...

    def close(self) -> None: ...


class Run:
    """A run folder open for writing. The loop calls `log`, `episodes` and `checkpoint`; `close` ends it."""

    def __init__(self, path: Path, resumed: Checkpoint | None = None) -> None:
        """Open the folder that `create_run` made, or continue it from `resumed`. Use those functions."""
        self.path = path
        self.config: dict[str, Any] = read_json(path / "config.json")
        self.checkpoints = Checkpoints(path / "checkpoints")
        self.listeners: list[Listener] = []
        self.last_row: Row = {}
        self.best_score = -np.inf
        self._lock = _lock(path)
        self._window = EpisodeWindow()
        self._iterations = 0
        self._elapsed_before = 0.0
        files = None
        if resumed is not None:
            book = resumed.meta["run"]
            files = book["files"]
            self._window.restore(book["window"])
            self._iterations, self._elapsed_before = book["iterations"], book["elapsed"]
            self.best_score = -np.inf if book["best_score"] is None else book["best_score"]
        self._log = MetricsLog(path, self.config["world"], files)
        self._began = self._last_logged = time.perf_counter()
        self._last_step = resumed.step if resumed else 0

    @property
    def elapsed(self) -> float:
        """Seconds of training so far, those before a resume included."""
        return self._elapsed_before + time.perf_counter() - self._began

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write one row of metrics after an iteration that ended at `step`, with episode means and rates added."""
        self._iterations += 1
        now = time.perf_counter()
        row = {
            **self._window.means(),
            **{key: float(value) for key, value in metrics.items()},
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

    def episodes(self, step: int, returns: Any, lengths: Any) -> None:
        """Note episodes that ended by `step`: [N] returns and lengths, in the order in which they ended."""
        if len(returns):
            returns, lengths = np.asarray(returns), np.asarray(lengths)
            self._window.add(returns, lengths)
            self._log.episodes(returns, lengths, self.elapsed)

    def checkpoint(
        self, step: int, tensors: Mapping[str, Any], meta: dict[str, Any], score: float | None = None
    ) -> Path:
        """Save everything needed to go on from `step`. A `score` above all earlier ones makes it `best`."""
        best = score is not None and score > self.best_score
        if best:
            self.best_score = float(score)  # type: ignore[arg-type]
        book = {
            "files": self._log.sync(),
            "window": self._window.state(),
            "iterations": self._iterations,
            "elapsed": self.elapsed,
            "best_score": self.best_score if np.isfinite(self.best_score) else None,
        }
        return self.checkpoints.save(step, tensors, {**meta, "run": book}, best=best)

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


def create_run(runs_dir: str | Path, config: Mapping[str, Any], algo: str, command: str) -> Run:
    """Make the folder of a new run. `config` is the resolved configuration, with `world` and `seed` in it."""
    runs_dir = Path(runs_dir)
    parts = (config["world"], algo, config["seed"], time.strftime("%Y%m%d-%H%M%S"))
    stem = "__".join(map(_plain, parts)) + f"_vec{config['num_envs']}"
    with explained(f"No run folder could be made in {runs_dir}", "Choose another --runs-dir."):
        runs_dir.mkdir(parents=True, exist_ok=True)
        path = _new_folder(runs_dir, stem)
        replace_file(path / "config.json", json.dumps(config, indent=2) + "\n")
        replace_file(path / "command.txt", command + "\n")
        replace_file(path / "system.json", json.dumps(describe_system(), indent=2) + "\n")
    return Run(path)


def resume_run(path: str | Path) -> tuple[Run, Checkpoint]:
    """Open a run where its newest checkpoint left it. Log files are cut back to that moment."""
    path = find_run(path)
    checkpoint = Checkpoints(path / "checkpoints").load()
    if "run" not in checkpoint.meta:
        raise RunError(f"{checkpoint.path} was not saved by a training run, so there is nothing to resume.")
    return Run(path, checkpoint), checkpoint


def find_run(path: str | Path) -> Path:
    """The run folder meant by `path`: itself, or one above a file or checkpoint inside it."""
    path = Path(path)
    if not path.exists():
        raise RunError(f"There is no run folder {str(path)!r}.")
    for folder in (path, *path.absolute().parents[:3]):
        if (folder / "config.json").is_file() and (folder / "metrics.jsonl").is_file():
            return folder
    raise RunError(f"{str(path)!r} is no run folder: it has no config.json and metrics.jsonl.")


def _new_folder(runs_dir: Path, stem: str) -> Path:
    for number in range(1, 1000):  # several runs may start within one second
        path = runs_dir / (stem if number == 1 else f"{stem}-{number}")
        with contextlib.suppress(FileExistsError):
            path.mkdir()
            return path
    raise RunError(f"{runs_dir} already has 999 runs named {stem}.")


def _plain(part: Any) -> str:
    """A part of a folder name, without what a file system or a shell minds."""
    return re.sub(r"[^\w.-]+", "-", str(part)).strip("-")


def _lock(path: Path) -> Any:
    """Hold the folder until closed or dead, so that two processes never write one run."""
    with explained(f"{path} could not be locked for writing", "Choose another --runs-dir."):
        file = open(path / ".lock", "w")  # noqa: SIM115 — held as long as the run
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise RunError(f"{path} is being written by another process. Wait for it to end, or stop it.") from None
    return file
