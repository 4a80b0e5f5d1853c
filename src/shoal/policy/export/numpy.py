"""A policy as plain arrays (the format of every stored policy), with a reader beside it that needs NumPy alone."""

from __future__ import annotations

from pathlib import Path

from shoal.policy.export.opened import Exportable
from shoal.policy.load import SPACES

_READER = Path(__file__).with_name("reader.py")


def write(opened: Exportable, path: Path) -> list[Path]:
    """Write the arrays and, beside them, the reader under the same name."""
    if path.suffix != ".safetensors":
        path = path.with_suffix(".safetensors")
    notes = opened.notes
    opened.layers("numpy").save(path, {"command": notes["about"], SPACES: notes["spaces"]})
    reader = path.with_suffix(".py")
    reader.write_text(_READER.read_text())
    return [path, reader]
