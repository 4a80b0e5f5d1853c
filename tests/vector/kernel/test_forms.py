"""Spaces with parts, unsigned fields, inheritance and helper records: the same compiled and not."""

from typing import NamedTuple

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple

from shoal.errors import ActionError, ShoalError
from shoal.trees import copy_tree, leaves
from shoal.vector.kernel import Kernel, KernelBatch, f32, i32, record, scratch, u32, u64

BODY = record(x=f32, v=f32)


class Vec(NamedTuple):
    x: float
    y: float


class Truck(Kernel):
    """Parts everywhere."""

    observation_space = Dict(
        {"body": Dict({"place": Box(-1e6, 1e6, (2,), np.float32), "gear": Discrete(9)}),
         "ahead": Tuple((Box(-1e6, 1e6, (2, 2), np.float32), MultiBinary(3)))}
    )  # fmt: skip
    action_space = Dict(
        {
            "gear": Discrete(3),
            "pull": Box(-1, 1, (2,), np.float32),
            "lamps": Tuple((MultiDiscrete([2, 4]), Discrete(2))),
        }
    )
    state = record(place=f32[2], gear=i32, seen=u32, hash=u64, t=i32)
    params = {"max_steps": 12}

    def reset(s, p, rng):
        s.place[:] = 0.0
        s.gear, s.t, s.seen, s.hash = 0, 0, 0, 0x9E3779B97F4A7C15

    def step(s, action, p, rng):
        move = Vec(action.pull[0], action.pull[1] * 2.0)
        s.place[0] += move.x
        s.place[1] += move.y
        s.gear = action.gear
        s.seen |= 1 << (action.lamps[0][1] + 28)
        s.hash = (s.hash ^ action.lamps[1]) * 0xBF58476D1CE4E5B9
        s.t += 1
        return s.place[0], False, s.t >= p.max_steps

    def observe(s, p, out):
        out.body.place[:] = s.place
        out.body.gear[0] = s.gear
        for k in range(2):
            out.ahead[0][k, k] = s.place[k] + (s.hash >> 40)
        out.ahead[1][s.gear] = True


class Convoy(Truck):
    """One more of something, with the rest as it was."""

    state = record(place=f32[2], gear=i32, seen=u32, hash=u64, t=i32, load=f32)

    def reset(s, p, rng):
        super().reset(s, p, rng)
        s.load = rng.uniform()

    def step(s, action, p, rng):
        bodies = scratch(BODY, 2)
        for k in range(2):
            bodies[k].x, bodies[k].v = s.place[k], 0.5 * k
        s.load += bodies[0].x + bodies[1].v
        reward, terminated, truncated = super().step(s, action, p, rng)
        return reward + s.load, terminated, truncated

    def observe(s, p, out):
        Truck.observe(s, p, out)
        out.body.place[1] = s.load


def trajectory(kernel, compiled, num_envs=3):
    batch = KernelBatch(kernel, num_envs, compiled=compiled)
    batch.action_space.seed(1)
    seen = [copy_tree(batch.reset(seed=2))]
    seen += [copy_tree(batch.step(batch.action_space.sample())) for _ in range(30)]
    return seen


@pytest.mark.parametrize("kernel", [Truck, Convoy])
def test_parts_are_the_same_compiled_and_uncompiled(kernel):
    one, other = trajectory(kernel, True), trajectory(kernel, False)
    for a, b in zip(one, other, strict=True):
        assert all(map(np.array_equal, leaves(a[:-1]), leaves(b[:-1])))  # without infos, which hold the time
    obs = one[5][0]
    assert obs["ahead"][0].shape == (3, 2, 2)
    assert (obs["ahead"][1].sum(axis=1) == 1).all()  # out starts at zero
    assert (obs["ahead"][0][:, 0, 1] == 0).all()


def test_wrong_actions_with_parts_are_refused():
    batch = KernelBatch(Truck, 2, compiled=False)
    batch.reset(seed=0)
    good = batch.action_space.sample()
    with pytest.raises(ActionError, match=r"keys \['gear'\].*keys \['gear', 'lamps', 'pull'\]"):
        batch.step({"gear": good["gear"]})
    with pytest.raises(ActionError, match="lane 1 is outside"):
        batch.step({**good, "gear": np.array([0, 3])})
    with pytest.raises(ActionError, match="tuple of 2"):
        batch.step({**good, "lamps": good["lamps"][:1]})


def test_spaces_without_arrays_and_keys_that_are_no_names_are_refused():
    for space, words in ((Tuple((gym.spaces.Text(3),)), "Text"), (Dict({"a b": Discrete(2)}), "'a b'")):
        kind = type("Odd", (Truck,), {"observation_space": space})
        with pytest.raises(ShoalError, match=words):
            KernelBatch(kind, 1, compiled=False)
