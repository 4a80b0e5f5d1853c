"""A small batch in array code, for tests of agents and the loop: walk on a line, stay near its middle.

The lane ends (terminated) beyond 2.0 and is cut off (truncated) after `limit` steps.
"""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from shoal.seeding import lane_keys, mix
from shoal.vector.batch import Batch

FLOAT = np.float32


class Walk(Batch):
    """Observation: position, and clock in 0..1. `actions`: discrete (3), multi (3 x 2), or box; `obs`: box or dict."""

    def __init__(self, num_envs, actions="discrete", obs="box", masked=False, limit=8, poison=None):
        box = gym.spaces.Box(-10.0, 10.0, (2,), FLOAT)
        space = gym.spaces.Dict(place=gym.spaces.Box(-10.0, 10.0, (1,), FLOAT), clock=gym.spaces.Discrete(limit + 1))
        moves = {
            "discrete": gym.spaces.Discrete(3, start=1),
            "multi": gym.spaces.MultiDiscrete([3, 2]),
            "box": gym.spaces.Box(-1.0, 1.0, (1,), FLOAT),
        }
        self.limit, self.actions, self.is_dict, self.poison = limit, actions, obs == "dict", poison
        super().__init__(num_envs, space if self.is_dict else box, moves[actions], has_action_mask=masked)

    def _draw(self, lanes):
        self.keys[lanes] = mix(self.keys[lanes])
        return (self.keys[lanes] >> np.uint64(40)).astype(FLOAT) / FLOAT(2**23) - 1

    def _begin(self, lanes):
        self.place[lanes], self.clock[lanes], self.total[lanes] = self._draw(lanes), 0, 0.0

    def _observe(self, target, lanes):
        if self.is_dict:
            target["place"][lanes, 0], target["clock"][lanes] = self.place[lanes], self.clock[lanes]
        else:
            target[lanes, 0], target[lanes, 1] = self.place[lanes], self.clock[lanes] / FLOAT(self.limit)

    def _fill_mask(self, out):
        if out.action_mask is not None:  # never further outwards beyond 1.0
            out.action_mask[:] = True
            out.action_mask[:, 0] = self.place > -1.0
            out.action_mask[:, 2] = self.place < 1.0

    def _reset_lanes(self, out, seed, mask, options):
        if not hasattr(self, "keys") or seed is not None:
            self.keys = lane_keys(seed, self.num_envs)
            self.place, self.total = np.zeros((2, self.num_envs), FLOAT)
            self.clock = np.zeros(self.num_envs, np.int64)
            self.steps = np.zeros(1, np.int64)
        lanes = np.arange(self.num_envs) if mask is None else np.flatnonzero(mask)
        self._begin(lanes)
        self._observe(out.obs, lanes)
        self._fill_mask(out)
        return {}

    def _step_lanes(self, action, out):
        action = np.asarray(action)
        move = {"discrete": lambda: action - 2, "multi": lambda: (action[:, 0] - 1) * (1 + action[:, 1])}
        move["box"] = lambda: 3 * action[:, 0]
        self.place += FLOAT(0.3) * move[self.actions]().astype(FLOAT)
        self.clock += 1
        self.steps += 1
        out.reward[:] = 1 - np.abs(self.place)
        self.total += out.reward
        out.terminated[:] = np.abs(self.place) > 2
        out.truncated[:] = (self.clock >= self.limit) & ~out.terminated
        if self.poison is not None and self.steps[0] == self.poison[0]:
            out.reward[self.poison[1]] = np.nan
        done = out.terminated | out.truncated
        lanes, info = np.flatnonzero(done), {}
        if len(lanes):
            info = {
                "episode": {"r": self.total.copy(), "l": self.clock.copy(), "t": np.zeros(self.num_envs)},
                "_episode": done,
            }
            self._observe(out.final_obs, lanes)
            self._begin(lanes)
        self._observe(out.obs, np.arange(self.num_envs))
        self._fill_mask(out)
        return info

    def _get_state(self):
        return {name: getattr(self, name).copy() for name in ("keys", "place", "total", "clock", "steps")}

    def _set_state(self, state):
        for name, array in state.items():
            setattr(self, name, array.copy())
