"""Infos are dense arrays with masks, and episode statistics add up."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.testing.case import Case
from shoal.testing.findings import Broken, NotOffered
from shoal.testing.subject import Subject


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
        if isinstance(value, tuple) and key in ("final_obs",):
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
    total, length = np.zeros(case.num_envs), np.zeros(case.num_envs, np.int64)
    for k, moment in enumerate(player.moments):
        total[moment.began], length[moment.began] = 0, 0
        total += np.where(moment.began, 0, moment.reward)
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
        r, steps, seconds = (float(episode[name][lane]) for name in ("r", "l", "t"))
        if steps != length[lane]:
            told = f"info['episode']['l'] says {steps:.0f}"
            raise Broken(f"Lane {lane} ended in step {k + 1} after {length[lane]} steps; {told}.")
        # rewards are handed out as float32, and the batch may have summed what they were before
        if not np.isclose(r, total[lane], rtol=1e-4, atol=1e-5 * length[lane]):
            raise Broken(
                f"Lane {lane} ended in step {k + 1} with rewards that sum to {total[lane]:.6g}; "
                f"info['episode']['r'] says {r:.6g}."
            )
        if not seconds >= 0:
            raise Broken(f"Lane {lane} ended in step {k + 1}; its episode took {seconds} seconds.")
