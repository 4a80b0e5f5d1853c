"""Batches that each break one promise, around a small kernel that keeps them all."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

from shoal.vector.batch import Batch, Step
from shoal.vector.kernel import Kernel, KernelBatch, i32, record
from tests.vector.kernel.seated import Plank


class Corridor(Kernel):
    """Walk left (0), wait (1) or right (2) to the far end; the wall forbids walking left; some steps slip."""

    observation_space = gym.spaces.Box(0, 20, (2,), np.float32)
    action_space = gym.spaces.Discrete(3)
    state = record(pos=i32, t=i32)
    params = {"length": 4, "max_steps": 9}

    def reset(s, p, rng):
        s.pos = rng.integers(2)
        s.t = 0

    def step(s, action, p, rng):
        if rng.uniform() < 0.9:
            s.pos = max(0, s.pos + action - 1)
        s.t += 1
        return 0.5 + s.pos, s.pos >= p.length, s.t >= p.max_steps

    def observe(s, p, out):
        out[0] = s.pos
        out[1] = s.t

    def mask(s, p, out):
        out[0] = s.pos > 0
        out[1] = True
        out[2] = True


class Slope(Kernel):
    """The same with a continuous push."""

    observation_space = gym.spaces.Box(-50, 50, (1,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (1,), np.float32)
    state = record(pos=i32, t=i32)

    def reset(s, p, rng):
        s.pos, s.t = rng.integers(3), 0

    def step(s, action, p, rng):
        s.t += 1
        if action[0] > 0.0:
            s.pos += 1
        return action[0], False, s.t >= 7

    def observe(s, p, out):
        out[0] = s.pos


class Sound(KernelBatch):
    """Keeps every promise. Uncompiled: a new one costs nothing, and these tests make many."""

    kernel_class: type[Kernel] = Corridor

    def __init__(self, num_envs: int, **options: Any) -> None:
        super().__init__(self.kernel_class, num_envs, compiled=False, **options)


class SoundSlope(Sound):
    kernel_class = Slope


class WrongType(Sound):
    def step(self, actions: Any) -> Any:
        obs, *rest = super().step(actions)
        return obs.astype(np.float64), *rest


class TwoCauses(Sound):
    def step(self, actions: Any) -> Any:
        obs, reward, terminated, truncated, info = super().step(actions)
        return obs, reward, terminated, truncated | terminated, info


class DeafToSeeds(Sound):
    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        return super().reset(seed=None, options=options)


class Crowd(Sound):
    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        return super().reset(seed=None if seed is None else seed + self.num_envs, options=options)


class SharedMetadata(Sound):
    shared: dict[str, Any] = {}

    def __init__(self, num_envs: int, **options: Any) -> None:
        super().__init__(num_envs, **options)
        self.shared.update(self.metadata)
        self.metadata = self.shared


class FalseFinalObs(Sound):
    def step(self, actions: Any) -> Any:
        obs, reward, terminated, truncated, info = super().step(actions)
        if "final_obs" in info:
            info = {**info, "final_obs": obs.copy()}
        return obs, reward, terminated, truncated, info


class PaidReset(Sound):
    over: Any = False

    def step(self, actions: Any) -> Any:
        obs, reward, terminated, truncated, info = super().step(actions)
        if self.autoreset_mode is AutoresetMode.NEXT_STEP:
            reward = np.where(self.over, np.float32(1), reward)
            self.over = terminated | truncated
        return obs, reward, terminated, truncated, info

    def reset(self, **options: Any) -> Any:
        self.over = False
        return super().reset(**options)


class ResetsAll(Sound):
    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        return super().reset(seed=seed)


class StepsTheDead(Sound):
    over: Any = None

    def step(self, actions: Any) -> Any:
        if self.autoreset_mode is AutoresetMode.DISABLED and self.over is not None and self.over.any():
            super().reset(options={"reset_mask": self.over})
        result = super().step(actions)
        self.over = result[2] | result[3]
        return result

    def reset(self, **options: Any) -> Any:
        self.over = None
        return super().reset(**options)


class ListOfDicts(Sound):
    def step(self, actions: Any) -> Any:
        *rest, info = super().step(actions)
        return *rest, {**info, "note": [{"lane": lane} for lane in range(self.num_envs)]}


class LongEpisodes(Sound):
    def step(self, actions: Any) -> Any:
        *rest, info = super().step(actions)
        if "episode" in info:
            info = {**info, "episode": {**info["episode"], "l": info["episode"]["l"] + 1}}
        return *rest, info


class Hoarder(Sound):
    """Keeps the reward it handed out and counts on it next time."""

    last: Any = None

    def step(self, actions: Any) -> Any:
        obs, reward, *rest = super().step(actions)
        if self.last is not None:
            reward += (self.last == 1) * np.float32(0.25)  # the kernel never pays exactly 1
        self.last = reward
        return obs, reward, *rest


class Views(Sound):
    def step(self, actions: Any) -> Any:
        obs, *rest = super().step(actions)
        if self.copy is False:
            obs = obs * 0
        return obs, *rest


class WritesElsewhere(Sound):
    last: Step | None = None

    def step_into(self, action: Any, out: Step) -> Any:
        info = super().step_into(action, out)
        if self.last is not None:
            self.last.reward[:] = -1 if self.last is not out else out.reward
        self.last = out
        return info


class ForgetsItsRandomStream(Sound):
    def _set_state(self, state: Any) -> None:
        super()._set_state({**state, "book": self.get_state()["book"] if self._was_reset else state["book"]})


class NothingAllowed(Sound):
    def step(self, actions: Any) -> Any:
        *rest, info = super().step(actions)
        if (rest[0][:, 0] == 3).any():
            info["action_mask"][rest[0][:, 0] == 3] = False
        return *rest, info


class AnyNumber(Sound):
    def step(self, actions: Any) -> Any:
        return super().step(np.resize(actions, self.num_envs) if len(actions) else np.ones(self.num_envs, np.int64))


class Clips(Sound):
    def step(self, actions: Any) -> Any:
        return super().step(np.clip(actions, 0, 2))


class NanIsZero(SoundSlope):
    def step(self, actions: Any) -> Any:
        return super().step(np.nan_to_num(actions))


class MovesBeforeItRefuses(Sound):
    """Refuses too late: the lanes before the bad one have stepped."""

    def step(self, actions: Any) -> Any:
        if len(actions) == self.num_envs > 1 and not 0 <= actions[-1] <= 2:
            super().step(np.clip(actions, 0, 2))
        return super().step(actions)


class ResetsItself(Sound):
    def step(self, actions: Any) -> Any:
        if not self._was_reset:
            self.reset()
        return super().step(actions)


class Undead(Sound):
    def close(self, **kwargs: Any) -> None:
        pass


class SoundPlank(KernelBatch):
    """Seats that keep their promises."""

    def __init__(self, num_envs: int, **options: Any) -> None:
        super().__init__(Plank, num_envs, **options)


class SpeaksForSomebodyElse(SoundPlank):
    """The turn is told wrong: who is said to wait is the one who acts."""

    def _step_lanes(self, action: Any, out: Step) -> dict[str, Any]:
        info = super()._step_lanes(action, out)
        return {**info, "turn": (info["turn"] + 1) % 3}


class NamesTheAbsent(SoundPlank):
    """The turn is that of a seat which has left."""

    def _step_lanes(self, action: Any, out: Step) -> dict[str, Any]:
        info = super()._step_lanes(action, out)
        return {**info, "turn": info["present"].argmin(1)}


class PaysTheAbsent(SoundPlank):
    """Everybody is paid, whether there or not."""

    def _step_lanes(self, action: Any, out: Step) -> dict[str, Any]:
        info = super()._step_lanes(action, out)
        out.reward[:] += 1
        return info


BREAKERS: dict[str, list[type[Batch]]] = {
    "spaces_describe_the_batch": [WrongType],
    "an_ending_has_one_cause": [TwoCauses],
    "same_seed_same_trajectory": [DeafToSeeds],
    "lanes_do_not_know_their_neighbours": [Crowd],
    "each_batch_announces_its_own_mode": [SharedMetadata],
    "same_step_gives_the_true_successor": [FalseFinalObs],
    "next_step_ignores_the_action_and_pays_nothing": [PaidReset],
    "disabled_resets_only_whom_it_is_told": [ResetsAll],
    "disabled_refuses_to_step_an_ended_lane": [StepsTheDead],
    "infos_are_dense": [ListOfDicts],
    "episode_statistics_add_up": [LongEpisodes],
    "what_step_returns_is_the_callers": [Hoarder],
    "without_copies_the_same_values": [Views],
    "step_into_writes_where_it_is_told": [WritesElsewhere],
    "state_is_a_value": [ForgetsItsRandomStream],
    "the_action_mask_allows_something": [NothingAllowed],
    "a_turn_names_a_seat_that_is_there": [NamesTheAbsent],
    "actions_of_seats_that_wait_change_nothing": [SpeaksForSomebodyElse],
    "who_has_left_stays_away_and_is_paid_nothing": [PaysTheAbsent],
    "a_wrong_number_of_actions_is_refused": [AnyNumber],
    "an_action_outside_the_space_is_refused": [Clips, MovesBeforeItRefuses],
    "a_nan_action_is_refused": [NanIsZero],
    "step_before_reset_is_refused": [ResetsItself],
    "step_after_close_is_refused": [Undead],
}
