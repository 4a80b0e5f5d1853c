"""Round robin: everybody against everybody, as many games from either side; a win matrix and ratings.

This is what `shoal tournament` asks of a world: `find_entrant` and `play`.
"""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from shoal.errors import ConfigError
from shoal.worlds.hockey.batch import EXTERNAL, hockey
from shoal.worlds.hockey.evaluation import both_sides
from shoal.worlds.hockey.policies import BOTS, stored_policies
from shoal.worlds.hockey.pool import load_policy, score_of
from shoal.worlds.hockey.ratings import Ratings

LANES = 256
Entrant = Any
"""The name of a bot, or something that turns observations [N, D] into actions [N, A]."""


class Result(NamedTuple):
    """Of n entrants. `won[i, j]` is the share of games that i won against j, `drawn` the same for draws."""

    names: list[str]
    won: np.ndarray  # [n, n], NaN on the diagonal
    drawn: np.ndarray  # [n, n]
    ratings: list[tuple[str, float, float, float]]  # name, mu - 3 sigma, mu, sigma; best first
    games: int  # of every pair


def find_entrant(name: str) -> Entrant:
    """A bot, a run folder, or a stored policy by its file or by the name under which it comes with Shoal."""
    if name in BOTS:
        return name
    if Path(name).exists():
        policy = load_policy(name)
        policy.check_fits(18, 4, name)
        return policy
    if name in stored_policies():
        return load_policy(str(stored_policies()[name]))
    names = ", ".join((*BOTS, *stored_policies()))
    raise ConfigError(f"{name!r} cannot take part: it is no run folder, no stored policy, and none of {names}.")


def play(entrants: dict[str, Entrant], games: int, seed: int = 0) -> Result:
    """Every pair plays `games` games."""
    if len(entrants) < 2:
        raise ConfigError(f"A tournament needs at least two different players, not {len(entrants)}.")
    if games < 2:
        raise ConfigError(f"games={games} is too few: both sides begin equally often, so it must be at least 2.")
    names = list(entrants)
    won, drawn = np.full((len(names),) * 2, np.nan), np.full((len(names),) * 2, np.nan)
    results: list[tuple[str, str, float]] = []
    for (i, one), (j, two) in combinations(enumerate(names), 2):
        winner = play_pair(entrants[one], entrants[two], games, seed)
        won[i, j], won[j, i] = (winner == 1).mean(), (winner == -1).mean()
        drawn[i, j] = drawn[j, i] = (winner == 0).mean()
        results += [(one, two, score_of(int(w))) for w in winner]
    ratings = Ratings()
    for k in np.random.default_rng(seed).permutation(len(results)):  # no pair's games come last
        ratings.note(*results[k])
    return Result(names, won, drawn, ratings.table(), games)


def play_pair(one: Entrant, two: Entrant, games: int, seed: int) -> np.ndarray:
    """Winners [games]: 1, 0 or -1 as `one` sees it; as many games from every lane, so that short ones are not favoured.

    A bot plays inside the lanes; policies are asked from outside, each once per step, and their actions are kept for
    as many steps as they were trained for.
    """
    lanes = min(LANES, games)
    left, right = one if isinstance(one, str) else "policy", two if isinstance(two, str) else EXTERNAL
    batch = hockey(lanes, starter=both_sides(lanes), player=left, opponent=right)
    quota = np.full(lanes, games // lanes)
    quota[: games % lanes] += 1
    played, age, winners = np.zeros(lanes, int), np.zeros(lanes, int), []
    both = np.zeros((lanes, 2, 4), np.float32)
    try:
        obs, _ = batch.reset(seed=seed)
        while (played < quota).any():
            for seat, entrant in enumerate((one, two)):
                if not isinstance(entrant, str):
                    due = age % getattr(entrant, "hold", 1) == 0
                    if due.any():
                        both[due, seat] = entrant(obs[due, seat] if right == EXTERNAL else obs[due])
            obs, _, terminated, truncated, info = batch.step(both if right == EXTERNAL else both[:, 0])
            ended = terminated | truncated
            age = np.where(ended, 0, age + 1)
            if ended.any():
                winners.append(info["final_info"]["winner"][ended & (played < quota)])
                played += ended
    finally:
        batch.close()
    return np.concatenate(winners)


def name_of(entrant: str) -> str:
    """How an entrant is called in tables: a run by its agent, seed and time of day, since its own name is long."""
    if not Path(entrant).exists():
        return entrant
    name = Path(entrant).absolute().name
    run = re.fullmatch(r".+__(\w+)__(\d+)__\d+-(\d+)(?:_vec\d+)?(-\d+)?", name)
    return name.removesuffix(".safetensors") if run is None else f"{run[1]} {run[2]} {run[3]}{run[4] or ''}"
