"""How routing is compiled, and when compiled code on disk is out of date."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from numba import njit

jit = njit(nogil=True, error_model="numpy")
jit_cached = njit(cache=True, nogil=True, error_model="numpy")
"""For the functions that are called from outside: their machine code, callees included, is kept on disk."""


def forget_if_changed(entries: Iterable[Any], sources: Iterable[Path]) -> None:
    """Drop kept machine code that was compiled from other sources.

    Numba notices a change in the file of a function, but not in the files of its callees.
    """
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    for entry in entries:
        function = entry.py_func
        kept, name = Path(entry.stats.cache_path), f"{Path(function.__code__.co_filename).stem}.{function.__name__}"
        mark = kept / f"{name}.sources"
        if mark.exists() and mark.read_text() == digest:
            continue
        for index in kept.glob(f"{name}-*.nbi"):
            index.unlink(missing_ok=True)
        kept.mkdir(parents=True, exist_ok=True)
        mark.write_text(digest)
