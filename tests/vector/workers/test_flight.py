"""`send` and `recv`: each lane at its own pace."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from shoal.errors import ActionError, StateError
from shoal.vector.lanes.faults import FaultKind
from shoal.vector.serial import SerialBatch
from shoal.vector.workers import WorkerBatch
from shoal.vector.workers.link import Worker
from tests.vector.toys import HANG, KILL, RAISE, Trap, Walk, assert_identical
from tests.vector.workers.hanging import STEP_TIMEOUT, expect_hang, look_often
from tests.vector.workers.left_behind import assert_ended, worker_pids


class Gated(Walk):
    """Waits with action 1 until the file `gate` is there."""

    def __init__(self, gate):
        super().__init__()
        self.gate = Path(gate)

    def step(self, action):
        while action == 1 and not self.gate.exists():
            time.sleep(0.001)
        return super().step(action)


@pytest.mark.parametrize("mode", ["same_step", "next_step"])
@pytest.mark.parametrize("num_workers", [1, 2, 3])
def test_lanes_go_the_same_way_at_their_own_pace_as_in_step(mode, num_workers):
    options = {"env_kwargs": {"obs": "dict", "info": True, "mask": "info"}, "autoreset_mode": mode}
    serial = SerialBatch(Walk, 5, **options)
    batch = WorkerBatch(Walk, 5, num_workers=num_workers, context="fork", **options)
    serial.reset(seed=2)
    batch.reset(seed=2)
    actions = np.random.default_rng(0).integers(0, 4, (25, 5))
    expected = [serial.step(action) for action in actions]
    taken = np.zeros(5, int)
    batch.send(actions[0], range(5))
    while taken.min() < 20:
        at_least = min(2, len(batch._flight))  # one, when all others have made their steps
        lanes, obs, reward, terminated, truncated, info = batch.recv(at_least)
        assert len(lanes) >= at_least
        for row, lane in enumerate(lanes):
            _obs, _reward, _terminated, _truncated, _info = expected[taken[lane]]
            assert_identical(_row(obs, row), _row(_obs, lane))
            assert (reward[row], terminated[row], truncated[row]) == (
                _reward[lane],
                _terminated[lane],
                _truncated[lane],
            )
            assert info["action_mask"][row].tolist() == _info["action_mask"][lane].tolist()
            assert info["t"][row] == _info["t"][lane]
            if terminated[row] or truncated[row]:
                assert info["episode"]["l"][row] == _info["episode"]["l"][lane]
                assert info["episode"]["r"][row] == _info["episode"]["r"][lane]
                if mode == "same_step":
                    assert_identical(_row(info["final_obs"], row), _row(_info["final_obs"], lane))
                    assert info["final_info"]["t"][row] == _info["final_info"]["t"][lane]
        taken[lanes] += 1
        onward = lanes[taken[lanes] < 25]
        if len(onward):
            batch.send(actions[taken[onward], onward], onward)
    batch.close()


def _row(tree, row):
    return {key: value[row] for key, value in tree.items()}


def test_quick_lanes_do_not_wait_for_slow_ones(tmp_path):
    gate = tmp_path / "gate"
    batch = WorkerBatch(Gated, 4, env_kwargs={"gate": str(gate)}, num_workers=2, context="fork")
    batch.reset(seed=0)
    batch.send([1, 0, 0, 0], [0, 1, 2, 3])
    assert sorted(batch.recv(2)[0].tolist()) == [2, 3]
    gate.touch()
    assert sorted(batch.recv(2)[0].tolist()) == [0, 1]
    batch.close()


def test_mistakes_are_sentences_and_the_flight_goes_on():
    batch = WorkerBatch(Trap, 4, num_workers=2, context="fork")
    batch.reset(seed=0)
    with pytest.raises(StateError, match=r"recv\(min_lanes=1\) would never return: 0 lanes are in flight"):
        batch.recv()
    batch.send([0, 0], [1, 2])
    for lanes, error, message in [
        ([0, 2], StateError, "lane 2, which has been sent an action already and not been received"),
        ([4], ActionError, "lane 4 of a batch of 4"),
        ([-1], ActionError, "lane -1 of a batch of 4"),
        ([0, 0], ActionError, "some lane twice"),
        ([], ActionError, "Pass a list of lane numbers from 0 to 3"),
    ]:
        with pytest.raises(error, match=message):
            batch.send([0] * len(lanes), lanes)
    with pytest.raises(ActionError, match="2 actions of shape"):
        batch.send([0, 0], [0])
    with pytest.raises(StateError, match=r"min_lanes=3\) would never return: 2 lanes"):
        batch.recv(3)
    for call in (batch.reset, batch.get_state, lambda: batch.step([0] * 4)):
        with pytest.raises(StateError, match="came while 2 lanes are in flight"):
            call()
    lanes, obs, *_ = batch.recv(2)
    assert sorted(lanes.tolist()) == [1, 2]
    assert obs[:, 0].tolist() == [1, 1]
    batch.step([0, 0, 0, 0])
    batch.close()


@pytest.mark.parametrize(("crime", "kind"), [(RAISE, "RAISED"), (KILL, "LOST"), (HANG, "HUNG")])
def test_a_fault_in_flight_is_told_to_those_who_wait_and_to_the_others_when_they_are_next_sent(
    monkeypatch, tmp_path, crime, kind
):
    expect_hang(monkeypatch, tmp_path / "hangs")
    batch = WorkerBatch(Trap, 4, num_workers=2, context="fork", on_fault="restart", step_timeout=STEP_TIMEOUT)
    look_often(batch)
    batch.reset(seed=0)
    batch.send([crime, 0], [1, 2])
    received = {}
    while len(received) < 2:
        lanes, obs, _, _, truncated, info = batch.recv()
        for row, lane in enumerate(lanes.tolist()):
            received[lane] = (obs[row, 0], truncated[row], info.get("fault", np.zeros(4))[row])
    assert received == {1: (0, True, FaultKind[kind]), 2: (1, False, 0)}
    batch.send([0], [0])  # the neighbour of lane 1, which waited for an action when their worker was lost
    lanes, obs, _, _, truncated, info = batch.recv()
    assert lanes.tolist() == [0]
    lost = kind != "RAISED"
    assert truncated.tolist() == [lost]
    assert obs[0, 0] == (0 if lost else 1)
    assert ("fault" in info) == lost
    assert batch.step([0] * 4)[0][:, 0].tolist() == [1 if lost else 2, 1, 2, 1]
    batch.close()


def test_closing_in_flight_does_not_wait(monkeypatch):
    def ask_to_close(worker):
        raise AssertionError(f"{worker} is in the middle of a step and will not answer")

    monkeypatch.setattr(Worker, "ask_to_close", ask_to_close)
    batch = WorkerBatch(Trap, 2, num_workers=2, context="fork")
    batch.reset(seed=0)
    batch.send([HANG, 0], [0, 1])
    pids = worker_pids(batch)
    batch.close()
    assert_ended(pids)
