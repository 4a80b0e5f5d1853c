"""Lanes with seats keep the contract, compiled and not, on any number of threads; mistakes are told in a sentence."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from shoal.errors import ActionError, KernelError
from shoal.testing import BROKEN, check_agreement, check_batch
from shoal.vector.kernel import Kernel, KernelBatch, i8, record
from shoal.vector.kernel.dry_run import dry_run
from tests.vector.kernel.seated import Hunt, Nim, Plank, Tug


def batches(kernel, **options):
    return lambda num_envs, **more: KernelBatch(kernel, num_envs, **{**options, **more})


@pytest.mark.parametrize("kernel", [Plank, Tug, Hunt, Nim])
def test_seated_lanes_keep_every_promise(kernel):
    findings = check_batch(batches(kernel), max_examples=5)
    assert [f for f in findings if f.severity == BROKEN] == []
    assert ("a turn names a seat that is there" in {f.promise for f in findings}) == (kernel not in (Plank, Nim))


@pytest.mark.parametrize("kernel", [Plank, Tug])
@pytest.mark.parametrize("options", [{"compiled": False}, {"num_threads": 2}, {"checked": True}])
def test_every_way_to_run_seats_gives_the_same_bits(kernel, options):
    if options.get("checked"):
        kernel = Tug
    assert check_agreement(batches(kernel), batches(kernel, **options), ("plain", str(options)), max_examples=4) == []


def test_arrays_have_a_seat_axis_and_ends_have_none():
    batch = KernelBatch(Plank, 4)
    obs, info = batch.reset(seed=1)
    assert obs.shape == (4, 3, 2)
    assert info["action_mask"].shape == (4, 3, 3)
    assert info["present"].shape == (4, 3)
    obs, reward, terminated, truncated, info = batch.step(np.zeros((4, 3), np.int64))
    assert reward.shape == (4, 3)
    assert terminated.shape == truncated.shape == info["turn"].shape == (4,)
    waiting = np.arange(3) != info["turn"][:, None]
    assert (info["action_mask"][waiting] == [True, False, False]).all()
    assert batch.seat_action_space.n == 3
    assert batch.single_action_space.shape == (3,)


def test_seats_may_see_and_do_different_things():
    batch = KernelBatch(Hunt, 2)
    obs, info = batch.reset(seed=1)
    assert obs.shape == (2, 3, 3)
    assert (obs[:, 2, 2] == 0).all()
    assert (info["action_mask"] == [[True] * 3, [True] * 3, [True, True, False]]).all()
    assert dry_run(batch.kernel, batch.lane_state) == []  # nobody writes what fills up the row of the third
    assert [(seen.shape, act.n) for seen, act in batch.spaces_of_seats] == [((3,), 3), ((3,), 3), ((2,), 2)]
    with pytest.raises(ActionError, match="The action of lane 1 is outside the action space"):
        batch.step(np.array([[0, 0, 0], [0, 0, 2]]))


class TwoSpaces(Hunt):
    """Forgets a seat."""

    action_space = (gym.spaces.Discrete(3), gym.spaces.Discrete(3))


class MixedSpaces(Hunt):
    """Seats that have nothing in common."""

    action_space = (gym.spaces.Discrete(3), gym.spaces.Discrete(3), gym.spaces.Box(-1, 1, (2,), np.float32))


@pytest.mark.parametrize(
    ("kernel", "sentence"),
    [(TwoSpaces, "TwoSpaces.action_space .*: There are 2 spaces for 3 seats"), (MixedSpaces, "and in nothing else")],
)
def test_spaces_of_seats_that_do_not_fit_are_refused(kernel, sentence):
    with pytest.raises(KernelError, match=sentence):
        KernelBatch(kernel, 1)


def test_rewards_are_shared_and_own_ones_together():
    batch = KernelBatch(Tug, 1)
    obs, _ = batch.reset(seed=0)
    obs, reward, *_ = batch.step(np.array([[[1.0], [-1.0]]], np.float32))
    assert reward[0].tolist() == [obs[0, 0, 0], -obs[0, 0, 0]]


class BadTurn(Plank):
    """Names a seat that does not exist."""

    def turn(s, p):
        return 3


class NoTurn(Plank):
    """Forgets to say whose turn it is."""

    def turn(s, p):
        s.on + 0


class NoSeat(Tug):
    """Has bots and nowhere to put them."""

    bots = ("idle",)


class TwoBots(Tug):
    """A name twice."""

    state = record(seat=i8[2], rope=i8, t=i8)
    bots = ("idle", "idle")


@pytest.mark.parametrize(
    ("kernel", "sentence"),
    [
        (BadTurn, "returned 3, which is not a seat that is there"),
        (NoTurn, "turn returns nothing; it must return the number of the seat"),
        (NoSeat, r"needs a field seat=i8\[2\]"),
        (TwoBots, "two bots of the same name among idle, idle"),
    ],
)
def test_mistakes_are_named(kernel, sentence):
    with pytest.raises(KernelError, match=sentence):
        KernelBatch(kernel, 2)


class Live(Tug):
    """Looks in every step at who sits where."""

    state = record(seat=i8[2], rope=i8, t=i8)
    survives = ("seat",)
    bots = ("idle",)

    def step(s, action, p, rng):
        s.t += 1
        s.rope += (action[0, 0] > 0 and s.seat[0] == 0) - (action[1, 0] > 0 and s.seat[1] == 0)
        return 0.0, abs(s.rope) > 3, s.t >= 12


def test_bots_that_look_at_who_plays_next_are_noted():
    batch = KernelBatch(Live, 2, compiled=False)
    (note,) = dry_run(batch.kernel, batch.lane_state)
    assert "Live.step" in note
    assert "looks at s.seat, which by then says who plays the next episode. Copy it in reset" in note


class LateTurn(Plank):
    """Counts its seats from a parameter on."""

    params = {"first": 0}

    def turn(s, p):
        return s.on + p.first


def test_a_turn_that_goes_wrong_later_is_a_fault_of_the_lane():
    batch = KernelBatch(LateTurn, 2)
    batch.reset(seed=0)
    batch.set_params(first=np.array([0, 3]))
    with pytest.raises(KernelError, match="names a seat that is not there, in lane 1"):
        batch.step(np.zeros((2, 3), np.int64))


def test_functions_of_seats_mean_nothing_without_seats():
    class Alone(Kernel):
        observation_space, action_space, state = Tug.observation_space, Tug.action_space, Tug.state

        def turn(s, p):
            return "left"

    assert Alone.seats == 0
    assert Kernel.function(object.__new__(Alone), "turn") is None


class Widened(Plank):
    """Its spaces depend on a parameter, so it sets them when it is made."""

    def __init__(self):
        super().__init__()
        self.observation_space = gym.spaces.Box(-9, 9, Plank.observation_space.shape, np.float32)


def test_spaces_that_a_kernel_sets_when_it_is_made_are_those_of_its_lanes():
    batch = KernelBatch(Widened(), 2, compiled=False)
    assert batch.single_observation_space.high.max() == 9
