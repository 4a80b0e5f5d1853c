"""The page about games: its kernel keeps the contract and learns."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import shoal
from shoal.testing import BROKEN, check_batch
from shoal.vector.kernel import KernelBatch

PAGE = Path(__file__).parents[2] / "docs" / "games.md"


@pytest.fixture
def nim(tmp_path, monkeypatch):
    """The page's first example as a module `nim`."""
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[0]
    (tmp_path / "nim.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("nim", None)


def test_the_kernel_of_the_page_learns_to_play(nim, tmp_path):
    import nim as module

    assert isinstance(module, types.ModuleType)
    findings = check_batch(lambda n, **options: KernelBatch(module.Nim, n, **options), max_examples=3)
    assert [f for f in findings if f.severity == BROKEN] == []
    result = shoal.train(
        "nim:Nim", runs_dir=tmp_path, seats="versus", opponents=("itself", "pool=4"), pool_every=4096, quiet=True,
        num_envs=64, total_steps=40_000, eval_episodes=64, algo={"num_steps": 32, "lr": 3e-3, "gamma": 0.97},
    )  # fmt: skip
    assert result.metrics["eval/won_random"] > 0.75
    best = result.agent.act_batch(np.array([[5.0, 1.0], [6.0, 1.0], [7.0, 1.0]], np.float32), deterministic=True)
    assert best.action.shape == (3,)
