"""Faults are loud: bad actions and calls at the wrong moment raise, and nothing has moved."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from shoal.testing.findings import Broken, NotOffered, describe
from shoal.testing.player import Case
from shoal.testing.subject import Subject
from shoal.testing.trees import demand_same, keep
from shoal.trees import Tree, index_tree

Spoil = Callable[[VectorEnv, Tree], Tree]


def a_wrong_number_of_actions_is_refused(subject: Subject, case: Case) -> None:
    """Too few or too many actions raise, and nothing has moved."""
    _refuses(subject, case, lambda env, action: index_tree(action, slice(1, None)), "one action too few")
    _refuses(subject, case, lambda env, action: index_tree(action, [*range(env.num_envs), 0]), "one action too many")


def an_action_outside_the_space_is_refused(subject: Subject, case: Case) -> None:
    """An action outside the space raises, and nothing has moved."""
    _refuses(subject, case, _spoil_range, "an action outside the space in the last lane")


def a_nan_action_is_refused(subject: Subject, case: Case) -> None:
    """A NaN action raises, and nothing has moved."""
    _refuses(subject, case, _spoil_nan, "a NaN action in the last lane")


def _refuses(subject: Subject, case: Case, spoil: Spoil, what: str) -> None:
    """Give one of two twins a bad action in the middle; it must raise, and then go on like the other."""
    tried = subject.player(case).play(case.num_steps // 2)
    calm = subject.player(case, twin=1).play(case.num_steps // 2)
    if tried.mode is AutoresetMode.NEXT_STEP and tried.over.any():
        return  # the next actions of these lanes are ignored, good or bad
    action = calm.choose()
    tried.choose()
    bad = spoil(tried.env, keep(action))
    try:
        tried.env.step(bad)
    except Exception as error:
        refusal = describe(error)
    else:
        raise Broken(f"step() accepted {what}.")
    reference = calm.step(action)
    try:
        moment = tried.step(action)
    except Broken as broken:
        raise Broken(f"After {what} was refused ({refusal}) the batch could not go on: {broken}") from None
    otherwise = f"{what[0].upper()}{what[1:]} was refused, but something had moved"
    demand_same(moment.outcome, reference.outcome, otherwise)


def _spoil_range(env: VectorEnv, action: Tree) -> Tree:
    space: Any = env.single_action_space
    if isinstance(space, gym.spaces.Discrete):
        action[-1] = int(space.start) + int(space.n)
    elif isinstance(space, gym.spaces.MultiDiscrete):
        action[-1] = space.start + space.nvec
    elif isinstance(space, gym.spaces.MultiBinary):
        action[-1] = 2
    elif isinstance(space, gym.spaces.Box) and np.isfinite(space.high).all() and action.dtype.kind == "f":
        action[-1] = space.high + 1
    else:
        raise NotOffered(f"No action of this type lies outside {space}.")
    return action


def _spoil_nan(env: VectorEnv, action: Tree) -> Tree:
    space = env.single_action_space
    if not isinstance(space, gym.spaces.Box) or action.dtype.kind != "f":
        raise NotOffered("Actions are whole numbers, which cannot be NaN.")
    action[-1] = np.nan
    return action


def step_before_reset_is_refused(subject: Subject, case: Case) -> None:
    """`step` before the first `reset` raises."""
    with closing(subject.fresh(case.num_envs)) as env:
        _must_raise(env, "before reset()")


def step_after_close_is_refused(subject: Subject, case: Case) -> None:
    """`step` after `close` raises; closing twice does nothing."""
    env = subject.fresh(case.num_envs)
    env.reset(seed=case.seed)
    env.close()
    try:
        env.close()
    except Exception as error:
        raise Broken(f"close() a second time raised {describe(error)}.") from error
    _must_raise(env, "after close()")


def _must_raise(env: VectorEnv, when: str) -> None:
    env.action_space.seed(0)
    try:
        env.step(env.action_space.sample())
    except Exception:
        return
    raise Broken(f"step() {when} was accepted.")
