"""What versus and shared learning add to the loop: opponents that follow the learner, and numbers for every seat."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np
import torch

from shoal.agents.frozen import FrozenPolicy, freeze
from shoal.agents.rollout import Rollout
from shoal.errors import ConfigError
from shoal.games.lab.entrants import load_policy
from shoal.games.lab.experience import Mirrored, OtherSeat
from shoal.games.lab.games import summary
from shoal.games.lab.options import ITSELF, POOL, GameTraining, weights_of
from shoal.games.lab.pool import Pool, Ratings
from shoal.games.lab.tournament import against, check_bot, play_seat
from shoal.games.lanes.rows import SeatRows
from shoal.games.lanes.versus import VersusBatch
from shoal.registry import as_world
from shoal.seeding import Seed, Stream
from shoal.training.acting import Actor
from shoal.training.config import TrainConfig
from shoal.training.hooks import Hooks, Reads
from shoal.training.lab import lab_of
from shoal.training.loop import Loop
from shoal.trees import Tree
from shoal.vector.batch import Batch

RECENT = 0.98
"""Weight of the past in the shares of games won that are logged."""
LEARNER = "learner"
GameConfig = TrainConfig[Any, GameTraining]


def make_hooks(batch: Batch, config: GameConfig) -> Hooks:
    """The returns of every seat; for versus also opponents, pool, ratings, and games against the bots."""
    if config.runners and isinstance(batch, SeatRows):
        raise ConfigError(f"Runners share lanes and not seats, so seats={config.extra.seats!r} cannot have any.")
    returns = SeatReturns()
    mirror = (mirror_of(config),) if config.extra.mirror else ()
    if not isinstance(batch, VersusBatch):
        _refuse_opponents(config)
        return Hooks((returns,), (returns, *mirror))
    for bot in config.extra.eval_against:
        check_bot(batch, bot)
    league = League(config)
    other = (OtherSeat(),) if config.extra.both_players else ()
    return Hooks((returns, league, *other), (returns, league, BotGames(config), *mirror))


def _refuse_opponents(config: GameConfig) -> None:
    """`ConfigError` if opponents were named for seats that have none, and not by the world's own presets."""
    presets = lab_of(as_world(config.world)).presets.values()
    expected = [preset.settings.get("extra", {}).get("opponents") for preset in presets]
    if config.extra.opponents not in (GameTraining().opponents, *expected):
        raise ConfigError(f"opponents are for seats='versus', not {config.extra.seats!r}. Add --seats versus.")


def mirror_of(config: TrainConfig[Any, Any]) -> Mirrored:
    """The hook that lets the agent learn from what the world's own mirror shows."""
    build = lab_of(as_world(config.world)).mirror
    if build is None:
        raise ConfigError(f"{config.world} declares no symmetry, so nothing can be mirrored. Leave mirror out.")
    return Mirrored(build(config.env))


class SeatReturns:
    """Logs the mean return of every seat over the episodes of an iteration."""

    reads = Reads(final=("returns",))

    def __init__(self) -> None:
        self._ended: list[np.ndarray] = []

    def after_step(self, t: int, rollout: Rollout, info: dict[str, Tree]) -> None:
        if "final_info" in info and "returns" in info["final_info"]:
            self._ended.append(info["final_info"]["returns"][info["_final_info"]])

    def after_iteration(self, loop: Loop) -> dict[str, float]:
        if not self._ended:
            return {}
        means = np.concatenate(self._ended).mean(0)
        self._ended.clear()
        return {f"seats/return_{seat}": float(mean) for seat, mean in enumerate(means)}


class League:
    """Who sits in the other seats: bots, files, the learner as it was after the last iteration, and a pool of its past.

    It notes how games end, which decides who is drawn from the pool, and rates everybody.
    """

    reads = Reads(final=("opponent", "score"))

    def __init__(self, config: GameConfig) -> None:
        self._weights, self._every = weights_of(config.extra.opponents), config.extra.pool_every
        self._strategy, self._world = config.extra.strategy, config.world
        self.pool, self.ratings = Pool(), Ratings()
        self.won: dict[str, float] = {}
        self._added_at = 0
        self._files: dict[str, FrozenPolicy] = {}
        self._restored: dict[str, np.ndarray] | None = None

    def begin(self, loop: Loop) -> None:
        """Get to know the run; a resumed one has its pool back."""
        batch = loop.batch.pattern
        if not isinstance(batch, VersusBatch):
            raise ConfigError("Opponents need lanes with seats. Use --seats versus.")
        self._batch, self._agent = batch, loop.agent
        named = [name for name in self._weights if name not in (ITSELF, POOL, *batch.bots)]
        self._files = {name: load_policy(name, as_world(self._world), batch.lanes) for name in named}
        if self._restored is not None:
            self.pool.load(self._restored, freeze(loop.agent).settings)
            self._restored = None
        self._settle()

    def check(self, words: tuple[str, ...]) -> None:
        """`ConfigError` unless all of these can play."""
        for name in weights_of(words):
            if name not in (ITSELF, POOL, *self._batch.bots, *self._files):
                load_policy(name, as_world(self._world), self._batch.lanes)

    def oppose(self, words: tuple[str, ...]) -> None:
        """From the next iteration on these, as `--opponents` has them."""
        weights = weights_of(words)
        known = (ITSELF, POOL, *self._batch.bots, *self._files)
        for name in weights:
            if name not in known:
                world = as_world(self._world)
                self._files[name] = load_policy(name, world, self._batch.lanes)
        self._weights = {**dict.fromkeys(self._files, 0.0), **weights}
        self._settle()

    def after_step(self, t: int, rollout: Rollout, info: dict[str, Tree]) -> None:
        """Recorder: how games ended, and against whom."""
        if "final_info" not in info:
            return
        final = info["final_info"]
        for lane in np.flatnonzero(info["_final_info"]):
            self._note(int(final["opponent"][lane]), float(final["score"][lane]))

    def after_iteration(self, loop: Loop) -> dict[str, float]:
        """Callback: the pool grows, opponents follow; what to log."""
        if loop.step - self._added_at >= self._every and self._weights.get(POOL, 0) > 0:
            self.pool.add(freeze(loop.agent), loop.step)
            self._added_at = loop.step
        self._settle()
        return {
            "games/pool_size": float(len(self.pool.members)),
            "games/rating": self.ratings.shown(LEARNER),
        } | {f"games/won_against_{name}": won for name, won in self.won.items()}

    def _settle(self) -> None:
        """Tell the lanes who plays how often: the bots, then the learner, the files and the pool."""
        weights, members = self._weights, self.pool.members
        itself = weights.get(ITSELF, 0.0) + (0.0 if members else weights.get(POOL, 0.0))
        policies: list[FrozenPolicy] = [freeze(self._agent)] if itself > 0 else []
        shares = [weights.get(bot, 0.0) for bot in self._batch.bots] + ([itself] if itself > 0 else [])
        self._names = [*self._batch.bots, *([ITSELF] if itself > 0 else []), *self._files]
        policies += [*self._files.values(), *(member.policy for member in members)]
        shares += [weights[name] for name in self._files]
        shares += (weights.get(POOL, 0.0) * self.pool.weights(self._strategy)).tolist() if members else []
        self._batch.set_opponents(policies, shares)

    def _note(self, who: int, score: float) -> None:
        """A game against number `who` ended."""
        member = who - len(self._names)
        kind = self._names[who] if member < 0 else POOL
        self.won[kind] = RECENT * self.won.get(kind, 0.5) + (1 - RECENT) * score
        if 0 <= member < len(self.pool.members):
            self.pool.note(member, score)
            self.ratings.note(LEARNER, f"step {self.pool.members[member].step}", score)
        elif kind not in (ITSELF, POOL):
            self.ratings.note(LEARNER, kind, score)

    # ------------------------------------------------------------------ persistence

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Everything, as tensors by name."""
        named = {
            "added_at": np.array(self._added_at),
            "won": np.array(list(self.won.values())),
            "won_names": np.array(list("\n".join(self.won).encode()), np.uint8),
            **self.ratings.state(),
            **{f"pool.{name}": array for name, array in self.pool.state().items()},
        }
        return {name: torch.from_numpy(np.array(array)) for name, array in named.items()}

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        """Go back to what `state_dict` returned; `begin` then seats everybody."""
        arrays = {name: tensor.numpy().copy() for name, tensor in state.items()}
        self._added_at = int(arrays["added_at"])
        names = arrays["won_names"].tobytes().decode().splitlines()
        self.won = dict(zip(names, arrays["won"].tolist(), strict=True))
        self.ratings.load(arrays)
        self._restored = {n.removeprefix("pool."): a for n, a in arrays.items() if n.startswith("pool.")}


class BotGames:
    """Callback: games against bots of the world, as many from either side, at every evaluation."""

    def __init__(self, config: GameConfig) -> None:
        self._config = config

    def after_iteration(self, loop: Loop) -> dict[str, float] | None:
        config, games = self._config, self._config.extra.eval_games
        due = config.eval_every > 0 and loop.passed(config.eval_every)
        if not due and loop.step < config.total_steps:
            return None
        world, shares = as_world(config.world), dict[str, float]()
        with (
            loop.clock("evaluation"),
            closing(world.make(max(1, games // 2), config.env, config.batch_options())) as lanes,
        ):
            batch = VersusBatch(lanes)
            for bot in config.extra.eval_against or batch.bots:
                result = summary(play_seat(against(batch, bot), Actor(loop.agent), games, Seed(0, Stream.GAMES)))
                shares |= {f"eval/won_{bot}": result["won"], f"eval/lost_{bot}": result["lost"]}
        return shares
