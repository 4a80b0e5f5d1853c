"""docs/kernels.md: every block of Python runs, and every kernel in it has nothing wrong with it."""

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from shoal.trees import copy_tree, leaves
from shoal.vector.kernel import Kernel, KernelBatch
from shoal.vector.kernel.dry_run import dry_run

TEXT = (Path(__file__).parents[3] / "docs" / "kernels.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, flags=re.S)
FILES = {match.group(1): block for block in BLOCKS if (match := re.match(r"# (\w+)\.py\n", block))}
EXAMPLES = [name for name in FILES if name != "corridor"]


@pytest.fixture(scope="module", autouse=True)
def _files(tmp_path_factory):
    """The blocks as files, which a kernel's source must be in."""
    folder = tmp_path_factory.mktemp("kernels")
    for name, block in FILES.items():
        (folder / f"{name}.py").write_text(block)
    sys.path.insert(0, str(folder))
    yield
    sys.path.remove(str(folder))
    for name in FILES:
        sys.modules.pop(name, None)


def kernel_of(name):
    members = vars(importlib.import_module(name)).values()
    (kind,) = [m for m in members if isinstance(m, type) and issubclass(m, Kernel) and m is not Kernel]
    return kind


def trajectory(kind, num_steps, **options):
    """What three lanes go through under actions that their masks allow."""
    batch = KernelBatch(kind, 3, **options)
    batch.single_action_space.seed(0)
    rng = np.random.default_rng(0)
    obs, info = batch.reset(seed=1)
    seen = [copy_tree(obs)]
    for _ in range(num_steps):
        action = np.stack([batch.single_action_space.sample() for _ in range(3)])
        if "action_mask" in info and action.ndim == 1:
            action = np.array([rng.choice(np.flatnonzero(row)) for row in info["action_mask"]])
        *outcome, info = batch.step(action)
        seen.append(copy_tree(tuple(outcome)))
    return seen


def test_there_are_eleven():
    assert len(EXAMPLES) == 11


def test_the_other_blocks_run():
    for block in BLOCKS:
        if not re.match(r"# \w+\.py\n", block):
            exec(compile(block, "kernels.md", "exec"), {"__name__": "kernels.md"})


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_has_nothing_wrong_with_it(name):
    kind = kernel_of(name)
    assert dry_run(kind(), np.zeros(4, kind.state)) == []
    trajectory(kind, 20, compiled=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_the_same_compiled_checked_and_uncompiled(name):
    kind = kernel_of(name)
    one = trajectory(kind, 400)
    for options in ({"compiled": False}, {"checked": True}):
        for a, b in zip(one, trajectory(kind, 400, **options), strict=True):
            assert all(map(np.array_equal, leaves(a), leaves(b)))
