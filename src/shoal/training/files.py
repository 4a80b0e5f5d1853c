"""Writing files so that a crash, a full disk or a forbidden folder never costs what was there before."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from shoal.errors import RunError, naming
from shoal.options import build
from shoal.platform import sync_folder
from shoal.reading import parse_json, shortened

_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would be larger than allowed",
    errno.EACCES: "there is no permission to write there",
    errno.EPERM: "there is no permission to write there",
    errno.EROFS: "the file system is read-only",
    errno.ENOTDIR: "a file stands where a folder is needed",
}


@contextlib.contextmanager
def explained(what: str, remedy: str) -> Iterator[None]:
    """Turn the operating system's refusal into one sentence: what could not be done, why, and what to do."""
    try:
        yield
    except OSError as error:
        raise refused(error, what, remedy) from error


def refused(error: OSError, what: str, remedy: str) -> RunError:
    """The error to raise where the operating system refused something."""
    reason = _REASONS.get(error.errno or 0, error.strerror or str(error))
    return RunError(f"{what}: {reason}. {remedy}")


def write_durably(path: Path, content: bytes) -> None:
    """Write `path` and wait until the disk has it."""
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, content: str | bytes) -> None:
    """Write `path` under a temporary name and rename it: readers see the old or the new file, never half of one."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        write_durably(temporary, content.encode() if isinstance(content, str) else content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


R = TypeVar("R")


def read_table(path: Path) -> dict[str, Any]:
    """The named values in a JSON file."""
    values = read_json(path)
    if not isinstance(values, dict):
        raise RunError(f"{path} must hold named values, not {shortened(values)}.")
    return values


def read_record(path: Path, cls: type[R], values: object = None) -> R:
    """The dataclass `cls` that a JSON file holds, or `values` of it, every field of the right type."""
    values = read_table(path) if values is None else values
    if not isinstance(values, dict):
        raise RunError(f"{path} holds {shortened(values)} where named values are needed.")
    with naming(str(path)):
        return build(cls, values, f"in {path}", "The documentation")


def read_json(path: Path) -> Any:
    """The value in a JSON file, or a `RunError` that says what is wrong with it."""
    try:
        return parse_json(path.read_bytes())
    except FileNotFoundError:
        raise RunError(f"{path} is missing.") from None
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read as JSON: {error}.") from error
