"""One seat of the rink; who sits in the other is drawn for every lane at the start of its episodes.

The opponent may be nobody, a bot, the learner itself as it was a moment ago, or any policy of a pool. All opponents of
a step are asked in as few calls as there are different policies among the lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from shoal.errors import ConfigError
from shoal.vector.batch import Batch, State, Step
from shoal.vector.seeding import lane_keys, mix
from shoal.vector.spaces import as_actions, check_action_range
from shoal.worlds.hockey.constants import MODE_NAMES
from shoal.worlds.hockey.tables import action_table

Policy = Callable[[np.ndarray], np.ndarray]
"""From observations [N, D] to continuous actions [N, A]."""
NOBODY, WEAK, STRONG, FIRST_POLICY = range(4)
"""Numbers of opponents; the policies follow from the last one on."""
_SEATS = np.array([3, 1, 2])  # what the rink calls nobody, weak and strong; a policy's seat is 0
_BOTS = {"none": NOBODY, "weak": WEAK, "strong": STRONG}
PARTS = ("reward_closeness_to_puck", "reward_touch_puck", "reward_puck_direction")


@dataclass(frozen=True)
class Shaping:
    """What is added to the reward: weights of the three parts that the rink reports, and of the outcome (1 or -1)."""

    closeness: float = 0.0
    touch: float = 0.0
    direction: float = 0.0
    outcome: float = 0.0


class Other(NamedTuple):
    """The latest step as player 2 saw it, [B, ...]; `valid` where a policy sat there, whose actions are known."""

    obs: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    next_obs: np.ndarray
    valid: np.ndarray


class VersusBatch(Batch):
    """Lanes of the rink as player 1 sees them. `set_opponents`, `set_modes` and `shaping` may change between steps."""

    def __init__(
        self,
        rink: Any,
        opponent: str,
        actions: str | None,
        mode: str = "NORMAL",
    ) -> None:
        """`rink`: lanes with both seats open. `opponent`: none, weak, strong, or mixed. `actions`: a table's name."""
        self.rink = rink
        two, self.action_width = rink.single_observation_space, rink.single_action_space.shape[-1]
        self.table = None if actions is None else action_table(actions, self.action_width == 4)
        own: gym.Space = gym.spaces.Box(-1.0, 1.0, (self.action_width,), np.float32)
        if self.table is not None:
            own = gym.spaces.Discrete(len(self.table))
        super().__init__(
            rink.num_envs,
            gym.spaces.Box(-np.inf, np.inf, two.shape[1:], np.float32),
            own,
            autoreset_mode=rink.autoreset_mode,
            copy=rink.copy,
            metadata=rink.metadata,
        )
        B = self.num_envs
        self.hold = int(rink.kernel.values["hold"])
        self.policies: list[Policy] = []
        self.who = np.zeros(B, np.int64)
        self.shaping = Shaping()
        self.other: Other | None = None
        self._two = rink.empty_step()
        self._over = np.zeros(B, np.bool_)  # lanes whose episode ended in the latest step
        self._both = np.zeros((B, 2, self.action_width), np.float32)
        self._keys, self._episode = np.zeros(B, np.uint64), np.zeros(B, np.uint64)
        if opponent not in (*_BOTS, "mixed"):
            raise ConfigError(
                f"opponent={opponent!r} cannot play here. Use 'none', 'weak', 'strong', 'mixed' or 'pool'."
            )
        bots = (WEAK, STRONG) if opponent == "mixed" else (_BOTS[opponent],)
        self.set_opponents([], [float(bot in bots) for bot in (NOBODY, WEAK, STRONG)])
        self.set_modes([(mode, 1.0)])

    # ------------------------------------------------------------------ who plays, and what

    def set_opponents(self, policies: Sequence[Policy], weights: Sequence[float]) -> None:
        """From now on an episode's opponent is drawn by weights [3 + policies]: nobody, weak, strong, the policies."""
        shares = np.array(weights, np.float64)
        if len(shares) != FIRST_POLICY + len(policies) or not shares.sum() > 0 or (shares < 0).any():
            raise ConfigError(f"The weights of the opponents {shares.tolist()} cannot be drawn from.")
        self.policies, self._opponent_levels = list(policies), np.cumsum(shares / shares.sum())

    def set_modes(self, modes: Sequence[tuple[str, float]]) -> None:
        """From now on an episode's mode is drawn from (name, weight) pairs."""
        self._mode_codes = np.array([MODE_NAMES.index(name) for name, _ in modes])
        weights = np.array([weight for _, weight in modes], np.float64)
        self._mode_levels = np.cumsum(weights / weights.sum())

    @property
    def lane_state(self) -> np.ndarray:
        """The records of the rink's lanes, [B]."""
        return self.rink.lane_state

    # ------------------------------------------------------------------ the contract

    def _reset_lanes(self, out: Step, seed: Any, mask: np.ndarray | None, options: dict[str, Any]) -> dict[str, Any]:
        lanes = np.arange(self.num_envs) if mask is None else np.flatnonzero(mask)
        if seed is not None or not self._was_reset:
            self._keys[lanes] = lane_keys(seed, self.num_envs)[lanes]
            self._episode[lanes] = 0
        else:
            self._episode[lanes] += np.uint64(1)
        self.rink.lane_state["mode"][lanes] = self._draw(lanes, 1, self._mode_levels, self._mode_codes)
        info = self.rink.reset_into(self._two, seed=seed, options=options)
        self._seat(lanes)
        self._over[lanes] = False
        out.obs[lanes] = self._two.obs[lanes, 0]
        return info

    def _step_lanes(self, action: Any, out: Step) -> dict[str, Any]:
        action = as_actions(action, self.single_action_space, self.num_envs)
        if self.table is not None:
            check_action_range(action, self.single_action_space)
            action = self.table[action]
        both, two = self._both, self._two
        both[:, 0] = action
        played = self._ask_opponents(two.obs[:, 1])
        before = two.obs[:, 1].copy()
        info = dict(self.rink.step_into(both, two))
        ended = two.terminated | two.truncated
        out.terminated[:], out.truncated[:] = two.terminated, two.truncated
        final = info.get("final_info", {})
        parts = {name: np.where(ended, final[name], info[name]) if final else info[name] for name in _NEEDED}
        out.reward[:] = two.reward + self._shaped(parts, ended)
        others_reward = parts["opponent_reward"] + self._shaped(parts, ended, "opponent_")
        next_obs = two.obs[:, 1].copy()
        if ended.any() and self.autoreset_mode == AutoresetMode.SAME_STEP:
            lanes = np.flatnonzero(ended)
            out.final_obs[lanes] = two.final_obs[lanes, 0]
            next_obs[lanes] = two.final_obs[lanes, 1]
            info["final_obs"] = out.final_obs
            self._begin_episodes(lanes)
        elif self._over.any() and self.autoreset_mode == AutoresetMode.NEXT_STEP:
            self._begin_episodes(np.flatnonzero(self._over))
        self._over[:] = ended
        self.other = Other(before, both[:, 1].copy(), others_reward, next_obs, played)
        out.obs[:] = two.obs[:, 0]
        return info

    def _get_state(self) -> State:
        inner = {f"rink.{name}": array for name, array in self.rink.get_state().items()}
        own = {"keys": self._keys, "episode": self._episode, "who": self.who, "over": self._over, "obs": self._two.obs}
        own["theirs"] = self._both[:, 1]
        return inner | {name: array.copy() for name, array in own.items()}

    def _set_state(self, state: State) -> None:
        self.rink.set_state({k.removeprefix("rink."): v for k, v in state.items() if k.startswith("rink.")})
        self._keys[:], self._episode[:], self.who[:] = state["keys"], state["episode"], state["who"]
        self._over[:], self._two.obs[:], self._both[:, 1] = state["over"], state["obs"], state["theirs"]

    def close_extras(self, **kwargs: Any) -> None:
        self.rink.close()

    # ------------------------------------------------------------------ episodes and opponents

    def _draw(self, lanes: np.ndarray, salt: int, levels: np.ndarray, values: np.ndarray) -> np.ndarray:
        """A value for each of the lanes, from their own streams: lane, episode and salt decide."""
        with np.errstate(over="ignore"):
            keys = mix(mix(self._keys[lanes] + np.uint64(salt)) + self._episode[lanes])
        uniforms = (keys >> np.uint64(11)).astype(np.float64) / 2.0**53
        return values[np.minimum(np.searchsorted(levels, uniforms, side="right"), len(values) - 1)]

    def _begin_episodes(self, lanes: np.ndarray) -> None:
        """New opponents for lanes that have just been reset; again, if their mode changes."""
        self._episode[lanes] += np.uint64(1)
        modes = self._draw(lanes, 1, self._mode_levels, self._mode_codes)
        changed = lanes[modes != self.lane_state["mode"][lanes]]
        if len(changed):
            self.lane_state["mode"][lanes] = modes
            mask = np.zeros(self.num_envs, np.bool_)
            mask[changed] = True
            self.rink.reset_into(self._two, options={"reset_mask": mask})
        self._seat(lanes)

    def _seat(self, lanes: np.ndarray) -> None:
        """Draw opponents and put them into the second seat."""
        self.who[lanes] = self._draw(lanes, 2, self._opponent_levels, np.arange(len(self._opponent_levels)))
        seats = np.where(self.who[lanes] < FIRST_POLICY, _SEATS[np.minimum(self.who[lanes], 2)], 0)
        self.lane_state["seat"][lanes, 1] = self.lane_state["playing"][lanes, 1] = seats

    def _ask_opponents(self, obs: np.ndarray) -> np.ndarray:
        """Fill in the actions of policies, one call for each; returns the lanes that have one, [B] bool.

        One that was trained to hold its actions for longer than a step here lasts is not asked in between.
        """
        played = self.who >= FIRST_POLICY
        self._both[~played, 1] = 0.0
        if played.any():
            age = self.lane_state["t"]
            for who in np.unique(self.who[played]):
                policy = self.policies[min(who - FIRST_POLICY, len(self.policies) - 1)]
                lanes = np.flatnonzero((self.who == who) & (age % getattr(policy, "hold", 1) < self.hold))
                if len(lanes):
                    self._both[lanes, 1] = policy(obs[lanes])
        return played

    def _shaped(self, parts: dict[str, np.ndarray], ended: np.ndarray, whose: str = "") -> np.ndarray | float:
        s = self.shaping
        if s == Shaping():
            return 0.0
        weights = zip((s.closeness, s.touch, s.direction), PARTS, strict=True)
        weighted = sum(weight * parts[whose + name] for weight, name in weights)
        return (weighted + s.outcome * np.where(ended, parts[f"{whose}winner"], 0)).astype(np.float32)


_NEEDED = (*PARTS, "winner", *(f"opponent_{name}" for name in (*PARTS, "winner", "reward")))
