"""Lanes stored by field behave like the records that they stand for."""

import numpy as np
import pytest

from shoal.vector.kernel import KernelBatch, b1, f64, i32, record
from shoal.vector.kernel.lane import Columns
from shoal.vector.kernel.outputs import moved, table_of
from shoal.worlds.classic.lanes.cartpole import CartPole
from tests.vector.kernel.kernels import Mixed

KIND = record(x=f64, flag=b1, pair=i32[2])


def test_a_column_is_the_memory_itself():
    columns = Columns(5, KIND)
    columns["x"][1:3] = 7.0
    columns["pair"] = np.arange(10).reshape(5, 2)
    assert columns["x"].tolist() == [0, 7, 7, 0, 0]
    assert columns[4]["pair"].tolist() == [8, 9]
    assert all(column.ctypes.data % 64 == 0 for column in columns.arrays.values())


def test_records_that_are_taken_out_cannot_be_written_to():
    columns = Columns(3, KIND)
    with pytest.raises(ValueError, match="read-only"):
        columns[:2]["x"] = 1.0
    copy = columns.copy()
    copy["x"] = 2.0
    columns[:] = copy
    assert columns["x"].tolist() == [2, 2, 2]


def test_a_table_with_other_memory_differs_in_its_addresses_alone():
    kept, mine, theirs = np.zeros(3), [np.zeros((4, 2)), np.zeros((4, 0))], [np.ones((4, 2)), np.ones((4, 0))]
    table = table_of([kept, 7, *mine])
    other = moved(table, theirs)
    changed = np.flatnonzero(table != other)
    assert other[changed].tolist() == [theirs[0].ctypes.data]
    assert table[changed].tolist() == [mine[0].ctypes.data]


def test_lanes_without_arrays_are_columns_and_others_records():
    assert isinstance(KernelBatch(CartPole, 2).lane_state, Columns)
    assert isinstance(KernelBatch(CartPole, 2, compiled=False).lane_state, np.ndarray)
    assert isinstance(KernelBatch(Mixed, 2).lane_state, np.ndarray)


def test_the_state_is_the_same_bytes_in_either_layout():
    batches = [KernelBatch(CartPole, 5, compiled=compiled) for compiled in (True, False)]
    states = []
    for batch in batches:
        batch.reset(seed=3)
        for _ in range(30):
            batch.step(np.arange(5) % 2)
        states.append(batch.get_state())
    assert states[0]["lanes"].nbytes == 5 * CartPole.state.itemsize
    for name in ("lanes", "book"):
        assert np.array_equal(states[0][name], states[1][name])
    batches[1].set_state(states[0])
    action = np.ones(5, np.int64)
    assert np.array_equal(batches[0].step(action)[0], batches[1].step(action)[0])


@pytest.mark.parametrize("num_envs", [1, 511, 512, 513, 1030])
def test_blocks_do_not_show(num_envs):
    many, few = KernelBatch(CartPole, num_envs, num_threads=1), KernelBatch(CartPole, 1, compiled=False)
    obs, _ = many.reset(seed=0)
    assert np.array_equal(obs[:1], few.reset(seed=0)[0])
    for k in range(60):
        action = np.full(num_envs, k % 2)
        obs, *_ = many.step(action)
        assert np.array_equal(obs[:1], few.step(action[:1])[0])
    assert np.array_equal(
        obs,
        np.stack(
            [many.lane_state[name] for name in ("x", "speed", "angle", "spin")],
            1,
            dtype=np.float32,
            casting="same_kind",
        ),
    )
