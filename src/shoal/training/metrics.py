"""What a run writes down while it trains: metrics.jsonl, evaluations.jsonl, TensorBoard events and monitor.csv.

All four only grow. A checkpoint remembers how long each file was, and a resumed run cuts them back to that length,
so nothing is counted twice. Keys under `time/` other than `DETERMINISTIC_TIME` are wall-clock measurements; every
other value repeats exactly when the run is repeated.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections import deque
from collections.abc import Mapping
from io import BufferedRandom, BufferedWriter
from pathlib import Path
from typing import Any

import numpy as np

from shoal.errors import RunError
from shoal.training.events import scalars_event, version_event
from shoal.training.files import explained

DETERMINISTIC_TIME = ("time/total_timesteps", "time/iterations")
PHASES = ("environment", "inference", "learning", "evaluation", "other")
"""Where the time of an iteration goes; the loop logs `time/{phase}` in seconds."""

Row = dict[str, Any]


class LogFile:
    """A file that only grows, and can be cut back to a length it once had."""

    def __init__(self, path: Path, opening: bytes, length: int | None = None) -> None:
        """Begin `path` with `opening`, or cut it back to `length` and go on from there."""
        self.path = path
        with self._explained():
            if length is None:
                self._file: BufferedWriter | BufferedRandom = open(path, "xb")  # noqa: SIM115 — open as long as the run
                self.append(opening)
            else:
                have = path.stat().st_size if path.exists() else 0
                if have < length:
                    raise RunError(f"{path} has {have} bytes, but the checkpoint was made when it had {length}.")
                self._file = open(path, "r+b")  # noqa: SIM115
                self._file.truncate(length)
                self._file.seek(length)

    def append(self, content: bytes) -> None:
        """Write to the end, for readers to see at once."""
        with self._explained():
            self._file.write(content)
            self._file.flush()

    def sync(self) -> int:
        """Wait until the disk has it all; returns the length."""
        with self._explained():
            os.fsync(self._file.fileno())
        return self._file.tell()

    def close(self) -> None:
        self._file.close()

    def _explained(self) -> Any:
        return explained(f"{self.path} could not be written", "Make room or choose another --runs-dir.")


class EpisodeWindow:
    """Means over the last 100 episodes, as `rollout/ep_rew_mean` and `rollout/ep_len_mean` are defined."""

    def __init__(self, size: int = 100) -> None:
        self.total = 0
        self._recent: deque[tuple[float, int]] = deque(maxlen=size)

    def add(self, returns: np.ndarray, lengths: np.ndarray) -> None:
        self.total += len(returns)
        self._recent.extend(zip(returns.tolist(), lengths.tolist(), strict=True))

    def means(self) -> Row:
        if not self._recent:
            return {}
        returns, lengths = zip(*self._recent, strict=True)
        return {
            "rollout/ep_rew_mean": math.fsum(returns) / len(returns),
            "rollout/ep_len_mean": math.fsum(lengths) / len(lengths),
            "rollout/episodes": self.total,
        }

    def state(self) -> Row:
        return {"total": self.total, "recent": list(self._recent)}

    def restore(self, state: Row) -> None:
        self.total = state["total"]
        self._recent.clear()
        self._recent.extend((episode_return, length) for episode_return, length in state["recent"])


class MetricsLog:
    """The log files of a run folder behind three calls: `row`, `evaluation` and `episodes`."""

    def __init__(self, folder: Path, env_id: str, lengths: Mapping[str, int] | None = None) -> None:
        """Begin the files, or continue those whose `lengths` a checkpoint remembers."""
        now = time.time()
        openings = {
            "metrics.jsonl": b"",
            "evaluations.jsonl": b"",
            "monitor.csv": f"#{json.dumps({'t_start': now, 'env_id': env_id})}\nr,l,t\n".encode(),
            f"events.out.tfevents.{int(now)}.shoal": version_event(now),
        }
        if lengths is None:
            self._files = {name: LogFile(folder / name, opening) for name, opening in openings.items()}
        else:
            self._files = {name: LogFile(folder / name, b"", length) for name, length in lengths.items()}
        self._rows, self._evaluations, self._monitor, self._events = self._files.values()

    def row(self, step: int, metrics: Mapping[str, float]) -> None:
        """One line of metrics at `step`; NaN and infinity become null, which JSON can say."""
        finite = {key: value if math.isfinite(value) else None for key, value in metrics.items()}
        self._rows.append(json.dumps({"step": step, **finite}).encode() + b"\n")
        self._events.append(scalars_event(step, time.time(), metrics))

    def evaluation(self, step: int, result: Mapping[str, Any]) -> None:
        """One line of evaluations.jsonl; what of it belongs among the metrics comes through `row`."""
        self._evaluations.append(json.dumps({"step": step, **result}).encode() + b"\n")

    def episodes(self, returns: np.ndarray, lengths: np.ndarray, seconds: float) -> None:
        """Episodes [N] known to have ended `seconds` after the run began: how Stable-Baselines3's monitor counts."""
        rows = zip(returns.tolist(), lengths.tolist(), strict=True)
        self._monitor.append("".join(f"{r:.6f},{n},{seconds:.6f}\n" for r, n in rows).encode())

    def sync(self) -> dict[str, int]:
        """Make all files durable; returns their lengths for a checkpoint to remember."""
        return {name: file.sync() for name, file in self._files.items()}

    def close(self) -> None:
        for file in self._files.values():
            file.close()


def read_rows(path: Path) -> list[Row]:
    """The rows of a metrics.jsonl. A last line that a crash cut short is left out."""
    rows = []
    with explained(f"{path} cannot be read", "Is this a run folder?"):
        lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        try:
            rows += [json.loads(line)] if line else []
        except ValueError as error:
            if number < len(lines):
                raise RunError(f"{path}, line {number} is not JSON: {error}.") from error
    return rows


def deterministic(row: Row) -> Row:
    """The part of a row that a repeated or resumed run writes again exactly."""
    return {k: v for k, v in row.items() if not k.startswith("time/") or k in DETERMINISTIC_TIME}
