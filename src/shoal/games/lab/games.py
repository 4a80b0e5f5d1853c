"""Games that are counted: shares with their intervals, and round robins with a win matrix and ratings."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from shoal.errors import ConfigError
from shoal.games.lab.pool import Ratings, score_of
from shoal.options import Values
from shoal.seeding import Seed
from shoal.training.evaluate import EpisodeQuota
from shoal.training.lab import Policy, Verdict
from shoal.vector.batch import Batch, Info

Entrant = TypeVar("Entrant")


def wilson(share: float, count: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share of `count`."""
    z = 1.96
    middle = share + z * z / (2 * count)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    low, high = (middle - half) / (1 + z * z / count), (middle + half) / (1 + z * z / count)
    return max(low, 0.0), min(high, 1.0)  # which rounding misses where nobody won, or everybody


def summary(games: np.ndarray) -> Values:
    """Shares of player 1 in games [N, 2] (winner 1, 0 or -1, and length), with the interval of the share won."""
    winner, n = games[:, 0], len(games)
    won = float((winner == 1).mean())
    low, high = wilson(won, n)
    return {
        "games": n,
        "won": won,
        "low": low,
        "high": high,
        "drawn": float((winner == 0).mean()),
        "lost": float((winner == -1).mean()),
        "mean_length": float(games[:, 1].mean()),
    }


def play_games(
    batch: Batch, policy: Policy, games: int, seed: int | Seed, winners: Callable[[Info], np.ndarray]
) -> np.ndarray:
    """Winner and length of each game, [games, 2]; as many from every lane, the first ones of each.

    `winners` reads them off the infos of a step in which games ended, [B]: 1 for a game that `policy` won, 0, or -1.
    """
    quota, rows = EpisodeQuota(batch.num_envs, games), []
    obs, info = batch.reset(seed=seed)
    while not quota.done:
        obs, _, terminated, truncated, info = batch.step(policy(obs, info))
        ended = terminated | truncated
        if ended.any():
            rows.append(np.stack([winners(info), info["episode"]["l"]], axis=1)[quota.counts(ended)])
            policy.forget(ended)
    return np.concatenate(rows)


def verdict(title: str, results: dict[str, Values]) -> Verdict:
    """A line per opponent of their `summary`, and the same as a JSON value."""
    width = max(map(len, results))
    lines = [
        f"against {name:<{width}}  {r['games']} games: {r['won']:.1%} won ({r['low']:.1%} to {r['high']:.1%}), "
        f"{r['drawn']:.1%} drawn, {r['lost']:.1%} lost, {r['mean_length']:.0f} steps each"
        for name, r in results.items()
    ]
    return Verdict("\n".join([title, *lines]), {"against": results})


class Result(NamedTuple):
    """Of n entrants. `won[i, j]` is the share of games that i won against j, `drawn` the same for draws."""

    names: list[str]
    won: np.ndarray  # [n, n], NaN on the diagonal
    drawn: np.ndarray  # [n, n]
    ratings: list[tuple[str, float, float, float]]  # name, mu - 3 sigma, mu, sigma; best first
    games: int  # of every pair


def round_robin(
    entrants: dict[str, Entrant], games: int, seed: int, play_pair: Callable[[Entrant, Entrant, int, int], np.ndarray]
) -> Result:
    """Every pair plays `games` games: `play_pair(one, two, games, seed)` gives the winners, see `Result.won`.

    If it is interrupted, what was played so far is the result.
    """
    if len(entrants) < 2:
        raise ConfigError(f"A tournament needs at least two different players, not {len(entrants)}.")
    if games < 2:
        raise ConfigError(f"games must be at least 2, since both sides begin equally often, not {games}.")
    names = list(entrants)
    won, drawn = np.full((len(names),) * 2, np.nan), np.full((len(names),) * 2, np.nan)
    results: list[tuple[str, str, float]] = []
    for (i, one), (j, two) in combinations(enumerate(names), 2):
        try:
            winner = play_pair(entrants[one], entrants[two], games, seed)
        except KeyboardInterrupt:
            if not results:
                raise
            print(f"Stopped: {one} against {two} and the pairs after them were not played.", flush=True)
            break
        won[i, j], won[j, i] = (winner == 1).mean(), (winner == -1).mean()
        drawn[i, j] = drawn[j, i] = (winner == 0).mean()
        results += [(one, two, score_of(int(w))) for w in winner]
    ratings = Ratings()
    for k in np.random.default_rng(seed).permutation(len(results)):  # no pair's games come last
        ratings.note(*results[k])
    return Result(names, won, drawn, ratings.table(), games)


def name_of(entrant: str) -> str:
    """How an entrant is called in tables: a run by its agent, seed and time of day, since its own name is long."""
    if not Path(entrant).exists():
        return entrant
    name = Path(entrant).absolute().name
    run = re.fullmatch(r".+__(\w+)__(\d+)__\d+-(\d+)(?:_vec\d+)?(-\d+)?", name)
    return name.removesuffix(".safetensors") if run is None else f"{run[1]} {run[2]} {run[3]}{run[4] or ''}"
