"""`call`, `get_attr` and `set_attr`: what Gymnasium's own vector environments answer, on every kind of batch."""

from contextlib import closing

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

from shoal.errors import ConfigError, LaneFault, StateError, UnknownName
from shoal.vector.kernel import KernelBatch
from shoal.vector.serial import SerialBatch
from shoal.vector.workers import WorkerBatch
from shoal.worlds.classic.lanes.cartpole import CartPole
from tests.vector.toys import Trap

LANES = 3


class Room(Trap):
    """A trap with a temperature, which it adds to its reward."""

    temperature = 20.0

    def warm(self, by, twice=False):
        self.temperature += by * (1 + twice)
        return self.temperature

    def fail(self):
        raise ValueError("the heating is broken")

    def generator(self):
        return (number for number in range(3))

    def step(self, action):
        obs, reward, *rest = super().step(action)
        return obs, reward + self.temperature, *rest


class Window(gym.Wrapper):
    """A wrapper with something of its own."""

    is_open = False


def make_room():
    return Window(Room())


@pytest.fixture(params=[SerialBatch, WorkerBatch])
def batch(request):
    options = {"num_workers": 2} if request.param is WorkerBatch else {}
    batch = request.param(make_room, LANES, **options)
    batch.reset(seed=0)
    yield batch
    batch.close()


def test_the_answers_are_those_of_gymnasium(batch):
    theirs = SyncVectorEnv([make_room] * LANES)
    for env in (batch, theirs):
        env.set_attr("temperature", [1.0, 2.0, 3.0])
        env.set_attr("is_open", True)
    for question in (("warm", 2), ("temperature",), ("is_open",), ("t",)):
        assert batch.call(*question) == theirs.call(*question)
    assert batch.call("warm", by=1, twice=True) == theirs.call("warm", by=1, twice=True) == (5.0, 6.0, 7.0)
    assert batch.get_attr("temperature") == theirs.get_attr("temperature")
    theirs.close()


def test_a_running_environment_is_reconfigured(batch):
    actions = np.zeros(LANES, np.int64)
    assert batch.step(actions)[1].tolist() == [21.0, 21.0, 21.0]
    batch.set_attr("temperature", 5.0)
    assert batch.step(actions)[1].tolist() == [6.0, 6.0, 6.0]
    batch.call("warm", -5.0)
    assert batch.step(actions)[1].tolist() == [1.0, 1.0, 1.0]


def test_mistakes_are_told_and_cost_nothing(batch):
    with pytest.raises(AttributeError, match="humidity"):
        batch.get_attr("humidity")
    with pytest.raises(ConfigError, match=r"set_attr\('temperature'\) got 2 values for 3 lanes"):
        batch.set_attr("temperature", [1.0, 2.0])
    with pytest.raises(LaneFault, match=r"Lane 0 raised ValueError in fail\(\): the heating is broken"):
        batch.call("fail")
    assert batch.get_attr("temperature") == (20.0,) * LANES
    batch.step(np.zeros(LANES, np.int64))
    batch.close()
    with pytest.raises(StateError, match="call\\(\\) came after close"):
        batch.call("warm", 1)


def test_what_cannot_cross_to_a_worker_is_refused_and_the_worker_lives():
    with closing(WorkerBatch(make_room, LANES, num_workers=2)) as batch:
        batch.reset(seed=0)
        with pytest.raises(StateError, match="cannot be sent back by pickling it"):
            batch.call("generator")
        with pytest.raises(ConfigError, match=r"The values of set_attr\('temperature'\) cannot be sent to the workers"):
            batch.set_attr("temperature", (number for number in range(3)))
        assert batch.get_attr("temperature") == (20.0,) * LANES
        batch.send(np.zeros(LANES, np.int64), np.arange(LANES))
        with pytest.raises(StateError, match=r"call\(\)"):
            batch.call("warm", 1)


# ---------------------------------------------------------------------- kernels


@pytest.fixture
def poles():
    kernel = CartPole()
    batch = KernelBatch(kernel, LANES, num_threads=1)
    batch.reset(seed=0)
    yield batch
    batch.close()


def test_a_parameter_of_a_kernel_counts_from_the_next_step(poles):
    assert poles.get_attr("gravity") == poles.call("gravity") == (9.8,) * LANES
    given = poles.kernel
    actions, state = np.ones(LANES, np.int64), poles.get_state()
    earth = poles.step(actions)[0]
    poles.set_state(state)
    poles.set_attr("gravity", 1.62)
    moon = poles.step(actions)[0]
    assert not np.array_equal(earth, moon)
    fresh = KernelBatch(CartPole(gravity=1.62), LANES, num_threads=1)
    fresh.set_state(state)
    np.testing.assert_array_equal(fresh.step(actions)[0], moon)
    assert poles.get_attr("gravity") == (1.62,) * LANES
    assert given.values["gravity"] == 9.8


def test_a_field_of_the_state_is_each_lanes_own(poles):
    name = poles.kernel.state.names[0]
    poles.set_attr(name, [0.0, 0.25, 0.5])
    assert poles.get_attr(name) == (0.0, 0.25, 0.5)
    poles.set_attr(name, 0.125)
    assert poles.get_attr(name) == (0.125,) * LANES
    assert poles.get_attr("action_space") == (poles.kernel.action_space,) * LANES


def test_lanes_can_have_parameters_of_their_own(poles):
    poles.set_attr("gravity", [1.0, 2.0, 3.0])
    assert poles.get_attr("gravity") == (1.0, 2.0, 3.0)
    poles.set_attr("gravity", 4.0)
    assert poles.get_attr("gravity") == (4.0,) * LANES


def test_what_a_kernel_batch_cannot_change_is_told(poles):
    with pytest.raises(UnknownName, match=r"No attribute 'gravty' of CartPole\. Did you mean 'gravity'"):
        poles.set_attr("gravty", 1.0)
    with pytest.raises(ConfigError, match="got 2 values for 3 lanes"):
        poles.set_attr("gravity", [1.0, 2.0])
    with pytest.raises(ConfigError, match="must be like its default"):
        poles.set_attr("gravity", "heavy")
    with pytest.raises(ConfigError, match="step is a function of CartPole"):
        poles.call("step", 0)
    with pytest.raises(ConfigError, match="Invalid value for the state field"):
        poles.set_attr(poles.kernel.state.names[0], "left")
    assert poles.get_attr("gravity") == (9.8,) * LANES


class Wide(CartPole):
    """One whose observation depends on a parameter."""

    params = {**CartPole.params, "width": 4}

    def __init__(self, **params):
        self.observation_space = gym.spaces.Box(-9.0, 9.0, (int(params.get("width", 4)),), np.float32)
        super().__init__(**params)


def test_a_parameter_that_shapes_the_spaces_stays():
    batch = KernelBatch(Wide(), 2, compiled=False)
    with pytest.raises(ConfigError, match="Another width changes the observation_space of Wide"):
        batch.set_attr("width", 5)
    assert batch.get_attr("width") == (4, 4)
