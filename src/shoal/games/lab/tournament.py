"""Games against named opponents, and round robins, in any world with seats."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.agents.frozen import FrozenPolicy
from shoal.errors import ConfigError
from shoal.games.lab.entrants import Seated, load_policy
from shoal.games.lab.games import Result, name_of, play_games, round_robin, summary, verdict
from shoal.games.lanes.versus import VersusBatch, bots_of
from shoal.options import NoOptions, Values
from shoal.seeding import Seed
from shoal.training.acting import Player
from shoal.training.evaluate import EpisodeQuota
from shoal.training.lab import Policy, Verdict
from shoal.vector.batch import Batch
from shoal.world import BatchOptions, World, options_of

GAMES = 1000
LANES = 250
Entrant = str | FrozenPolicy
"""The name of a bot, or a policy."""


def play_seat(batch: VersusBatch, policy: Policy, games: int, seed: int | Seed) -> np.ndarray:
    """Outcome (1, 0 or -1) and length of each game, [games, 2]; sides alternate."""
    return play_games(batch, policy, games, seed, lambda info: 2 * info["final_info"]["score"] - 1)


def check_bot(batch: VersusBatch, bot: str) -> None:
    """`ConfigError` if these lanes have no such bot."""
    if bot not in batch.bots:
        raise ConfigError(f"There is no bot {bot!r} here; there are {', '.join(batch.bots)}.")


def against(batch: VersusBatch, bot: str) -> VersusBatch:
    """The same lanes with this bot in all of the other seats."""
    check_bot(batch, bot)
    batch.set_opponents([], np.array([name == bot for name in batch.bots], float))
    return batch


def evaluate(player: Player[Any], options: NoOptions, episodes: int | None, seed: int) -> Verdict | None:
    """A line per bot of the world, and the same as a JSON value; None where nobody wins or loses."""
    if not isinstance(player.batch, VersusBatch):
        return None
    games, results = episodes or GAMES, dict[str, Values]()
    for bot in player.batch.bots:
        with closing(VersusBatch(player.make_lanes(min(LANES, games), player.options))) as batch:
            results[bot] = summary(play_seat(against(batch, bot), player.act_in(batch), games, seed))
    return verdict(player.title, results)


@dataclass(frozen=True)
class SeatTournament:
    """Round robins of a world whose lanes have seats."""

    world: World

    def find_entrant(self, name: str) -> Entrant:
        """A bot, a run folder, or a stored policy by its file or by its name."""
        with closing(self._lanes(1)) as lanes:
            return name if name in bots_of(lanes) else load_policy(name, self.world, lanes)

    def name_of(self, entrant: str) -> str:
        """How an entrant is called in tables."""
        return name_of(entrant)

    def play(self, entrants: dict[str, Entrant], games: int, seed: int = 0) -> Result:
        """Every pair plays `games` games."""
        return round_robin(entrants, games, seed, self.play_pair)

    def play_pair(self, one: Entrant, two: Entrant, games: int, seed: int) -> np.ndarray:
        """Outcomes [games]: 1, 0 or -1 as `one` sees it; sides alternate."""
        if isinstance(one, str):
            return (
                self._two_bots(one, two, games, seed)
                if isinstance(two, str)
                else -self.play_pair(two, one, games, seed)
            )
        with closing(VersusBatch(self._lanes(min(LANES, games)))) as batch:
            self.seat(batch, two)
            return play_seat(batch, Seated(one, batch.single_observation_space), games, seed)[:, 0]

    def seat(self, batch: VersusBatch, entrant: Entrant) -> None:
        """From the next episodes on this one sits in all of the other seats."""
        if isinstance(entrant, str):
            against(batch, entrant)
        else:
            batch.set_opponents([entrant], [0.0] * len(batch.bots) + [1.0])

    def settings_against(self, path: str) -> Values:
        """A seat against this policy alone."""
        return {"seats": "versus", "opponents": (path,)}

    def _two_bots(self, one: str, two: str, games: int, seed: int) -> np.ndarray:
        """Both play inside the kernel, in lanes of their own for either side."""
        with closing(self._lanes(min(LANES, games))) as lanes:
            inside: tuple[str, ...] = getattr(getattr(lanes, "kernel", None), "bots", ())
            if one not in inside or two not in inside or lanes.num_seats != 2:
                raise ConfigError(f"{one} and {two} cannot play each other in {self.world.name}. Name a policy too.")
            swapped = np.arange(lanes.num_envs) % 2 == 1
            pair = np.array([1 + inside.index(one), 1 + inside.index(two)])
            lanes.lane_state["seat"][:] = np.where(swapped[:, None], pair[::-1], pair)  # type: ignore[attr-defined]
            quota, outcomes = EpisodeQuota(lanes.num_envs, games), []
            lanes.reset(seed=seed)
            nothing = np.zeros(lanes.action_space.shape or (), lanes.action_space.dtype)
            while not quota.done:
                _, _, terminated, truncated, info = lanes.step(nothing)
                counts = quota.counts(terminated | truncated)
                if counts.any():
                    returns = info["episode"]["r"][counts]
                    outcomes.append(np.sign(returns[:, 0] - returns[:, 1]) * np.where(swapped[counts], -1, 1))
            return np.concatenate(outcomes)

    def _lanes(self, num_envs: int) -> Batch:
        lanes = self.world.make(num_envs, options_of(self.world, {}), BatchOptions())
        if lanes.num_seats < 2:
            lanes.close()
            raise ConfigError(f"{self.world.name} is not a world for two, so there are no tournaments in it.")
        return lanes
