"""Checkpoints on disk: `checkpoints/step_N/` holds `arrays.safetensors` and `meta.json`; no pickle.

A checkpoint is written under a temporary name, synced, then renamed, so a folder called `step_N` is always whole.
`latest` and `best` are links to such folders. Saving touches no earlier checkpoint until the new one is in place.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import descr_to_dtype, dtype_to_descr

from shoal.errors import RunError
from shoal.training.files import explained, read_json, sync_folder, write_durably

FORMAT = "shoal checkpoint 1"
ARRAYS, META = "arrays.safetensors", "meta.json"
_NATIVE_KINDS = "biuf"  # what safetensors stores as it is; any other plain type goes as bytes beside its dtype


@dataclass(frozen=True)
class Checkpoint:
    """What was saved at `step`: named arrays and a JSON value."""

    step: int
    arrays: dict[str, np.ndarray]
    meta: dict[str, Any]
    path: Path


class Checkpoints:
    """The `checkpoints/` folder of a run; keeps the newest `keep` checkpoints and the best one."""

    def __init__(self, folder: Path, keep: int = 3) -> None:
        self.folder = folder
        self.keep = keep

    def steps(self) -> list[int]:
        """Steps at which a whole checkpoint exists, oldest first."""
        if not self.folder.is_dir():
            return []
        found = (re.fullmatch(r"step_(\d+)", path.name) for path in self.folder.iterdir())
        return sorted(int(match[1]) for match in found if match)

    def save(self, step: int, arrays: Mapping[str, Any], meta: dict[str, Any], *, best: bool = False) -> Path:
        """Write `step_{step}` and point `latest` (and `best`) at it. Arrays may be NumPy's or torch's."""
        target = self.folder / f"step_{step}"
        temporary = self.folder / f".step_{step}.tmp"
        previous = self.steps()
        kept = f"the last good checkpoint is step_{previous[-1]}" if previous else "there is no earlier checkpoint"
        with explained(
            f"The checkpoint of step {step} could not be written to {self.folder}",
            f"Make room or choose another --runs-dir; {kept}.",
        ):
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                shutil.rmtree(temporary, ignore_errors=True)
                temporary.mkdir()
                _write(temporary, step, arrays, meta)
                if target.exists():  # saved again after a resume from before it
                    shutil.rmtree(target)
                os.replace(temporary, target)
                sync_folder(self.folder)
                self._link("latest", target)
                if best:
                    self._link("best", target)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
        self._remove_old()
        return target

    def load(self, which: int | str = "latest") -> Checkpoint:
        """Read `latest`, `best` or the checkpoint of a step, checking that it is whole and one of ours."""
        steps = self.steps()
        if not steps:
            raise RunError(f"{self.folder.parent} has no checkpoint to load: the run ended before its first one.")
        # The newest whole folder is the truth; the link is for people, and a crash can leave it one behind.
        path = self.folder / (f"step_{steps[-1]}" if which == "latest" else str(which))
        if isinstance(which, int):
            path = self.folder / f"step_{which}"
        if not path.is_dir():
            have = ", ".join(f"step_{step}" for step in steps)
            raise RunError(f"{self.folder.parent} has no checkpoint {path.name!r}. It has {have}.")
        path = path.resolve()
        try:
            return _read(path)
        except RunError as error:
            others = [step for step in steps if f"step_{step}" != path.name]
            remedy = f"Delete that folder to go on from step_{others[-1]}." if others else "It is the only checkpoint."
            raise RunError(f"{error} {remedy}") from error

    def _link(self, name: str, target: Path) -> None:
        temporary = self.folder / f".{name}.tmp"
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        temporary.symlink_to(target.name)
        os.replace(temporary, self.folder / name)
        sync_folder(self.folder)

    def _remove_old(self) -> None:
        linked = {(self.folder / name).resolve().name for name in ("latest", "best")}
        for step in self.steps()[: -self.keep]:
            if f"step_{step}" not in linked:
                shutil.rmtree(self.folder / f"step_{step}", ignore_errors=True)


def _write(folder: Path, step: int, arrays: Mapping[str, Any], meta: dict[str, Any]) -> None:
    from safetensors.numpy import save

    stored, dtypes = {}, {}
    for name, value in arrays.items():
        array = as_array(name, value)
        if array.dtype.kind not in _NATIVE_KINDS:
            dtypes[name] = {"descr": dtype_to_descr(array.dtype), "shape": list(array.shape)}
            array = np.frombuffer(array.tobytes(), np.uint8)
        stored[name] = array
    content = save(stored)
    write_durably(folder / ARRAYS, content)
    digest = hashlib.sha256(content).hexdigest()
    header = {"format": FORMAT, "step": step, "sha256": digest, "dtypes": dtypes, "meta": meta}
    write_durably(folder / META, json.dumps(header, indent=1).encode())


def _read(path: Path) -> Checkpoint:
    from safetensors.numpy import load

    if not (path / META).is_file() or not (path / ARRAYS).is_file():
        raise RunError(f"{path} is no checkpoint of Shoal: it needs {ARRAYS} and {META}.")
    header = read_json(path / META)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        found = header.get("format") if isinstance(header, dict) else type(header).__name__
        raise RunError(f"{path} is no checkpoint of this version of Shoal: its format is {found!r}, not {FORMAT!r}.")
    with explained(f"{path / ARRAYS} cannot be read", "Check its permissions."):
        content = (path / ARRAYS).read_bytes()
    if hashlib.sha256(content).hexdigest() != header["sha256"]:
        raise RunError(f"The checkpoint {path} is damaged: {ARRAYS} ({len(content)} bytes) is not what was written.")
    arrays = load(content)
    for name, kind in header["dtypes"].items():
        dtype = descr_to_dtype(_as_tuples(kind["descr"]))
        arrays[name] = np.frombuffer(bytearray(arrays[name]), dtype).reshape(kind["shape"])
    return Checkpoint(header["step"], arrays, header["meta"], path)


def as_array(name: str, value: Any) -> np.ndarray:
    """A NumPy array or torch tensor as a C-contiguous NumPy array of plain values."""
    array = value.detach().cpu().numpy() if hasattr(value, "detach") else np.asarray(value)
    if array.dtype.hasobject:
        raise RunError(f"The checkpoint entry {name!r} holds Python objects; only plain numbers can be saved exactly.")
    return np.ascontiguousarray(array).reshape(array.shape)  # ascontiguousarray makes scalars 1-d


def _as_tuples(value: Any) -> Any:
    """Shapes inside a dtype description are tuples, which JSON turned into lists."""
    if not isinstance(value, list):
        return value
    return [(name, _as_tuples(kind), *map(tuple, shape)) for name, kind, *shape in value]
