"""Any PettingZoo environment, parallel or AEC, as lanes with seats."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from shoal.errors import ConfigError, missing_extra
from shoal.registry import load, make
from shoal.seeding import Seeds
from shoal.vector.batch import Array, Batch, State, Step
from shoal.vector.spaces import seated, spaces_of_seats

try:
    from pettingzoo import AECEnv, ParallelEnv
except ImportError:
    raise missing_extra("pettingzoo", "pettingzoo", "The bridge to PettingZoo") from None

MakesZoo = Callable[[], Any] | str
"""What makes an `AECEnv` or a `ParallelEnv`."""
Info = dict[str, np.ndarray]


def seat_batch(env: MakesZoo, num_envs: int = 1, *, backend: str = "auto", **options: Any) -> Batch:
    """Lanes with a seat for each possible agent, in the order in which PettingZoo has them.

    Agents may differ in how many numbers they observe and in how many actions they have: short observations are filled
    up with zeros, and the mask forbids what an agent does not have.

    Args:
        env: a function or class that makes an `AECEnv` or a `ParallelEnv`, or its name "package.module:env".
        backend, options: what `shoal.make` takes for environments, e.g. `num_workers`.
    """
    return ZooBatch(make(partial(SeatLane, env), num_envs, backend=backend, **options))


class SeatLane(gym.Env):
    """All agents of a PettingZoo environment side by side: observations [S, *obs], actions [S, ...].

    What a lane with seats has beyond that is in the infos: `reward_of` and `present` [S], `turn`, `mask` [S, A].
    """

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, env: MakesZoo) -> None:
        self.zoo: Any = (load(env) if isinstance(env, str) else env)()
        if not isinstance(self.zoo, AECEnv | ParallelEnv):
            raise ConfigError(f"{env!r} made a {type(self.zoo).__name__}, not an environment of PettingZoo.")
        self.names = list(self.zoo.possible_agents)
        spaces = [_plain(self.zoo.observation_space(name)) for name in self.names]
        self._own_actions = [self.zoo.action_space(name) for name in self.names]
        self.observation_space = seated(spaces, len(self.names))
        self.action_space = seated(self._own_actions, len(self.names))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, Info]:
        super().reset(seed=seed)
        if isinstance(self.zoo, ParallelEnv):
            seen, told = self.zoo.reset(seed=seed, options=options)
        else:
            self.zoo.reset(seed=seed, options=options)
            seen, told = self._look(), dict(self.zoo.infos)
        return self._join(seen), self._info({}, seen, told)

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, Info]:
        chosen = {name: self._action_of(action, seat) for seat, name in enumerate(self.names)}
        if isinstance(self.zoo, ParallelEnv):
            seen, rewards, ends, cuts, told = self.zoo.step({name: chosen[name] for name in self.zoo.agents})
        else:
            self.zoo.step(chosen[self.zoo.agent_selection])
            rewards, ends, cuts = (
                dict(part) for part in (self.zoo.rewards, self.zoo.terminations, self.zoo.truncations)
            )
            seen, told = self._look(), dict(self.zoo.infos)
            while self.zoo.agents and (ends[self.zoo.agent_selection] or cuts[self.zoo.agent_selection]):
                self.zoo.step(None)  # who is out hands in nothing, once
        over = not self.zoo.agents or all(ends[name] or cuts[name] for name in ends)
        terminated = over and any(ends.values())
        return self._join(seen), 0.0, terminated, over and not terminated, self._info(rewards, seen, told)

    def close(self) -> None:
        self.zoo.close()

    def _look(self) -> dict[str, Any]:
        return {name: self.zoo.observe(name) for name in self.zoo.agents}

    def _action_of(self, action: np.ndarray, seat: int) -> Any:
        value, space = action[seat], self._own_actions[seat]
        if isinstance(space, gym.spaces.Discrete):
            return int(value)
        return np.asarray(value)[tuple(slice(n) for n in space.shape or ())].astype(space.dtype)

    def _join(self, seen: dict[str, Any]) -> np.ndarray:
        """Observations of those who are there, zeros for the others."""
        rows = np.zeros(self.observation_space.shape or (), self.observation_space.dtype)
        for seat, name in enumerate(self.names):
            if name in seen:
                obs = seen[name]["observation"] if isinstance(seen[name], dict) else seen[name]
                own: tuple[int | slice, ...] = (seat, *map(slice, np.shape(obs)))
                rows[own] = obs
        return rows

    def _info(self, rewards: dict[str, float], seen: dict[str, Any], told: dict[str, Any]) -> Info:
        info = {
            "reward_of": np.array([rewards.get(name, 0.0) for name in self.names], np.float32),
            "present": np.array([name in self.zoo.agents for name in self.names]),
        }
        if isinstance(self.zoo, AECEnv):
            at = self.names.index(self.zoo.agent_selection) if self.zoo.agents else 0
            info["turn"] = np.array(at)
        if isinstance(self.action_space, gym.spaces.MultiDiscrete) and self.action_space.nvec.ndim == 1:
            info["mask"] = np.stack([self._mask(seat, info, seen, told) for seat in range(len(self.names))])
        return info

    def _mask(self, seat: int, info: Info, seen: dict[str, Any], told: dict[str, Any]) -> np.ndarray:
        """What a seat may do, [A]: the first action alone where what it does is ignored."""
        assert isinstance(self.action_space, gym.spaces.MultiDiscrete)
        choices, own = np.arange(self.action_space.nvec.max()), self._own_actions[seat]
        if not info["present"][seat] or ("turn" in info and info["turn"] != seat):
            return choices == 0
        name = self.names[seat]
        obs, mask = seen.get(name), told.get(name, {}).get("action_mask")
        if isinstance(obs, dict) and "action_mask" in obs:
            mask = obs["action_mask"]
        allowed = choices < int(own.n)
        if mask is not None:
            allowed[: len(mask)] &= np.asarray(mask, np.bool_)
        return allowed if allowed.any() else choices == 0


class ZooBatch(Batch):
    """Lanes with seats, from lanes of `SeatLane` that are run in any way."""

    def __init__(self, lanes: Batch) -> None:
        self.lanes = lanes
        actions = spaces_of_seats(lanes.single_action_space)
        super().__init__(
            lanes.num_envs,
            spaces_of_seats(lanes.single_observation_space),
            actions,
            autoreset_mode=lanes.autoreset_mode,
            has_action_mask=isinstance(actions[0], gym.spaces.Discrete),
            copy=lanes.copy,
            metadata=lanes.metadata,
            seats=len(actions),
        )
        self._returns = np.zeros((self.num_envs, self.num_seats))
        self._over = np.zeros(self.num_envs, np.bool_)
        self._unpaid = np.zeros(self.num_envs, np.float32)

    def _reset_lanes(
        self, out: Step, seed: Seeds, mask: np.ndarray | None, options: dict[str, object]
    ) -> dict[str, Any]:
        which = np.ones(self.num_envs, np.bool_) if mask is None else mask
        self._returns[which], self._over[which] = 0.0, False
        return self._told(self.lanes.reset_into(self._inner(out), seed=seed, options=options), out, which)

    def _step_lanes(self, action: Array, out: Step) -> dict[str, Any]:
        info = self.lanes.step_into(action, self._inner(out))
        ended = out.terminated | out.truncated
        paid = info["reward_of"]
        if "final_info" in info:
            paid = np.where(ended[:, None], info["final_info"]["reward_of"], paid)
        out.reward[:] = paid
        self._returns[self._over] = 0.0
        self._returns += out.reward
        told = self._told(info, out, np.ones(self.num_envs, np.bool_))
        if "episode" in told:
            told["episode"] = {**told["episode"], "r": self._returns.copy()}
        if self.autoreset_mode == AutoresetMode.SAME_STEP:
            self._returns[ended] = 0.0
        else:
            self._over[:] = ended
        return told

    def _inner(self, out: Step) -> Step:
        return Step(out.obs, self._unpaid, out.terminated, out.truncated, out.final_obs)

    def _told(self, info: dict[str, Any], out: Step, which: np.ndarray) -> dict[str, Any]:
        """Infos without what is in rewards and masks already; masks of the lanes in `which` are written."""
        if out.action_mask is not None:
            out.action_mask[which] = info["mask"][which]
        kept = {name: value for name, value in info.items() if name.removeprefix("_") not in ("reward_of", "mask")}
        return kept if out.action_mask is None else {**kept, "action_mask": out.action_mask}

    def _get_state(self) -> State:
        own = {"returns": self._returns.copy(), "over": self._over.copy()}
        return {**{f"zoo.{name}": array for name, array in self.lanes.get_state().items()}, **own}

    def _set_state(self, state: State) -> None:
        self.lanes.set_state({n.removeprefix("zoo."): a for n, a in state.items() if n.startswith("zoo.")})
        self._returns[:], self._over[:] = state["returns"], state["over"]

    def close_extras(self, **kwargs: object) -> None:
        self.lanes.close()


def _plain(space: gym.Space) -> gym.Space:
    """An observation without its mask, as PettingZoo's games have it."""
    if isinstance(space, gym.spaces.Dict) and "observation" in space.spaces:
        return space["observation"]
    return space
