"""What hockey adds to training: games against both bots at every evaluation, and the rink's symmetry as more data.

These objects fit the hooks of the trainer by their methods alone; the world does not import it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.agents.offpolicy import Mirror
from shoal.errors import ConfigError
from shoal.worlds.hockey.batch import hockey
from shoal.worlds.hockey.evaluation import OPPONENTS, both_sides, play_games, summary
from shoal.worlds.hockey.mirror import action_signs, obs_signs

EVAL_GAMES = 200


def build_hooks(batch: Any, config: Any, *, mirror: bool = False) -> dict[str, Any]:
    """Fields of the trainer's hooks. `mirror`: half of what is learned from is turned upside down."""
    added: list[Any] = [WinRates(config.eval_every, config.env)]
    if mirror:
        added.append(Symmetry(batch))
    return {"callbacks": tuple(added)}


class Symmetry:
    """Lets an agent with a replay memory learn from mirrored transitions too."""

    def __init__(self, batch: Any) -> None:
        self.mirror = Mirror(
            obs_signs(batch.single_observation_space.shape[-1]), action_signs(batch.single_action_space.shape[-1])
        )

    def begin(self, loop: Any) -> None:
        if not hasattr(loop.agent, "mirror"):
            raise ConfigError(f"{type(loop.agent).__name__} keeps no transitions, so it cannot mirror them. Use SAC.")
        loop.agent.mirror = self.mirror

    def after_iteration(self, loop: Any) -> None:
        """Nothing to do in between."""


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
