"""What hockey adds to training: games against both bots at every evaluation, and the rink's symmetry as more data.

These objects fit the hooks of the trainer by their methods alone; the world does not import it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.agents.n_step import Steps
from shoal.agents.offpolicy import Mirror
from shoal.errors import ConfigError
from shoal.worlds.hockey import curriculum as curriculum_file
from shoal.worlds.hockey.batch import hockey
from shoal.worlds.hockey.evaluation import OPPONENTS, both_sides, play_games, summary
from shoal.worlds.hockey.mirror import action_signs, mirrored_choices, obs_signs
from shoal.worlds.hockey.phases import Phases
from shoal.worlds.hockey.pool import Mixture
from shoal.worlds.hockey.versus import VersusBatch

EVAL_GAMES = 200


def build_hooks(
    batch: Any,
    config: Any,
    *,
    curriculum: Any = None,
    self_play: float = 0.0,
    pool_every: int = 100_000,
    mirror: bool = False,
    both_players: bool = False,
) -> dict[str, Any]:
    """Fields of the trainer's hooks.

    Args:
        curriculum: phases, as `shoal.worlds.hockey.curriculum` reads them; a file's content or its name.
        self_play: share of games against itself and past policies; the others are against both bots.
        pool_every: environment steps between policies that join the pool.
        mirror: half of what is learned from is turned upside down.
        both_players: learn from the other player's transitions too, where a policy sits there.
    """
    recorders: list[Any] = []
    callbacks: list[Any] = [WinRates(config.eval_every, config.env)]
    if mirror:
        callbacks.append(Symmetry(batch))
    if both_players:
        recorders.append(OtherSeat())
    phases = _phases(curriculum, self_play)
    if phases is None:
        return {"recorders": tuple(recorders), "callbacks": tuple(callbacks)}
    season = Phases(phases, pool_every)
    return {
        "recorders": (*recorders, season),
        "callbacks": (season, *callbacks),
        "curriculum": season,
        "stop_rules": (season,),
    }


def _phases(curriculum: Any, self_play: float) -> list[curriculum_file.Phase] | None:
    """The phases of a curriculum, or one endless phase of self-play, or none at all."""
    if not 0.0 <= self_play <= 1.0:
        raise ConfigError(f"self_play={self_play} is no share. It must lie between 0 and 1.")
    if curriculum is not None:
        if self_play:
            raise ConfigError("self_play is for training without a curriculum, which names its own opponents.")
        values, source, folder = curriculum_file.load(curriculum)
        return curriculum_file.read(values, source, folder)
    if not self_play:
        return None
    bots = (1.0 - self_play) / 2
    opponents = Mixture(weak=bots, strong=bots, learner=self_play / 5, pool=self_play * 4 / 5)
    return [curriculum_file.endless_phase("self-play", opponents)]


class Symmetry:
    """Lets an agent with a replay memory learn from mirrored transitions too."""

    def __init__(self, batch: Any) -> None:
        table = getattr(batch, "table", None)
        actions = mirrored_choices(table) if table is not None else action_signs(batch.single_action_space.shape[-1])
        self.mirror = Mirror(obs_signs(batch.single_observation_space.shape[-1]), actions)

    def begin(self, loop: Any) -> None:
        if not hasattr(loop.agent, "mirror"):
            raise ConfigError(f"{type(loop.agent).__name__} keeps no transitions, so it cannot mirror them. Use SAC.")
        loop.agent.mirror = self.mirror

    def after_iteration(self, loop: Any) -> None:
        """Nothing to do in between."""


class OtherSeat:
    """Recorder: player 2's steps, as more experience for an agent with a replay memory."""

    def begin(self, loop: Any) -> None:
        if not isinstance(loop.batch, VersusBatch) or not hasattr(loop.agent, "learn_also_from"):
            raise ConfigError("both_players needs an agent with a replay memory, and lanes with --opponent pool.")
        self._batch, self._agent = loop.batch, loop.agent
        self._seen: list[Any] = []
        loop.agent.learn_also_from(self.steps)

    def after_step(self, t: int, rollout: Any, info: dict[str, Any]) -> None:
        self._seen.append(self._batch.other)

    def steps(self, rollout: Any) -> Steps:
        """The rollout as player 2 saw it."""
        obs, action, reward, next_obs, valid = map(np.stack, zip(*self._seen, strict=True))
        self._seen.clear()
        if self._batch.table is not None:  # which choice an action stands for; not every opponent uses the same table
            distance = np.abs(action[:, :, None] - self._batch.table).max(-1)
            action, valid = distance.argmin(-1)[..., None], valid & (distance.min(-1) < 1e-6)
        mask, next_mask = self._agent.all_allowed(*reward.shape)
        reward = np.float32(self._agent.config.reward_scale) * reward.astype(np.float32)
        terminated, truncated = rollout.terminated.copy(), rollout.truncated.copy()
        action = action.astype(np.float32)
        return Steps(obs, action, reward, terminated, truncated, next_obs, mask, next_mask, valid)


class WinRates:
    """Callback: games against both bots, as many from either side, at every evaluation."""

    def __init__(self, every: int, env: dict[str, Any], games: int = EVAL_GAMES) -> None:
        self.every, self.games, self._before = every, games, 0
        self.options = {name: value for name, value in env.items() if name not in ("opponent", "player", "starter")}

    def after_iteration(self, loop: Any) -> dict[str, float] | None:
        due = self.every > 0 and loop.step // self.every > self._before // self.every
        self._before = loop.step
        if not due and loop.step < loop.config.total_steps:
            return None
        with loop.clock("evaluation"):
            return self.measure(loop.agent)

    def begin(self, loop: Any) -> None:
        self._before = loop.step

    def measure(self, agent: Any) -> dict[str, float]:
        """Shares won against each bot, under names to log."""
        found: dict[str, float] = {}
        for opponent in OPPONENTS:
            batch = hockey(self.games, **{**self.options, "opponent": opponent, "starter": both_sides(self.games)})
            try:
                result = summary(play_games(batch, Greedy(agent), self.games, seed=EVAL_SEED))
            finally:
                batch.close()
            found |= {f"eval/won_{opponent}": result["won"], f"eval/lost_{opponent}": result["lost"]}
        return found


EVAL_SEED = 1 << 66


class Greedy:
    """An agent at its best, as the games of an evaluation ask it."""

    def __init__(self, agent: Any) -> None:
        self.agent = agent
        self._state: Any = None

    def __call__(self, obs: np.ndarray, info: dict[str, Any]) -> Any:
        act = self.agent.act_batch(obs, deterministic=True, state=self._state)
        self._state = act.state
        return act.action

    def forget(self, ended: np.ndarray) -> None:
        if self._state is not None:
            self._state = self._state.clone()
            self._state[np.flatnonzero(ended)] = 0.0
