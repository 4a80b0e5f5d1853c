"""Masks are first class."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv

from shoal.testing.case import Case
from shoal.testing.findings import Broken, NotOffered
from shoal.testing.player import split_mask
from shoal.testing.subject import Subject
from shoal.testing.trees import as_array
from shoal.vector.spaces import num_actions


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
    wanted = (env.num_envs, num_actions(env.single_action_space))
    if mask.shape != wanted or mask.dtype != np.bool_:
        raise Broken(f"{call} delivered an action_mask {mask.dtype}{mask.shape}; it must be bool{wanted}.")
    for lane, row in enumerate(mask):
        parts = split_mask(env.single_action_space, row)
        if not all(part.any() for part in (parts if isinstance(parts, tuple) else (parts,))):
            raise Broken(f"After {call} the action_mask of lane {lane} forbids every action: {row}.")
