"""What a batch returns: arrays as its spaces announce them, infos and episode statistics as dense arrays, masks."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from shoal.testing.findings import Broken, NotOffered
from shoal.testing.player import Case, split_mask
from shoal.testing.subject import Subject
from shoal.testing.trees import as_array, leaves
from shoal.trees import Tree
from shoal.trees import leaves as parts_of
from shoal.vector.spaces import num_actions

KINDS = {"f": "floats", "b": "booleans"}


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
        for name, kind in (("reward", "f"), ("terminated", "b"), ("truncated", "b")):
            row = as_array(getattr(moment, name))
            wanted = (case.num_envs, *(seats_axis(env) if name == "reward" else ()))
            if row.shape != wanted or row.dtype.kind != kind:
                count = " x ".join(map(str, wanted))
                raise Broken(f"{name} is {row.dtype}{row.shape}; it must be {count} {KINDS[kind]}.")


def seats_axis(env: VectorEnv) -> tuple[int, ...]:
    """The axis of seats that rewards and masks of a batch have after B: none, or one."""
    seats = getattr(env, "num_seats", 0)
    return (seats,) if seats else ()


def in_words(values: np.ndarray) -> str:
    """One number, or one for each seat."""
    return ", ".join(f"{value:.6g}" for value in np.ravel(values))


def _check_obs(env: VectorEnv, obs: Tree, call: str) -> None:
    announced = {path: (leaf.shape, leaf.dtype) for path, leaf in leaves(env.observation_space.sample())}
    got = {path: (leaf.shape, leaf.dtype) for path, leaf in leaves(obs)}
    if got != announced:
        raise Broken(f"{call}() returned observations {got}; observation_space announces {announced}.")
    if not env.observation_space.contains(obs):
        spans = (f"{path or 'obs'} spans {x.min():.6g} to {x.max():.6g}" for path, x in leaves(obs) if x.size)
        raise Broken(f"{call}() returned an observation outside observation_space: {'; '.join(spans)}.")


def an_ending_has_one_cause(subject: Subject, case: Case) -> None:
    """`terminated` and `truncated` are never both true: time limits are not deaths."""
    player = subject.player(case).play()
    for k, moment in enumerate(player.moments):
        subject.saw_an_end |= bool(moment.done.any())
        both = moment.terminated & moment.truncated
        if both.any():
            lane = int(np.argmax(both))
            raise Broken(f"Lane {lane} is both terminated and truncated in step {k + 1}.")


def infos_are_dense(subject: Subject, case: Case) -> None:
    """Every info is an array with leading axis B (or a dict of such), and `_x` is the [B] mask of `x`."""
    player = subject.player(case).play()
    _check_dense(player.first_info, case.num_envs, "reset()")
    for k, moment in enumerate(player.moments):
        _check_dense(moment.info, case.num_envs, f"step {k + 1}")


def _check_dense(info: dict[str, Any], num_envs: int, call: str) -> None:
    for key, value in info.items():
        if isinstance(value, dict):
            _check_dense(value, num_envs, f"{call}, info[{key!r}]")
            continue
        if isinstance(value, tuple) and key == "final_obs":
            continue  # a Tuple observation space; its arrays are compared by the promises of autoreset
        if not hasattr(value, "shape") or not hasattr(value, "dtype"):
            raise Broken(f"In {call} info[{key!r}] is a {type(value).__name__}, not an array of {num_envs} rows.")
        if getattr(value.dtype, "kind", "f") == "O":
            raise Broken(f"In {call} info[{key!r}] is an array of Python objects, not of numbers.")
        if len(value.shape) == 0 or value.shape[0] != num_envs:
            raise Broken(f"In {call} info[{key!r}] has shape {tuple(value.shape)}; its first axis must be {num_envs}.")
        is_mask = key.startswith("_") and key[1:] in info
        if is_mask and (value.shape != (num_envs,) or value.dtype != np.bool_):
            raise Broken(f"In {call} the mask info[{key!r}] is {value.dtype}{value.shape}; not {num_envs} bools.")


def episode_statistics_add_up(subject: Subject, case: Case) -> None:
    """Where an episode ended, and only there, `episode` has its return r, length l and seconds t."""
    player = subject.player(case).play()
    if any(m.done.any() for m in player.moments) and not any("episode" in m.info for m in player.moments):
        raise NotOffered("info never has 'episode'; wrap the batch to count returns.")
    total = np.zeros((case.num_envs, *seats_axis(player.env)))
    length = np.zeros(case.num_envs, np.int64)
    for k, moment in enumerate(player.moments):
        total[moment.began], length[moment.began] = 0, 0
        total[~moment.began] += moment.reward[~moment.began]
        length += ~moment.began
        _check_episode(k, moment.info, moment.done, total, length)
        total[moment.done], length[moment.done] = 0, 0


def _check_episode(k: int, info: dict[str, Any], done: np.ndarray, total: np.ndarray, length: np.ndarray) -> None:
    if not done.any():
        if "episode" in info:
            raise Broken(f"info has 'episode' in step {k + 1}, in which no episode ended.")
        return
    if "episode" not in info or "_episode" not in info:
        raise Broken(f"An episode ended in step {k + 1}, but info has no 'episode' and '_episode': {sorted(info)}.")
    episode, mask = info["episode"], np.asarray(info["_episode"])
    if not np.array_equal(mask, done):
        raise Broken(f"In step {k + 1} '_episode' is {mask}, but episodes ended in {done}.")
    if not {"r", "l", "t"} <= set(episode):
        raise Broken(f"info['episode'] has {sorted(episode)}; it must have r, l and t.")
    for lane in np.flatnonzero(done):
        r, (steps, seconds) = np.asarray(episode["r"][lane]), (float(episode[name][lane]) for name in ("l", "t"))
        if steps != length[lane]:
            told = f"info['episode']['l'] says {steps:.0f}"
            raise Broken(f"Lane {lane} ended in step {k + 1} after {length[lane]} steps; {told}.")
        # rewards are handed out as float32, and the batch may have summed what they were before
        if r.shape != total[lane].shape or not np.allclose(r, total[lane], rtol=1e-4, atol=1e-5 * length[lane]):
            raise Broken(
                f"Lane {lane} ended in step {k + 1} with rewards that sum to {in_words(total[lane])}; "
                f"info['episode']['r'] says {in_words(r)}."
            )
        if not seconds >= 0:
            raise Broken(f"Lane {lane} ended in step {k + 1}; its episode took {seconds} seconds.")


def the_action_mask_allows_something(subject: Subject, case: Case) -> None:
    """With `has_action_mask`, every reset and step delivers `action_mask` [B, A], and every lane has a move left."""
    env = subject.batch(case.num_envs)
    if not getattr(env, "has_action_mask", False):
        raise NotOffered("The lanes forbid no action: has_action_mask is not set.")
    player = subject.player(case)
    _check_mask(env, player.first_info, "reset()")
    for k in range(case.num_steps):
        _check_mask(env, player.step(player.choose()).info, f"step {k + 1}")


def _check_mask(env: VectorEnv, info: dict[str, Any], call: str) -> None:
    if "action_mask" not in info:
        raise Broken(f"{call} delivered no info['action_mask'] though has_action_mask is set.")
    mask = as_array(info["action_mask"])
    seats = seats_axis(env)
    wanted = (env.num_envs, *seats, num_actions(getattr(env, "seat_action_space", env.single_action_space)))
    if mask.shape != wanted or mask.dtype != np.bool_:
        raise Broken(f"{call} delivered an action_mask {mask.dtype}{mask.shape}; it must be bool{wanted}.")
    for lane, row in enumerate(mask):
        if not all(part.any() for part in parts_of(split_mask(env.single_action_space, row))):
            raise Broken(f"After {call} the action_mask of lane {lane} forbids every action: {row}.")
