"""A curriculum at work: phases, opponents and the pool of past policies, as hooks of the trainer.

One object plays several parts: it begins phases (for all lanes at once, between two iterations), notes how games end,
keeps the pool, and ends the run after the last phase. It fits the trainer's hooks by its methods alone.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch

from shoal.agents.frozen import FrozenPolicy, freeze
from shoal.agents.n_step import Steps
from shoal.errors import ConfigError
from shoal.worlds.hockey.curriculum import Phase
from shoal.worlds.hockey.pool import AFTER_LEARNER, LEARNER, Mixture, Pool, load_files, opponent_weights, score_of
from shoal.worlds.hockey.ratings import Ratings
from shoal.worlds.hockey.versus import STRONG, WEAK, Shaping, VersusBatch

RECENT = 0.98
"""Weight of the past in the shares of games won that are logged and that end phases."""
MIN_GAMES = 200
"""Games of a phase before its share of games won is believed."""


class Phases:
    """Runs through phases on lanes of `VersusBatch`."""

    def __init__(self, phases: list[Phase], pool_every: int) -> None:
        self.phases, self.pool_every = phases, pool_every
        self.index, self.finished = -1, False
        self.games = self.steps_before = 0  # finished episodes of this phase, and the step at which it began
        self.pool, self.ratings = Pool(), Ratings()
        self.won = np.full(AFTER_LEARNER + 1, 0.5)  # by nobody, weak, strong, learner; the last is all other policies
        self.won_lately = 0.5
        self._saved_pool_at = 0
        self._restored: dict[str, np.ndarray] | None = None
        self._files: list[FrozenPolicy] = []
        self._who = np.zeros(0, np.int64)  # opponents of the games under way, [B]

    @property
    def phase(self) -> Phase:
        return self.phases[self.index]

    # ------------------------------------------------------------------ hooks

    def begin(self, loop: Any) -> None:
        """Get to know the run; a resumed one is put back into its phase."""
        batch = loop.batch
        if not isinstance(batch, VersusBatch):
            raise ConfigError(
                "Curricula and self-play need lanes whose opponents can change. Make them with --opponent pool."
            )
        files = tuple(path for phase in self.phases for path, _ in phase.opponents.files)
        width = batch.single_observation_space.shape[0]  # type: ignore[index]
        self._files, self._batch = load_files(files, width, batch.action_width), batch
        if self._restored is not None:
            self.pool.load(self._restored, freeze(loop.agent, batch.table).settings)
            self._restored = None
            self._hold(loop, resumed=True)
            self._settle(loop)

    def advance(self, loop: Any) -> str | None:
        """Curriculum: the name of the phase that begins now."""
        if self.index >= 0 and not self._is_over(loop):
            return None
        if self.index + 1 == len(self.phases):
            self.finished = True
            return None
        self.index += 1
        self.games, self.steps_before, self.won_lately = 0, loop.step, 0.5
        agent, first = loop.agent, self.index == 0
        if not first and hasattr(agent, "replay"):
            agent.cut_episodes()
            if self.phase.clear_buffer:
                agent.replay.clear()
        self._hold(loop)
        self._settle(loop)
        # all lanes begin the phase together, in its mode and with its opponents
        last_row = loop.rollout.step_buffers(loop.rollout.num_steps - 1)
        loop.batch.reset_into(last_row, seed=loop.config.seed if first else None)
        self._who = loop.batch.who.copy()
        return self.phase.name

    def after_step(self, t: int, rollout: Any, info: dict[str, Any]) -> None:
        """Recorder: how games ended, and against whom."""
        if "final_info" not in info:
            return
        for lane in np.flatnonzero(info["_final_info"]):
            self._note(int(self._who[lane]), score_of(info["final_info"]["winner"][lane]))
            self.games += 1
        self._who = self._batch.who.copy()  # the next games have begun

    def after_iteration(self, loop: Any) -> dict[str, float]:
        """Callback: the pool grows, opponents and shaping follow; what to log."""
        if loop.step - self._saved_pool_at >= self.pool_every and self.phase.opponents.pool > 0:
            self.pool.add(freeze(loop.agent, loop.batch.table), loop.step)
            self._saved_pool_at = loop.step
        self._settle(loop)
        shares = {"weak": WEAK, "strong": STRONG, "itself": LEARNER, "others": AFTER_LEARNER}
        weights = opponent_weights(self.phase.opponents, self.pool)
        return {
            "curriculum/phase": float(self.index),
            "curriculum/games": float(self.games),
            "curriculum/won": self.won_lately,
            "curriculum/pool_size": float(len(self.pool.members)),
            "curriculum/rating": self.ratings.shown("learner"),
            **{
                f"curriculum/won_against_{name}": float(self.won[number])
                for name, number in shares.items()
                if sum(weights[number : None if number == AFTER_LEARNER else number + 1]) > 0
            },
        }

    def reason_to_stop(self, loop: Any) -> str | None:
        """Stop rule."""
        return f"all {len(self.phases)} phases done" if self.finished else None

    # ------------------------------------------------------------------ inside a phase

    def _is_over(self, loop: Any) -> bool:
        phase = self.phase
        if phase.episodes is not None and self.games >= phase.episodes:
            return True
        if phase.steps is not None and loop.step - self.steps_before >= phase.steps:
            return True
        return phase.win_rate is not None and self.games >= MIN_GAMES and self.won_lately >= phase.win_rate

    def _settle(self, loop: Any) -> None:
        """Bring the lanes to what the phase wants at this point: modes, opponents, shaping."""
        batch, mixture = loop.batch, self.phase.opponents
        learner = [freeze(loop.agent, batch.table)] if mixture.learner + mixture.pool > 0 else [_stand_still(batch)]
        policies = [*learner, *self._files_of(mixture), *(member.policy for member in self.pool.members)]
        batch.set_opponents(policies, opponent_weights(mixture, self.pool))
        batch.set_modes(self.phase.modes)
        schedule = self.phase.shaping
        batch.shaping = Shaping() if schedule is None else Shaping(**schedule.at(self.games))

    def _hold(self, loop: Any, resumed: bool = False) -> None:
        """Where won games pay a bonus to the steps that led to it, whole episodes are held back."""
        bonus = self.phase.bonus
        if bonus is None and (self.index == 0 or self.phases[self.index - 1].bonus is None):
            return
        if not hasattr(loop.agent, "hold_episodes"):
            raise ConfigError(f"reward_bonus needs an agent with a replay memory, not {type(loop.agent).__name__}.")
        pending = [window.pending for window in loop.agent.windows]
        loop.agent.hold_episodes(None if bonus is None else partial(self._pay_bonus, loop.agent.config.reward_scale))
        if resumed:
            for window, steps in zip(loop.agent.windows, pending, strict=True):
                window.pending = steps

    def _pay_bonus(self, scale: float, steps: Steps, lane: int, first: int, last: int) -> None:
        """The steps before the last of a won game receive the bonus, less the further back they are."""
        assert self.phase.bonus is not None
        now = self.phase.bonus.at(self.games)
        if steps.terminated[last, lane] and steps.reward[last, lane] > 0:  # a goal pays 10 to the winner
            back = np.arange(last - first)[::-1]
            paid = scale * now["win_bonus"] * now["win_discount"] ** back
            steps.reward[first:last, lane] += paid.astype(steps.reward.dtype)

    def _files_of(self, mixture: Mixture) -> list[FrozenPolicy]:
        before = sum(len(phase.opponents.files) for phase in self.phases[: self.index])
        return self._files[before : before + len(mixture.files)]

    def _note(self, who: int, score: float) -> None:
        """A game against number `who` ended."""
        kind = min(who, AFTER_LEARNER)
        self.won[kind] = RECENT * self.won[kind] + (1 - RECENT) * score
        self.won_lately = RECENT * self.won_lately + (1 - RECENT) * score
        name = {WEAK: "weak", STRONG: "strong"}.get(who)
        member = who - AFTER_LEARNER - len(self.phase.opponents.files)
        if 0 <= member < len(self.pool.members):
            self.pool.note(member, score)
            name = f"step {self.pool.members[member].step}"
        if name is not None:
            self.ratings.note("learner", name, score)

    # ------------------------------------------------------------------ persistence

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Everything, as tensors by name; ratings as a list of names beside their numbers."""
        ratings = self.ratings.state()
        names = "\n".join(ratings).encode()
        named: dict[str, np.ndarray] = {
            "counters": np.array([self.index, self.games, self.steps_before, self._saved_pool_at, int(self.finished)]),
            "won": np.array([*self.won, self.won_lately]),
            "who": self._who,
            "rated": np.array(list(names), np.uint8),
            "ratings": np.array(list(ratings.values()), np.float64).reshape(-1, 2),
            **{f"pool.{name}": array for name, array in self.pool.state().items()},
        }
        return {name: torch.from_numpy(np.array(array)) for name, array in named.items()}

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        """Go back to what `state_dict` returned; `begin` then puts the lanes into the phase."""
        arrays = {name: tensor.numpy() for name, tensor in state.items()}
        self.index, self.games, self.steps_before, self._saved_pool_at, finished = arrays["counters"].tolist()
        self.finished = bool(finished)
        self.won, self.won_lately = arrays["won"][:-1].copy(), float(arrays["won"][-1])
        self._who = arrays["who"].copy()
        names = arrays["rated"].tobytes().decode().split("\n") if len(arrays["rated"]) else []
        numbers = map(tuple, arrays["ratings"].tolist())
        self.ratings.load(dict(zip(names, numbers, strict=True)))
        self._restored = {n.removeprefix("pool."): a.copy() for n, a in arrays.items() if n.startswith("pool.")}


def _stand_still(batch: VersusBatch) -> Any:
    """The learner's place while nobody needs it."""
    return lambda obs: np.zeros((len(obs), batch.action_width), np.float32)
