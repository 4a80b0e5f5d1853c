"""What hockey adds to training: phases and their opponents, games against both bots, more data from the same games."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from functools import partial

import numpy as np
import torch

from shoal.agents.frozen import FrozenPolicy, freeze
from shoal.agents.n_step import Steps
from shoal.agents.offpolicy import Mirror, OffPolicyAgent
from shoal.agents.rollout import Rollout
from shoal.errors import ConfigError
from shoal.games.lab.experience import Mirrored, OtherSeat
from shoal.games.lab.games import summary
from shoal.games.lab.pool import Pool, Ratings, score_of
from shoal.seeding import Seed, Stream
from shoal.training.acting import Actor
from shoal.training.config import TrainConfig
from shoal.training.hooks import Callback, Hooks, Reads, Recorder
from shoal.training.loop import Loop
from shoal.trees import Tree
from shoal.vector.batch import Batch
from shoal.worlds.hockey.lab import curriculum
from shoal.worlds.hockey.lab.curriculum import Mixture, Phase
from shoal.worlds.hockey.lab.games import both_sides, play_rink
from shoal.worlds.hockey.lab.options import HockeyTraining
from shoal.worlds.hockey.lab.policies import load_fitting
from shoal.worlds.hockey.lanes.kernel import WIDTHS
from shoal.worlds.hockey.lanes.tables import action_signs, action_table, mirrored_choices, obs_signs
from shoal.worlds.hockey.lanes.versus import FIRST_POLICY, STRONG, WEAK, VersusBatch, make_lanes
from shoal.worlds.hockey.world import BOTS, HockeyOptions

RECENT = 0.98
"""Weight of the past in the shares of games won that are logged and that end phases."""
MIN_GAMES = 200
"""Games of a phase before its share of games won is believed."""

LEARNER = FIRST_POLICY
"""The number of the learner itself as it was after the last iteration; stored policies and the pool follow."""
AFTER_LEARNER = LEARNER + 1

HockeyConfig = TrainConfig[HockeyOptions, HockeyTraining]


def make_hooks(batch: Batch, config: HockeyConfig) -> Hooks:
    """All that the options of training ask for."""
    recorders: tuple[Recorder, ...] = ()
    if config.extra.both_players:
        if not isinstance(batch.pattern, VersusBatch):
            raise ConfigError("both_players needs an agent with a replay memory, and lanes with --opponent pool.")
        recorders = (OtherSeat(batch.pattern.table),)
    callbacks: tuple[Callback, ...] = (WinRates(config),)
    if config.extra.mirror:
        callbacks += (Mirrored(mirror_of(config.env)),)
    phases = _phases(config.extra)
    if phases is None:
        return Hooks(recorders, callbacks)
    season = Phases(phases, config.extra.pool_every)
    return Hooks((*recorders, season), (season, *callbacks), season, (season,))


def _phases(training: HockeyTraining) -> list[Phase] | None:
    """The phases of a curriculum, or one endless phase of self-play, or none at all."""
    if training.curriculum is not None:
        return curriculum.read(*curriculum.load(training.curriculum))
    share = training.self_play
    if not share:
        return None
    bots = (1.0 - share) / 2
    opponents = Mixture(weak=bots, strong=bots, learner=share / 5, pool=share * 4 / 5)
    return [curriculum.endless_phase("self-play", opponents)]


def mirror_of(options: HockeyOptions) -> Mirror:
    """Upper and lower half of the rink change places."""
    obs_width, action_width = WIDTHS[options.keep_mode]
    actions = action_signs(action_width)
    if options.table is not None:
        actions = mirrored_choices(action_table(options.table, options.keep_mode))
    return Mirror(obs_signs(obs_width), actions)


class Phases:
    """Runs through phases on lanes of `VersusBatch`.

    One object plays several parts: it begins phases (for all lanes at once, between two iterations), notes how games
    end, keeps the pool of past policies, and ends the run after the last phase.
    """

    reads = Reads(final=("winner", "opponent"))

    def __init__(self, phases: list[Phase], pool_every: int) -> None:
        self.phases, self.pool_every = phases, pool_every
        self.index, self.finished = -1, False
        self.games = self.steps_before = 0  # finished episodes of this phase, and the step at which it began
        self.pool, self.ratings = Pool(), Ratings()
        self.won = np.full(AFTER_LEARNER + 1, 0.5)  # by nobody, weak, strong, learner; the last is all other policies
        self.won_lately = 0.5
        self._saved_pool_at = 0
        self._restored: dict[str, np.ndarray] | None = None
        self._files: dict[str, FrozenPolicy] = {}

    @property
    def phase(self) -> Phase:
        return self.phases[self.index]

    # ------------------------------------------------------------------ hooks

    def begin(self, loop: Loop) -> None:
        """Get to know the run; a resumed one is put back into its phase."""
        batch = loop.batch.pattern
        if not isinstance(batch, VersusBatch):
            raise ConfigError(
                "Curricula and self-play need lanes whose opponents can change. Make them with --opponent pool."
            )
        self._batch = batch
        files = [path for phase in self.phases for path, _ in phase.opponents.files]
        self._files = {path: load_fitting(path, batch.obs_width, batch.action_width) for path in files}
        if self._restored is not None:
            self.pool.load(self._restored, freeze(loop.agent, batch.table).settings)
            self._restored = None
            self._hold(loop, resumed=True)
            self._settle(loop)

    def advance(self, loop: Loop) -> str | None:
        """Curriculum: the name of the phase that begins now."""
        if self.index >= 0 and not self._is_over(loop):
            return None
        if self.index + 1 == len(self.phases):
            self.finished = True
            return None
        self.index += 1
        self.games, self.steps_before, self.won_lately = 0, loop.step, 0.5
        agent, first = loop.agent, self.index == 0
        if not first and isinstance(agent, OffPolicyAgent):
            agent.cut_episodes()
            if self.phase.clear_buffer:
                agent.replay.clear()
        self._hold(loop)
        self._settle(loop)
        # all lanes begin the phase together, in its mode and with its opponents
        last_row = loop.rollout.step_buffers(loop.rollout.num_steps - 1)
        loop.batch.reset_into(last_row, seed=loop.config.seed if first else None)
        return self.phase.name

    def after_step(self, t: int, rollout: Rollout, info: dict[str, Tree]) -> None:
        """Recorder: how games ended, and against whom."""
        if "final_info" not in info:
            return
        final = info["final_info"]
        for lane in np.flatnonzero(info["_final_info"]):
            self._note(int(final["opponent"][lane]), score_of(final["winner"][lane]))

    def after_iteration(self, loop: Loop) -> dict[str, float]:
        """Callback: the pool grows, opponents and shaping follow; what to log."""
        if loop.step - self._saved_pool_at >= self.pool_every and self.phase.opponents.pool > 0:
            self.pool.add(freeze(loop.agent, self._batch.table), loop.step)
            self._saved_pool_at = loop.step
        self._settle(loop)
        weights = opponent_weights(self.phase.opponents, self.pool)
        weights[AFTER_LEARNER:] = [sum(weights[AFTER_LEARNER:])]
        kinds = {"weak": WEAK, "strong": STRONG, "itself": LEARNER, "others": AFTER_LEARNER}
        return {
            "curriculum/phase": float(self.index),
            "curriculum/games": float(self.games),
            "curriculum/won": self.won_lately,
            "curriculum/pool_size": float(len(self.pool.members)),
            "curriculum/rating": self.ratings.shown("learner"),
        } | {f"curriculum/won_against_{name}": float(self.won[k]) for name, k in kinds.items() if weights[k] > 0}

    def reason_to_stop(self, loop: Loop) -> str | None:
        """Stop rule."""
        return f"all {len(self.phases)} phases done" if self.finished else None

    # ------------------------------------------------------------------ inside a phase

    def _is_over(self, loop: Loop) -> bool:
        phase = self.phase
        if phase.episodes is not None and self.games >= phase.episodes:
            return True
        if phase.steps is not None and loop.step - self.steps_before >= phase.steps:
            return True
        return phase.win_rate is not None and self.games >= MIN_GAMES and self.won_lately >= phase.win_rate

    def _settle(self, loop: Loop) -> None:
        """Bring the lanes to what the phase wants at this point: modes, opponents, shaping."""
        batch, mixture = self._batch, self.phase.opponents
        if mixture.learner + mixture.pool > 0:
            learner = freeze(loop.agent, batch.table)
        else:  # nobody asks it, so somebody who stands still keeps its place
            still = np.zeros((batch.obs_width, batch.action_width)), np.zeros(batch.action_width)
            learner = FrozenPolicy([still], "tanh")
        files = [self._files[path] for path, _ in mixture.files]
        policies = [learner, *files, *(member.policy for member in self.pool.members)]
        batch.set_opponents(policies, opponent_weights(mixture, self.pool))
        batch.set_modes(self.phase.modes)
        schedule = self.phase.shaping
        batch.shaping = {} if schedule is None else schedule.at(self.games)

    def _hold(self, loop: Loop, resumed: bool = False) -> None:
        """Where won games pay a bonus to the steps that led to it, whole episodes are held back."""
        bonus = self.phase.bonus
        if bonus is None and (self.index == 0 or self.phases[self.index - 1].bonus is None):
            return
        agent = loop.agent
        if not isinstance(agent, OffPolicyAgent):
            raise ConfigError(f"reward_bonus needs an agent with a replay memory, not {type(agent).__name__}.")
        pending = [window.pending for window in agent.windows]
        agent.hold_episodes(None if bonus is None else partial(self._pay_bonus, agent.config.reward_scale))
        if resumed:
            for window, steps in zip(agent.windows, pending, strict=True):
                window.pending = steps

    def _pay_bonus(self, scale: float, steps: Steps, lane: int, first: int, last: int) -> None:
        """The steps before the last of a won game receive the bonus, less the further back they are."""
        assert self.phase.bonus is not None
        now = self.phase.bonus.at(self.games)
        if steps.terminated[last, lane] and steps.reward[last, lane] > 0:  # a goal pays 10 to the winner
            back = np.arange(last - first)[::-1]
            paid = scale * now["win_bonus"] * now["win_discount"] ** back
            steps.reward[first:last, lane] += paid.astype(steps.reward.dtype)

    def _note(self, who: int, score: float) -> None:
        """A game against number `who` ended."""
        self.games += 1
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
        """Everything, as tensors by name."""
        named = {
            "counters": np.array([self.index, self.games, self.steps_before, self._saved_pool_at, int(self.finished)]),
            "won": np.array([*self.won, self.won_lately]),
            **self.ratings.state(),
            **{f"pool.{name}": array for name, array in self.pool.state().items()},
        }
        return {name: torch.from_numpy(np.array(array)) for name, array in named.items()}

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        """Go back to what `state_dict` returned; `begin` then puts the lanes into the phase."""
        arrays = {name: tensor.numpy().copy() for name, tensor in state.items()}
        self.index, self.games, self.steps_before, self._saved_pool_at, finished = arrays["counters"].tolist()
        self.finished = bool(finished)
        self.won, self.won_lately = arrays["won"][:-1], float(arrays["won"][-1])
        self.ratings.load(arrays)
        self._restored = {n.removeprefix("pool."): a for n, a in arrays.items() if n.startswith("pool.")}


class WinRates:
    """Callback: `eval_episodes` games against each bot, as many from either side, at every evaluation."""

    def __init__(self, config: HockeyConfig) -> None:
        self.every, self.games, self.batch_options = config.eval_every, config.eval_episodes, config.batch_options()
        self.options = replace(config.env, player="policy", starter=both_sides(self.games))

    def after_iteration(self, loop: Loop) -> dict[str, float] | None:
        due = self.every > 0 and loop.passed(self.every)
        if not due and loop.step < loop.config.total_steps:
            return None
        shares: dict[str, float] = {}
        for bot in BOTS:
            options = replace(self.options, opponent=bot)
            with loop.clock("evaluation"), closing(make_lanes(self.games, options, self.batch_options)) as batch:
                result = summary(play_rink(batch, Actor(loop.agent), self.games, Seed(0, Stream.GAMES)))
            shares |= {f"eval/won_{bot}": result["won"], f"eval/lost_{bot}": result["lost"]}
        return shares


def opponent_weights(mixture: Mixture, pool: Pool) -> list[float]:
    """Weights of nobody, weak, strong, the learner, the files and the members, as `VersusBatch` draws by.

    While the pool is empty, its share goes to the learner itself.
    """
    learner = mixture.learner + (0.0 if pool.members else mixture.pool)
    members = (mixture.pool * pool.weights(mixture.strategy)).tolist() if pool.members else []
    files = [share for _, share in mixture.files]
    return [mixture.nobody, mixture.weak, mixture.strong, learner, *files, *members]
