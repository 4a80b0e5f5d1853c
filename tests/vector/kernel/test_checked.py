"""The checked build, and what compiled code does about a fault that no trial has met."""

import numpy as np
import pytest

from shoal.errors import KernelError
from shoal.vector.kernel import KernelBatch, batch
from tests.vector.kernel.mistakes import program
from tests.vector.kernel.test_mistakes import load

STEP = """
if action == 1:
    s.speed[s.t] = 1.0
if action == 2:
    s.x = s.speed[s.t + 1]
if action == 3:
    while s.t > 0:
        s.x += 1.0
if action == 0:
    s.n = rng.integers(5 - s.t)
"""


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    return load(tmp_path_factory.mktemp("toy"), program(step=STEP))


@pytest.fixture(autouse=True)
def _untried(monkeypatch):
    """A trial would find all of this."""
    monkeypatch.setattr(batch, "dry_run", lambda kernel, lanes: [])


def play(lanes, *actions):
    lanes.reset(seed=0)
    for action in actions:
        lanes.step(np.array(action))


def test_compiled_code_stops_before_it_writes_or_reads_outside_and_in_endless_loops(toy):
    lanes = KernelBatch(toy, 2)
    play(lanes, [0, 0], [1, 0])
    with pytest.raises(
        KernelError, match=r"Toy.step \(.*toy.py:38\): an index runs outside its array, in `s.speed\[s.t\]"
    ):
        play(lanes, [0, 0], [0, 0], [0, 1])
    with pytest.raises(
        KernelError, match=r"Toy.step \(.*toy.py:40\): an index runs outside .* `s.x = s.speed\[s.t \+ 1\]"
    ):
        play(lanes, [0, 0], [0, 0], [0, 2])
    with pytest.raises(KernelError, match=r"Toy.step \(.*toy.py:45\): rng.integers\(n\) needs an n of at least 1"):
        play(lanes, *[[0, 0]] * 5)
    with pytest.raises(KernelError, match=r"Toy.step \(.*toy.py:42\): a `while` loop has gone round 16,777,216 times"):
        play(lanes, [0, 3])


@pytest.mark.parametrize("compiled", [True, False])
def test_a_checked_batch_names_line_lane_step_and_numbers(toy, compiled):
    lanes = KernelBatch(toy, 3, checked=True, compiled=compiled)
    play(lanes, [0, 1, 2], [0, 1, 0])
    with pytest.raises(KernelError) as caught:
        play(lanes, [0, 0, 0], [0, 0, 0], [0, 0, 2])
    sentence = str(caught.value)
    for word in ("toy.py:40", "index 4 is out of bounds for axis 0 with size 3", "lane 2, step 3"):
        assert word in sentence
