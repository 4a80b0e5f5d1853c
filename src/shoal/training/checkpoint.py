"""Checkpoints on disk: `checkpoints/step_N/` holds `arrays.safetensors`, `environments.safetensors` and `meta.json`.

The environments have a file of their own, since the snapshots of foreign ones are pickles: it is opened only to resume
a run, and a pickle is loaded only if this user signed it (see `trust`). All the rest is numbers.

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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.lib.format import descr_to_dtype, dtype_to_descr

from shoal.errors import RunError, ShoalError
from shoal.platform import PORTABLE, sync_folder
from shoal.reading import shortened
from shoal.training.files import explained, read_record, read_table, write_durably
from shoal.training.trust import is_signed, sign

FORMAT = "shoal checkpoint 2"
FORMAT_OF_OLD = "shoal checkpoint 1"  # had the environments among the arrays, and no signature
ARRAYS, ENVIRONMENTS, META = "arrays.safetensors", "environments.safetensors", "meta.json"
OF_ENVIRONMENTS = "batch."
"""How the names of arrays begin that belong to the environments."""
UNREPORTED = "unreported"
"""Under this name a checkpoint keeps what an iteration learned if its evaluation was still to come."""
LINKS = ("latest", "best")
KEEP = 3
"""Checkpoints that a run keeps, besides the best one."""
_NATIVE_KINDS = "biuf"  # what safetensors stores as it is; any other plain type goes as bytes beside its dtype


@dataclass(frozen=True)
class Checkpoint:
    """What was saved at `step`: named arrays, without those of the environments, and a JSON value."""

    step: int
    arrays: dict[str, np.ndarray]
    meta: dict[str, Any]
    path: Path

    def environments(self, *, only_numbers: bool = False, trust: bool = False) -> dict[str, np.ndarray]:
        """The arrays of the environments, to resume.

        Args:
            only_numbers: whether the batch that they are for only copies them (`Batch.state_is_data`). If it may run
                code that they hold, they must be signed by this user.
            trust: take them whoever signed them.
        """
        header = _header(self.path)
        file = self.path / (ARRAYS if header.format == FORMAT_OF_OLD else ENVIRONMENTS)
        if file.name == ARRAYS:
            kept = Stored(header.sha256, header.dtypes)
        elif header.environments is None:
            return {}
        else:
            kept = read_record(self.path / META, Stored, header.environments)
        content = _content(file, kept.sha256)
        if not only_numbers and not trust and not is_signed(content, "environments", kept.signature):
            raise RunError(
                f"{self.path} holds pickled environments, which can run any code when they are loaded, and this user "
                "did not sign them. Pass --trust (trust=True) if you know where the run comes from; `shoal eval`, "
                "`shoal play` and --init do not need it."
            )
        arrays = _arrays(content, kept.dtypes, file)
        return {name: array for name, array in arrays.items() if name.startswith(OF_ENVIRONMENTS)}


@dataclass(frozen=True)
class Header:
    """What meta.json holds."""

    format: str
    step: int
    sha256: str
    """Of the file of arrays."""
    dtypes: dict[str, dict[str, Any]]
    """How to read the arrays that are stored as bytes."""
    meta: dict[str, Any]
    """What belongs to the arrays and is not one."""
    environments: dict[str, Any] | None = None
    """What is `Stored` of the environments, if they could be saved."""


@dataclass(frozen=True)
class Stored:
    """What must be known to read a file of arrays."""

    sha256: str
    dtypes: dict[str, dict[str, Any]]
    signature: str | None = None
    """Of this user, over the content."""


class Checkpoints:
    """The `checkpoints/` folder of a run; keeps the newest `keep` checkpoints (or all of them) and the best one."""

    def __init__(self, folder: Path, keep: int | Literal["all"] = KEEP) -> None:
        self.folder = folder
        self.keep = keep

    def steps(self) -> list[int]:
        """Steps at which a whole checkpoint exists, oldest first."""
        if not self.folder.is_dir():
            return []
        matches = (re.fullmatch(r"step_(\d+)", path.name) for path in self.folder.iterdir())
        return sorted(int(match[1]) for match in matches if match)

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
        name = f"step_{steps[-1]}" if which == "latest" else f"step_{which}" if isinstance(which, int) else which
        path = self.folder_of(name)
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
        if PORTABLE:  # Windows lets few users make links, so a file names the folder
            temporary.write_text(target.name)
        else:
            temporary.symlink_to(target.name)
        os.replace(temporary, self.folder / name)
        sync_folder(self.folder)

    def folder_of(self, name: str) -> Path:
        """The folder that is called `name`, or that the link or file of this name leads to."""
        path = self.folder / name
        named = path.read_text() if path.is_file() else ""
        return self.folder / named if re.fullmatch(r"step_\d+", named) else path

    def _remove_old(self) -> None:
        if self.keep == "all":
            return
        linked = {self.folder_of(name).resolve().name for name in LINKS}
        for step in self.steps()[: -self.keep]:
            if f"step_{step}" not in linked:
                shutil.rmtree(self.folder / f"step_{step}", ignore_errors=True)


def _write(folder: Path, step: int, arrays: Mapping[str, Any], meta: dict[str, Any]) -> None:
    of_environments = {name: value for name, value in arrays.items() if name.startswith(OF_ENVIRONMENTS)}
    header = {"format": FORMAT, "step": step, "environments": None, "meta": meta}
    if of_environments:
        content, about = _packed(of_environments)
        write_durably(folder / ENVIRONMENTS, content)
        header["environments"] = {**about, "signature": sign(content, "environments")}
    content, about = _packed({name: value for name, value in arrays.items() if name not in of_environments})
    write_durably(folder / ARRAYS, content)
    write_durably(folder / META, json.dumps({**header, **about}, indent=1).encode())


def _packed(arrays: Mapping[str, Any]) -> tuple[bytes, dict[str, Any]]:
    """The content of a file with these arrays, and what must be known to read it."""
    from safetensors.numpy import save

    stored, dtypes = {}, {}
    for name, value in arrays.items():
        array = as_array(name, value)
        if array.dtype.kind not in _NATIVE_KINDS:
            dtypes[name] = {"descr": dtype_to_descr(array.dtype), "shape": list(array.shape)}
            array = np.frombuffer(array.tobytes(), np.uint8)
        stored[name] = array
    content = save(stored)
    return content, {"sha256": hashlib.sha256(content).hexdigest(), "dtypes": dtypes}


def _read(path: Path) -> Checkpoint:
    header = _header(path)
    arrays = _arrays(_content(path / ARRAYS, header.sha256), header.dtypes, path / ARRAYS)
    arrays = {name: array for name, array in arrays.items() if not name.startswith(OF_ENVIRONMENTS)}
    return Checkpoint(header.step, arrays, header.meta, path)


def _header(path: Path) -> Header:
    if not (path / META).is_file() or not (path / ARRAYS).is_file():
        raise RunError(f"{path} is not a checkpoint of Shoal: it needs {ARRAYS} and {META}.")
    values = read_table(path / META)
    if values.get("format") not in (FORMAT, FORMAT_OF_OLD):
        kind = shortened(values.get("format"))
        raise RunError(f"{path / META} was not written by this version of Shoal: its format is {kind}, not {FORMAT!r}.")
    return read_record(path / META, Header, values)


def _content(file: Path, sha256: str) -> bytes:
    with explained(f"{file} cannot be read", "Check its permissions."):
        content = file.read_bytes()
    if hashlib.sha256(content).hexdigest() != sha256:
        raise RunError(
            f"The checkpoint {file.parent} is damaged: {file.name} ({len(content)} bytes) is not what {META} says was "
            "written."
        )
    return content


def _arrays(content: bytes, dtypes: dict[str, dict[str, Any]], file: Path) -> dict[str, np.ndarray]:
    """What `content` of `file` holds."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays = load(content)
    except (SafetensorError, LookupError, ValueError) as error:
        raise RunError(f"{file} cannot be read: {error}.") from error
    try:
        return arrays | {name: _as_typed(arrays[name], kind) for name, kind in dtypes.items()}
    except (LookupError, TypeError, ValueError, OverflowError, SyntaxError) as error:
        raise RunError(f"{file.with_name(META)}: dtypes do not describe {file.name}: {error}.") from error


def _as_typed(array: np.ndarray, kind: dict[str, Any]) -> np.ndarray:
    """Bytes [N] as what they were before: plain numbers of another type, or records of them."""
    dtype = descr_to_dtype(_as_tuples(kind["descr"]))
    return np.frombuffer(bytearray(array), dtype).reshape(kind["shape"])


@contextlib.contextmanager
def fitting(checkpoint: Checkpoint) -> Iterator[None]:
    """A `RunError` in place of whatever happens where arrays of a checkpoint are put to use and do not fit."""
    what = f"{checkpoint.path}: {ARRAYS} or {ENVIRONMENTS} does not fit {META}, or config.json of the run"
    try:
        yield
    except ShoalError as error:
        raise type(error)(f"{what}: {error}") from error
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}".partition("\n")[0].removesuffix(".")
        raise RunError(f"{what}: {reason}.") from error


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
