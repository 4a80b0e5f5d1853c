"""Games that are counted: `shoal eval` against both bots, and round robins with a win matrix and ratings.

`shoal tournament` asks a world for `find_entrant`, `name_of` and `play`, which are here.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np

from shoal.errors import ConfigError
from shoal.games.lab.games import Result, name_of, play_games, round_robin, summary, verdict
from shoal.options import Values
from shoal.seeding import Seed
from shoal.training.acting import Player
from shoal.training.lab import Policy, Verdict
from shoal.trees import Tree
from shoal.vector.batch import Batch
from shoal.world import BatchOptions
from shoal.worlds.hockey.lab.curriculum import MOST
from shoal.worlds.hockey.lab.policies import load_fitting, stored_policies
from shoal.worlds.hockey.lanes.batch import make_rink
from shoal.worlds.hockey.lanes.kernel import WIDTHS
from shoal.worlds.hockey.lanes.versus import Opponent
from shoal.worlds.hockey.world import BOTS, EXTERNAL, HockeyOptions

__all__ = ["evaluate", "find_entrant", "name_of", "play", "play_pair", "play_rink", "settings_against"]
GAMES = 1000
LANES = 256
Entrant = str | Opponent
"""The name of a bot, or a policy."""


def evaluate(player: Player[HockeyOptions], episodes: int | None, seed: int) -> Verdict:
    """A line per bot, and the same as a JSON value. Each bot in turn plays the other side."""
    games, results = episodes or GAMES, {}
    lanes = min(LANES, games)
    starter = both_sides(lanes) if player.options.starter == "random" else player.options.starter
    for bot in BOTS:
        options = replace(player.options, starter=starter, opponent=bot)
        with closing(player.make_lanes(lanes, options)) as batch:
            results[bot] = summary(play_rink(batch, player.act_in(batch), games, seed))
    return verdict(player.title, results)


def both_sides(lanes: int) -> tuple[str, ...]:
    """Who begins, lane by lane, so that both players begin equally often."""
    return ("one", "two") * (lanes // 2) + ("random",) * (lanes % 2)


def play_rink(batch: Batch, policy: Policy, games: int, seed: int | Seed) -> np.ndarray:
    """Winner and length of each game, [games, 2]; as many from every lane."""
    return play_games(batch, policy, games, seed, lambda info: info["final_info"]["winner"])


# ---------------------------------------------------------------------- tournaments


def find_entrant(name: str) -> Entrant:
    """A bot, a run folder, or a stored policy by its file or by the name under which it comes with Shoal."""
    if name in BOTS:
        return name
    stored = stored_policies()
    if not Path(name).exists() and name not in stored:
        names = ", ".join((*BOTS, *stored))
        raise ConfigError(f"{name!r} cannot take part: it is not a run folder, a stored policy or one of {names}.")
    return load_fitting(name if Path(name).exists() else str(stored[name]), *WIDTHS[True])


def play(entrants: dict[str, Entrant], games: int, seed: int = 0) -> Result:
    """Every pair plays `games` games."""
    return round_robin(entrants, games, seed, play_pair)


def settings_against(path: str) -> Values:
    """SAC, which learns hockey fastest, in games against this policy alone."""
    opponent = {"type": "self_play", "checkpoint": str(Path(path).absolute())}
    phase = {"name": "exploit", "steps": MOST - 1, "opponent": opponent}
    return {"algo": "sac", "opponent": "pool", "curriculum": {"curriculum": {"phases": [phase]}}}


def play_pair(one: Entrant, two: Entrant, games: int, seed: int) -> np.ndarray:
    """Winners [games]: 1, 0 or -1 as `one` sees it; as many games from every lane. A bot plays inside the lanes."""
    lanes = min(LANES, games)
    left, right = one if isinstance(one, str) else "policy", two if isinstance(two, str) else EXTERNAL
    options = HockeyOptions(starter=both_sides(lanes), player=left, opponent=right)
    with closing(make_rink(lanes, options, BatchOptions())) as batch:
        return play_rink(batch, _Seats(one, two, lanes), games, seed)[:, 0]


class _Seats:
    """Policies in one or both seats, each asked once per step; actions are kept for as long as they are meant."""

    def __init__(self, one: Entrant, two: Entrant, lanes: int) -> None:
        self._policies = {seat: who for seat, who in enumerate((one, two)) if not isinstance(who, str)}
        self._age, self._both = np.zeros(lanes, int), np.zeros((lanes, 2, 4), np.float32)

    def __call__(self, obs: np.ndarray, info: dict[str, Tree]) -> np.ndarray:
        """obs [B, 18], or [B, 2, 18] where the second seat is open too; actions likewise."""
        for seat, policy in self._policies.items():
            due = self._age % policy.hold == 0
            if due.any():
                self._both[due, seat] = policy(obs[due, seat] if obs.ndim == 3 else obs[due])
        self._age += 1
        return self._both if obs.ndim == 3 else self._both[:, 0]

    def forget(self, ended: np.ndarray) -> None:
        """Games that begin ask anew."""
        self._age[ended] = 0
