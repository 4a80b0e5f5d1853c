"""Oracles: one call for all lanes, pieces when memory is short, counts, and faults that name the lane."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import ConfigError, LaneFault
from shoal.vector.oracle import Oracle


class Answer(NamedTuple):
    total: np.ndarray
    parts: dict


def summarise(x, weight):
    return Answer(x.sum(1) * weight, {"largest": x.max(1), "doubled": 2 * x})


@given(lanes=st.integers(1, 20), chunk=st.one_of(st.none(), st.integers(1, 25)))
def test_pieces_give_the_same_answer_as_the_whole(lanes, chunk):
    x, weight = np.random.default_rng(lanes).normal(size=(lanes, 3)), np.arange(lanes)
    oracle = Oracle(summarise, chunk=chunk)
    answer, expected = oracle(x, weight), summarise(x, weight)
    assert isinstance(answer, Answer)
    np.testing.assert_array_equal(answer.total, expected.total)
    for name in expected.parts:
        np.testing.assert_array_equal(answer.parts[name], expected.parts[name])
    stats = oracle.stats
    assert (stats.calls, stats.lanes) == (1, lanes)
    assert stats.pieces == -(-lanes // (chunk or lanes))


def test_memory_that_runs_out_halves_the_batch_and_is_remembered():
    seen = []

    def hungry(x):
        seen.append(len(x))
        if len(x) > 5:
            raise MemoryError
        return x + 1

    oracle = Oracle(hungry)
    np.testing.assert_array_equal(oracle(np.arange(16)), np.arange(16) + 1)
    assert seen == [16, 8, 4, 4, 4, 4]
    oracle(np.arange(16))
    assert seen[6:] == [4, 4, 4, 4]
    with pytest.raises(LaneFault, match="no memory even for lane 0"):
        Oracle(lambda x: np.empty(2**58))(np.arange(4))


def test_nan_and_exceptions_name_the_lane():
    def rooted(x):
        if (x < -5).any():
            raise ValueError("too small")
        return np.sqrt(np.where(x < 0, np.nan, x))

    oracle = Oracle(rooted, chunk=3, describe=lambda lane: f"request {lane + 1}")
    values = np.ones(10)
    values[7] = -1
    with pytest.raises(LaneFault, match=r"'rooted' returned NaN for lane 7 \(request 8\)") as fault:
        oracle(values)
    assert fault.value.lane == 7
    values[4] = -9
    with pytest.raises(LaneFault, match=r"raised ValueError: too small in lane 4 \(request 5\)") as fault:
        oracle(values)
    assert fault.value.lane == 4
    assert isinstance(fault.value.__cause__, ValueError)


def test_a_fault_of_the_whole_is_not_pinned_on_a_lane():
    def needs_few(x):
        if len(x) > 1:
            raise RuntimeError("one at a time")
        return x

    with pytest.raises(LaneFault, match="on lanes 0 to 1 together"):
        Oracle(needs_few)(np.arange(8))


def test_an_answer_of_the_wrong_length_is_refused():
    with pytest.raises(ConfigError, match="asked about 4 lanes and answered with shape \\(3,\\)"):
        Oracle(lambda x: x[1:])(np.arange(4))
    with pytest.raises(ConfigError, match="chunk must be at least 1 lane, not 0"):
        Oracle(summarise, chunk=0)


def test_a_torch_module_takes_and_gives_arrays():
    torch = pytest.importorskip("torch")
    module = torch.nn.Linear(3, 2)
    x = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    answer = Oracle(module, chunk=4)(x)
    assert isinstance(answer, np.ndarray)
    np.testing.assert_allclose(answer, module(torch.as_tensor(x)).detach().numpy(), rtol=1e-5)
    assert torch.is_tensor(Oracle(module, chunk=4)(torch.as_tensor(x)))
