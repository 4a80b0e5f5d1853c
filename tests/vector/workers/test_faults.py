"""Every fault is really committed: lanes raise, are killed, hang, and return nonsense."""

from __future__ import annotations

import os
import re
import signal

import numpy as np
import pytest

from shoal.errors import LaneFault, StateError
from shoal.vector.lanes.faults import FaultKind
from shoal.vector.workers import WorkerBatch, crew
from tests.vector.toys import (
    DTYPE,
    END,
    EXIT,
    HANG,
    KILL,
    NAN_OBS,
    NAN_REWARD,
    NO_REWARD,
    NORMAL,
    RAISE,
    RAISE_IN_RESET,
    SHAPE,
    Trap,
)
from tests.vector.workers.hanging import CLOCK, STEP_TIMEOUT, Slow, expect_hang, look_often
from tests.vector.workers.left_behind import assert_ended, assert_nothing_left, worker_pids

NONSENSE = {
    RAISE: (FaultKind.RAISED, "(?s)Lane 2 raised ZeroDivisionError in step.*the cart left the rails.*toys.py"),
    SHAPE: (FaultKind.INVALID, r"Lane 2 .* the observation has shape \(1,\) where its space has \(2,\)"),
    DTYPE: (FaultKind.INVALID, "Lane 2 .* the observation has type <U1 where its space has float32"),
    NAN_OBS: (FaultKind.INVALID, "Lane 2 .* the observation is NaN in 2 of 2 numbers"),
    NAN_REWARD: (FaultKind.INVALID, "Lane 2 .* the reward is NaN"),
    NO_REWARD: (FaultKind.INVALID, "Lane 2 .* the reward is None, not a number"),
    RAISE_IN_RESET: (FaultKind.RAISED, "(?s)Lane 2 raised OSError in reset.*the level file is gone"),
    KILL: (FaultKind.LOST, r"Worker 1 \(process \d+, lanes 2..3\) was killed by SIGKILL while lane 2 was at work"),
    EXIT: (FaultKind.LOST, "Worker 1 .* died with exit code 7 while lane 2 was at work"),
    HANG: (FaultKind.HUNG, "Lane 2 did not come back from step.* within step_timeout=60.0 s"),
}


@pytest.fixture(autouse=True)
def no_false_alarm(monkeypatch, tmp_path):
    expect_hang(monkeypatch, tmp_path / "hangs")


def trap(crime: int = NORMAL, **options) -> WorkerBatch:
    timeout = STEP_TIMEOUT if crime == HANG else None
    return look_often(WorkerBatch(Trap, 4, num_workers=2, context="fork", step_timeout=timeout, **options))


def kill(pid: int) -> None:
    """Kill a worker and see it dead."""
    os.kill(pid, signal.SIGKILL)
    assert_ended([pid])


@pytest.mark.parametrize("crime", NONSENSE)
def test_raise_names_the_lane_and_leaves_nothing_running(crime):
    batch = trap(crime)
    pids = worker_pids(batch)
    batch.reset(seed=0)
    with pytest.raises(LaneFault, match=NONSENSE[crime][1]) as caught:
        batch.step([0, 0, crime, 0])
    assert caught.value.lane == 2
    with pytest.raises(StateError, match="after close"):
        batch.step([0, 0, 0, 0])
    assert_ended(pids)
    del caught
    assert_nothing_left(batch)


@pytest.mark.parametrize("crime", NONSENSE)
def test_restart_truncates_the_lane_and_the_others_never_notice(crime):
    kind, reason = NONSENSE[crime]
    batch = trap(crime, on_fault="restart")
    first, _ = batch.reset(seed=7)
    for _ in range(2):
        batch.step([0, 0, 0, 0])
    obs, reward, terminated, truncated, info = batch.step([0, 0, crime, 0])
    took_neighbour = kind in (FaultKind.LOST, FaultKind.HUNG)
    lost = np.array([False, False, True, took_neighbour])
    ended_by_itself = crime == RAISE_IN_RESET
    assert truncated.tolist() == (lost & (not ended_by_itself)).tolist()
    assert terminated.tolist() == (lost & ended_by_itself).tolist()
    assert obs[:, 0].tolist() == np.where(lost, 0, 3).tolist()
    assert obs[~lost, 1].tolist() == first[~lost, 1].tolist()
    assert obs[2, 1] != first[2, 1]
    assert info["final_obs"][2].tolist() == [3 if ended_by_itself else 2, first[2, 1]]
    assert reward.tolist() == np.where(lost & (not ended_by_itself), 0, 1).tolist()
    assert info["fault"][2] == kind
    assert info["_fault"].tolist() == info["_episode"].tolist() == lost.tolist()
    assert batch.num_faults == lost.sum() == len(batch.faults)
    assert batch.faults[0].lane == 2
    assert re.search(reason, batch.faults[0].reason)
    obs, _, _, truncated, info = batch.step([0, 0, 0, 0])
    assert obs[:, 0].tolist() == np.where(lost, 1, 4).tolist()
    assert not truncated.any()
    assert "fault" not in info
    pids = worker_pids(batch)
    batch.close()
    assert_ended(pids)
    assert_nothing_left(batch)


def test_what_follows_a_fault_is_a_function_of_the_seed():
    def after_two_faults() -> list:
        batch = trap(on_fault="restart")
        batch.reset(seed=3)
        batch.step([RAISE, 0, 0, 0])
        obs = [batch.step(action)[0].tolist() for action in ([RAISE, 0, 0, NAN_OBS], [0, END, 0, 0])]
        batch.close()
        return obs

    assert after_two_faults() == after_two_faults()


@pytest.mark.parametrize("crime", [RAISE, KILL])
def test_restart_under_next_step_ends_the_episode_and_resets_in_the_next_step(crime):
    batch = trap(on_fault="restart", autoreset_mode="next_step")
    batch.reset(seed=1)
    batch.step([0, 0, 0, 0])
    obs, _, _, truncated, info = batch.step([0, 0, crime, 0])
    assert truncated[2]
    assert obs[2, 0] == 1
    assert info["_fault"][2]
    obs, reward, _, truncated, _ = batch.step([0, 0, 0, 0])
    assert obs[2, 0] == reward[2] == 0
    assert not truncated.any()
    batch.close()


def test_restart_under_disabled_waits_for_the_reset():
    batch = trap(on_fault="restart", autoreset_mode="disabled")
    batch.reset(seed=1)
    batch.step([0, 0, 0, RAISE])
    with pytest.raises(StateError, match="lane 3 has ended"):
        batch.step([0, 0, 0, 0])
    batch.reset(options={"reset_mask": np.array([False, False, False, True])})
    assert batch.step([0, 0, 0, 0])[0][:, 0].tolist() == [2, 2, 2, 1]
    batch.close()


def test_a_worker_killed_between_steps_is_noticed_at_the_next():
    batch = trap(on_fault="restart")
    batch.reset(seed=1)
    kill(worker_pids(batch)[0])
    obs, _, _, truncated, info = batch.step([0, 0, 0, 0])
    assert truncated.tolist() == info["_fault"].tolist() == [True, True, False, False]
    assert obs[:, 0].tolist() == [0, 0, 1, 1]
    batch.close()


@pytest.mark.parametrize("mode", ["same_step", "next_step", "disabled"])
def test_a_worker_killed_while_other_lanes_are_reset_is_told_with_the_next_step(mode):
    batch = trap(on_fault="restart", autoreset_mode=mode)
    batch.reset(seed=1)
    kill(worker_pids(batch)[0])
    batch.reset(options={"reset_mask": np.array([False, False, False, True])})
    _, _, _, truncated, info = batch.step([0, 0, 0, 0])
    assert truncated.tolist() == info["_fault"].tolist() == info["_episode"].tolist() == [True, True, False, False]
    batch.close()


def test_a_worker_killed_before_a_reset_is_replaced_and_reset():
    batch = trap(on_fault="restart")
    first, _ = batch.reset(seed=1)
    kill(worker_pids(batch)[1])
    again, info = batch.reset(seed=1)
    assert again.tolist() == first.tolist()
    assert info["_fault"].tolist() == [False, False, True, True]
    batch.close()


def test_a_slow_batch_is_not_a_hanging_lane(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(crew, "time", CLOCK)
    batch = look_often(WorkerBatch(Slow, 6, num_workers=1, context="fork", step_timeout=0.4))
    batch.reset(seed=0)
    info = batch.step([0] * 6)[4]
    assert not info.get("_fault", np.zeros(6, bool)).any()
    assert CLOCK.monotonic() > 4 * 0.4
    batch.close()


class Doomed(Trap):
    """Breaks at its second step, and so does every environment that follows it."""

    def reset(self, *, seed=None, options=None):
        if os.path.exists(self.flag):
            raise OSError("out of licences")
        return super().reset(seed=seed, options=options)

    def __init__(self, flag: str) -> None:
        super().__init__()
        self.flag = flag


def test_two_faults_in_a_row_are_raised_even_under_restart(tmp_path):
    flag = tmp_path / "flag"
    batch = WorkerBatch(Doomed, 2, env_kwargs={"flag": str(flag)}, num_workers=1, context="fork", on_fault="restart")
    batch.reset(seed=0)
    flag.touch()
    with pytest.raises(LaneFault, match=r"Lane 1 raised OSError in reset.. of a fresh environment after a fault"):
        batch.step([0, RAISE])
    assert_nothing_left(batch)
