"""Kernels made from classes, proven without compiling: the same source gives the same bits either way."""

from __future__ import annotations

from collections.abc import Callable

import gymnasium as gym
import pytest

from shoal.port.module import load_kernel, write_module
from shoal.port.proof import Proof, prove
from shoal.port.watch import watch
from shoal.port.writer import Source, translate


@pytest.fixture
def proven(tmp_path) -> Callable[..., tuple[Source, Proof]]:
    def run(make: Callable[[], gym.Env], steps: int = 40, tolerance: float = 0.0) -> tuple[Source, Proof]:
        source = translate(watch(make()), "Ported")
        path = tmp_path / "ported.py"
        write_module(source, path)
        return source, prove(make, load_kernel(path, "Ported"), source, tolerance, steps, compiled=False)

    return run
