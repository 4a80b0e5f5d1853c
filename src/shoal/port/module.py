"""Kernel source as a module: kept in the folder of compiled code with its tables, and read from there."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from shoal.jit.folder import cache_dir
from shoal.port.lanes import PortedKernel
from shoal.port.writer import Source

HEAD = '''"""{summary}"""

import math

import gymnasium as gym
import numpy as np

{helpers}from shoal.port.lanes import PortedKernel
from shoal.vector.kernel import {names}

'''
HELPERS = ("mt", "pcg", "pcg_more", "rounding", "turns")
NAMES = ("b1", "f32", "f64", "i8", "i16", "i32", "i64", "record", "scratch", "u8", "u16", "u32", "u64")
MOST_WRITTEN = 2000
"""Numbers of a table that are written into the source; larger ones go into a file beside it."""


def module_text(source: Source, tables_file: str | None) -> str:
    """The whole file; tables that are not written out are read from `tables_file` beside it."""
    lines = []
    written = {k: t for k, t in source.tables.items() if tables_file is None or t.size <= MOST_WRITTEN}
    if source.tables:
        if len(written) < len(source.tables):
            lines.append("from pathlib import Path\n")
            lines.append(f'TABLES = dict(np.load(Path(__file__).with_name("{tables_file}")))')
        else:
            lines.append("TABLES = {}")
        for key, table in written.items():
            numbers = np.array2string(
                table, separator=", ", threshold=sys.maxsize, floatmode="unique", max_line_width=110
            )
            numbers = numbers.replace("inf", "np.inf").replace("nan", "np.nan")
            lines.append(f"TABLES[{key!r}] = np.array(\n    {numbers}, np.{_name(table.dtype)}\n)")
    words = set(re.findall(r"\w+", source.text))
    helpers = ", ".join(name for name in HELPERS if name in words)
    head = HEAD.format(
        summary=f"{source.name}: made from a gymnasium.Env.",
        helpers=f"from shoal.port import {helpers}\n" if helpers else "",
        names=", ".join(name for name in NAMES if name in words),
    )
    return "\n".join([head.rstrip("\n"), *(["", *lines] if lines else []), "", "", source.text.strip("\n"), ""])


def _name(dtype: np.dtype) -> str:
    return "bool_" if dtype.kind == "b" else str(dtype)


def digest(text: str, tables: Mapping[str, np.ndarray]) -> str:
    """What makes a kernel this one."""
    sha = hashlib.sha256(text.encode())
    for key, table in sorted(tables.items()):
        sha.update(f"{key} {table.dtype} {table.shape}".encode())
        sha.update(np.ascontiguousarray(table).tobytes())
    return sha.hexdigest()[:20]


def port_folder() -> Path:
    """Where modules and proofs are kept."""
    folder = cache_dir() / "port"
    folder.mkdir(exist_ok=True)
    return folder


def write_module(source: Source, path: Path) -> None:
    """The module at `path`, with a file of large tables beside it where there are any."""
    tables_file = path.with_suffix(".npz").name
    large = {key: table for key, table in source.tables.items() if table.size > MOST_WRITTEN}
    if large:
        np.savez(path.with_suffix(".npz"), **large)  # type: ignore[arg-type]
    path.write_text(module_text(source, tables_file))


def load_kernel(path: Path, name: str) -> type[PortedKernel]:
    """The kernel class of a module that was written."""
    module_name = f"shoal_port_{path.stem}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    spec.loader.exec_module(module)
    return getattr(module, name)
