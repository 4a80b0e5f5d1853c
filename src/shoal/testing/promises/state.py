"""State is a value."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.testing.case import Case
from shoal.testing.findings import Broken, calls
from shoal.testing.player import Moment, Player
from shoal.testing.subject import Subject, demand_attributes
from shoal.testing.trees import difference, keep


def state_is_a_value(subject: Subject, case: Case) -> None:
    """`set_state(get_state())` goes back exactly, in the same batch and in a new one, as often as one likes."""
    env = demand_attributes(subject.batch(case.num_envs), "get_state", "set_state")
    player = subject.player(case).play(case.num_steps // 2)
    player.choose()  # DISABLED: bring ended lanes to life before saving
    with calls("get_state"):
        state = env.get_state()
    _check_plain(state)
    saved = keep(state)
    half = len(player.moments)
    player.play(max(1, case.num_steps - half))
    future = player.moments[half:]
    if difference(keep(state), saved):
        raise Broken("Stepping changed what get_state() had returned: the value is not the caller's.")
    _replay(env, state, player, half, future, "the same batch")
    with subject.unused(case.num_envs) as fresh:
        if fresh is not None:
            _replay(fresh, state, player, half, future, "a new batch that was never reset")


def _check_plain(state: object) -> None:
    if not isinstance(state, dict):
        raise Broken(f"get_state() returned a {type(state).__name__}; it must be a dict of arrays.")
    for key, value in state.items():
        if not isinstance(value, np.ndarray) or value.dtype == object:
            raise Broken(f"get_state()[{key!r}] is a {type(value).__name__} that is no plain array.")


def _replay(env: Any, state: dict, player: Player, half: int, future: list[Moment], where: str) -> None:
    with calls(f"set_state in {where}"):
        env.set_state(state)
    for k, moment in enumerate(future, start=half):
        which, _ = player.resets.get(k, (None, None))
        if which is not None and k > half:
            env.reset(options={"reset_mask": which})
        with calls(f"step after set_state in {where}"):
            outcome = env.step(moment.action)[:4]
        again = dict(zip(("obs", "reward", "terminated", "truncated"), keep(tuple(outcome)), strict=True))
        found = difference(again, moment.outcome)
        if found:
            raise Broken(f"Step {k - half + 1} after set_state() in {where} differs from the first time: {found}")
