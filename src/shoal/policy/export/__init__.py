"""Policies as files for other programs: one module a format. `shoal export` calls `export`."""

from __future__ import annotations

from pathlib import Path

from shoal.errors import ConfigError, unknown_name
from shoal.policy.export.opened import open_exportable

FORMATS = {
    "onnx": ("onnx", ".onnx", "for ONNX runtimes; checked against the agent before it is kept"),
    "torch": ("torch", ".pt2", "a torch.export program"),
    "c": ("c", ".h", "one C header without dependencies but math.h"),
    "numpy": ("numpy", ".safetensors", "plain arrays, and a short reader beside them that needs NumPy alone"),
}
"""By name: module, ending, and what it is."""


def export(
    run: str | Path, to: str, out: str | Path | None = None, checkpoint: str = "latest", trust: bool = False
) -> list[Path]:
    """Write the policy of a run as a file of the format `to`; returns what was written.

    `out` is the file; `policy` with the format's ending in the run folder if it is left out.
    `trust` lets somebody else's run name the code of its environment.
    """
    import importlib

    if to not in FORMATS:
        raise unknown_name("format", to, FORMATS, "`shoal export --help`")
    module, ending, _ = FORMATS[to]
    opened = open_exportable(run, checkpoint, trust)
    path = opened.run / f"policy{ending}" if out is None else Path(out)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return importlib.import_module(f"shoal.policy.export.{module}").write(opened, path)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror or error}.") from error
