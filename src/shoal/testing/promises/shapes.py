"""What a batch returns has the shapes and types that its spaces announce."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from shoal.testing.case import Case
from shoal.testing.findings import Broken
from shoal.testing.subject import Subject
from shoal.testing.trees import as_array, leaves


def spaces_describe_the_batch(subject: Subject, case: Case) -> None:
    """Spaces, shapes and types are those announced; the autoreset mode is announced."""
    env = subject.batch(case.num_envs)
    mode = (env.metadata or {}).get("autoreset_mode")
    if not isinstance(mode, AutoresetMode):
        raise Broken(f"metadata['autoreset_mode'] is {mode!r}; it must be an AutoresetMode.")
    if env.num_envs != case.num_envs:
        raise Broken(f"make_batch({case.num_envs}) made a batch whose num_envs is {env.num_envs}.")
    for name in ("observation", "action"):
        single, whole = getattr(env, f"single_{name}_space"), getattr(env, f"{name}_space")
        if whole != batch_space(single, case.num_envs):
            raise Broken(f"{name}_space is {whole}, which is not {case.num_envs} times single_{name}_space, {single}.")
    player = subject.player(case).play()
    _check_obs(env, player.first_obs, "reset")
    for moment in player.moments:
        _check_obs(env, moment.obs, "step")
        _check_row(moment.reward, "reward", "f", case.num_envs)
        _check_row(moment.terminated, "terminated", "b", case.num_envs)
        _check_row(moment.truncated, "truncated", "b", case.num_envs)


def _check_obs(env: VectorEnv, obs: Any, call: str) -> None:
    announced = {path: (leaf.shape, leaf.dtype) for path, leaf in leaves(env.observation_space.sample())}
    got = {path: (leaf.shape, leaf.dtype) for path, leaf in leaves(obs)}
    if got != announced:
        raise Broken(f"{call}() returned observations {got}; observation_space announces {announced}.")
    if not env.observation_space.contains(obs):
        raise Broken(f"{call}() returned an observation outside observation_space: {_outside(env, obs)}.")


def _outside(env: VectorEnv, obs: Any) -> str:
    worst = [f"{path or 'obs'} spans {leaf.min():.6g} to {leaf.max():.6g}" for path, leaf in leaves(obs) if leaf.size]
    return "; ".join(worst)


def _check_row(value: Any, name: str, kind: str, num_envs: int) -> None:
    array = as_array(value)
    if array.shape != (num_envs,) or array.dtype.kind != kind:
        wanted = {"f": "floats", "b": "booleans"}[kind]
        raise Broken(f"{name} is {array.dtype}{array.shape}; it must be {num_envs} {wanted}.")


def an_ending_has_one_cause(subject: Subject, case: Case) -> None:
    """`terminated` and `truncated` are never both true: time limits are not deaths."""
    player = subject.player(case).play()
    for k, moment in enumerate(player.moments):
        subject.saw_an_end |= bool(moment.done.any())
        both = moment.terminated & moment.truncated
        if both.any():
            lane = int(np.argmax(both))
            raise Broken(f"Lane {lane} is both terminated and truncated in step {k + 1}.")
