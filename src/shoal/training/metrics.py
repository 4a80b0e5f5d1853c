"""What a run writes down while it trains: metrics.jsonl, evaluations.jsonl, TensorBoard events and monitor.csv.

All four only grow. A checkpoint remembers how long each file was, and a resumed run cuts them back to that length,
so nothing is counted twice. Keys under `time/` other than `DETERMINISTIC_TIME` are wall-clock measurements; every
other value repeats exactly when the run is repeated.
"""

from __future__ import annotations

import json
import math
import os
import re
import struct
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BufferedRandom, BufferedWriter
from pathlib import Path
from typing import Any

import numpy as np

from shoal.errors import ConfigError, RunError
from shoal.reading import is_number, parse_json, shortened
from shoal.training.files import explained, refused

DETERMINISTIC_TIME = ("time/total_timesteps", "time/iterations")
PHASES = ("environment", "inference", "learning", "evaluation", "compiling", "other")
"""Where the time of an iteration goes; the loop logs `time/{phase}` in seconds."""

CPU_CORES = "time/cpu_cores"
"""Processors in use during an iteration, worker processes included: CPU seconds per second."""

Row = dict[str, Any]


class LogFile:
    """A file that only grows, and can be cut back to a length it once had."""

    def __init__(self, path: Path, opening: bytes, length: int | None = None) -> None:
        """Begin `path` with `opening`, or cut it back to `length` and go on from there."""
        self.path = path
        try:
            if length is None:
                self._file: BufferedWriter | BufferedRandom = open(path, "xb")  # noqa: SIM115 — open as long as the run
                self.append(opening)
            else:
                have = path.stat().st_size if path.is_file() else 0
                if not 0 <= length <= have:
                    raise RunError(f"{path} has {have} bytes, but meta.json of the checkpoint says {length}.")
                self._file = open(path, "r+b")  # noqa: SIM115
                self._file.seek(length)
        except OSError as error:
            raise self._refused(error) from error

    def cut(self) -> None:
        """Leave out what lies behind the length at which it goes on."""
        try:
            self._file.truncate()
        except OSError as error:
            raise self._refused(error) from error

    def append(self, content: bytes) -> None:
        """Write to the end, for readers to see at once."""
        try:
            self._file.write(content)
            self._file.flush()
        except OSError as error:
            raise self._refused(error) from error

    def sync(self) -> int:
        """Wait until the disk has it all; returns the length."""
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._refused(error) from error
        return self._file.tell()

    def close(self) -> None:
        self._file.close()

    def _refused(self, error: OSError) -> RunError:
        return refused(error, f"{self.path} could not be written", "Make room or choose another --runs-dir.")


RETURN, EVALUATED = "rollout/ep_rew_mean", "eval/mean_reward"
"""What the mean return of recent episodes is logged as, and that of an evaluation."""


class EpisodeWindow:
    """Means over the last 100 episodes, as `rollout/ep_rew_mean` and `rollout/ep_len_mean` are defined."""

    def __init__(self, size: int = 100) -> None:
        self.total = 0
        self._recent: deque[tuple[float, int]] = deque(maxlen=size)

    def add(self, returns: np.ndarray, lengths: np.ndarray) -> None:
        self.total += len(returns)
        self._recent.extend(zip(returns.tolist(), lengths.tolist(), strict=True))

    def means(self) -> dict[str, float]:
        if not self._recent:
            return {}
        returns, lengths = zip(*self._recent, strict=True)
        return {
            RETURN: math.fsum(returns) / len(returns),
            "rollout/ep_len_mean": math.fsum(lengths) / len(lengths),
            "rollout/episodes": self.total,
        }

    @dataclass(frozen=True)
    class Saved:
        """What it remembers: how many episodes there were, and return and length of the recent ones."""

        total: int
        recent: list[tuple[float, ...]]

        def __post_init__(self) -> None:
            if not all(len(episode) == 2 and all(map(is_number, episode)) for episode in self.recent):
                raise ConfigError("window.recent must hold pairs of return and length.")

    def state(self) -> Saved:
        return self.Saved(self.total, list(self._recent))

    def restore(self, saved: Saved) -> None:
        self.total = saved.total
        self._recent.clear()
        self._recent.extend((episode_return, int(length)) for episode_return, length in saved.recent)


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
        self._is_cut = lengths is None
        if lengths is None:
            self._files = {name: LogFile(folder / name, opening) for name, opening in openings.items()}
        else:
            _check_names(lengths, openings)
            self._files = {name: LogFile(folder / name, b"", length) for name, length in lengths.items()}
        self._rows, self._evaluations, self._monitor, self._events = self._files.values()

    def _cut(self) -> None:
        """Files that are continued are cut back once there is something to write, not before all else has been read."""
        if not self._is_cut:
            self._is_cut = True
            for file in self._files.values():
                file.cut()

    def row(self, step: int, metrics: Mapping[str, float | str]) -> None:
        """One line of metrics at `step`; NaN and infinity become null, for JSON. Texts go nowhere else."""
        numbers = {key: value for key, value in metrics.items() if not isinstance(value, str)}
        finite = {key: value if math.isfinite(value) else None for key, value in numbers.items()}
        self._cut()
        self._rows.append(json.dumps({"step": step, **metrics, **finite}).encode() + b"\n")
        self._events.append(scalars_event(step, time.time(), numbers))

    def evaluation(self, step: int, result: Mapping[str, Any]) -> None:
        """One line of evaluations.jsonl; what of it belongs among the metrics comes through `row`."""
        self._cut()
        self._evaluations.append(json.dumps({"step": step, **result}).encode() + b"\n")

    def episodes(self, returns: np.ndarray, lengths: np.ndarray, seconds: float) -> None:
        """Episodes [N] known to have ended `seconds` after the run began: how Stable-Baselines3's monitor counts."""
        self._cut()
        rows = zip(returns.tolist(), lengths.tolist(), strict=True)
        self._monitor.append("".join(f"{r:.6f},{n},{seconds:.6f}\n" for r, n in rows).encode())

    def sync(self) -> dict[str, int]:
        """Make all files durable; returns their lengths for a checkpoint to remember."""
        self._cut()
        return {name: file.sync() for name, file in self._files.items()}

    def close(self) -> None:
        for file in self._files.values():
            file.close()


def _check_names(lengths: Mapping[str, int], openings: Mapping[str, bytes]) -> None:
    """`RunError` unless the files to be continued are those that a run has, in their order."""
    *names, last = lengths or {"nothing": 0}
    if names != [*openings][:-1] or not re.fullmatch(r"events\.out\.tfevents\.\d+\.shoal", last):
        raise RunError(
            f"meta.json of the checkpoint names log files that a run does not have: {shortened([*lengths])}."
        )


NUMBERS_OF_EVALUATION = ("mean", "low", "high", "episodes")


def read_rows(path: Path, needed: Sequence[str] = ()) -> list[Row]:
    """The rows of a metrics.jsonl: a step, and values by name. A last line that a crash cut short is left out.

    A `RunError` names the line whose step, or whose value under one of the `needed` names, is not a number.
    """
    rows: list[Row] = []
    with explained(f"{path} cannot be read", "Is this a run folder?"):
        lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        try:
            row = parse_json(line) if line else {}
        except ValueError as error:
            if number < len(lines):
                raise RunError(f"{path}, line {number} is not JSON: {error}.") from error
            continue
        if line:
            _check_row(row, needed, f"{path}, line {number}")
            rows.append(row)
    return rows


def read_evaluations(run: Path) -> list[Row]:
    """The rows of a run's evaluations.jsonl: a step, mean, interval, episodes and their returns."""
    path = run / "evaluations.jsonl"
    rows = read_rows(path, NUMBERS_OF_EVALUATION) if path.exists() else []
    for number, row in enumerate(rows, start=1):
        returns = row.get("returns") or []
        if not isinstance(returns, list) or not all(map(is_number, returns)):
            raise RunError(f"{path}, row {number}: returns must be a list of numbers.")
        if not isinstance(row.get("drawn", {}), dict) or not all(map(_is_drawn, row.get("drawn", {}).values())):
            raise RunError(f"{path}, row {number}: drawn must hold low, high and values, which are numbers, by name.")
    return rows


def _is_drawn(parameter: object) -> bool:
    values = parameter.get("values") if isinstance(parameter, dict) else None
    if not isinstance(parameter, dict) or not isinstance(values, list):
        return False
    return all(map(is_number, [parameter.get("low"), parameter.get("high"), *values]))


def _check_row(row: object, needed: Sequence[str], where: str) -> None:
    if not isinstance(row, dict):
        raise RunError(f"{where} must hold named values, not {shortened(row)}.")
    for name in ("step", *needed):
        if not is_number(row.get(name)):
            raise RunError(f"{where}: {name} must be a number, not {shortened(row.get(name))}.")


def numbers(row: Row) -> dict[str, float]:
    """The values of a row that are numbers; null stands for one that was not finite."""
    return {name: value for name, value in row.items() if is_number(value)}


def deterministic(row: Row) -> Row:
    """The part of a row that a repeated or resumed run writes again exactly."""
    return {k: v for k, v in row.items() if not k.startswith("time/") or k in DETERMINISTIC_TIME}


_POLYNOMIAL = 0x82F63B78  # CRC-32C (Castagnoli), reflected


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (_POLYNOMIAL if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _crc_table()


def masked_crc(data: bytes) -> int:
    """CRC-32C, rotated and offset as the record format wants it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def record(data: bytes) -> bytes:
    """One framed record: length, CRC of the length, data, CRC of the data."""
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc(length)) + data + struct.pack("<I", masked_crc(data))


def version_event(wall_time: float) -> bytes:
    """The record that opens every event file."""
    return record(struct.pack("<Bd", 0x09, wall_time) + _field(3, b"brain.Event:2"))


def scalars_event(step: int, wall_time: float, scalars: Mapping[str, float]) -> bytes:
    """One record with the scalars of one step."""
    values = b"".join(_field(1, _field(1, tag.encode()) + _float(value)) for tag, value in scalars.items())
    return record(struct.pack("<Bd", 0x09, wall_time) + b"\x10" + _varint(step) + _field(5, values))


def _float(value: float) -> bytes:
    """`simple_value` (field 2), single precision; what does not fit is infinity there."""
    with np.errstate(over="ignore"):
        return b"\x15" + np.float32(value).tobytes()


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _field(number: int, content: bytes) -> bytes:
    """A length-delimited field."""
    return bytes([number << 3 | 2]) + _varint(len(content)) + content
