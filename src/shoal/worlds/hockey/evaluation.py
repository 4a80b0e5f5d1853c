"""`shoal eval` for hockey: games won, drawn and lost against both bots."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from shoal.worlds.hockey.batch import HockeyBatch, hockey

GAMES = 1000
LANES = 256
OPPONENTS = ("weak", "strong")


def evaluate(player: Any, episodes: int | None, seed: int) -> tuple[str, dict[str, Any]]:
    """A line per opponent, and the same as a JSON value. The opponent of the lanes is replaced by each bot in turn."""
    results = {}
    for opponent in OPPONENTS:
        lanes = min(LANES, episodes or GAMES)
        batch = hockey(lanes, **{"starter": both_sides(lanes), **player.env, "opponent": opponent})
        try:
            results[opponent] = summary(play_games(batch, player.act_in(batch), episodes or GAMES, seed))
        finally:
            batch.close()
    lines = [
        f"against {opponent:<6}  {r['games']} games: {r['won']:.1%} won ({r['low']:.1%} to {r['high']:.1%}), "
        f"{r['drawn']:.1%} drawn, {r['lost']:.1%} lost, {r['mean_length']:.0f} steps each"
        for opponent, r in results.items()
    ]
    return "\n".join([f"{player.world}, {player.name}", *lines]), {"against": results}


def both_sides(lanes: int) -> list[str]:
    """Who begins, lane by lane, so that both players begin equally often."""
    return ["one", "two"] * (lanes // 2) + ["random"] * (lanes % 2)


def play_games(batch: HockeyBatch, actor: Any, games: int, seed: int) -> np.ndarray:
    """Winner and length of each game, [games, 2]; as many from every lane, so that short ones are not favoured."""
    quota = np.full(batch.num_envs, games // batch.num_envs)
    quota[: games % batch.num_envs] += 1
    played, rows = np.zeros(batch.num_envs, int), []
    obs, info = batch.reset(seed=seed)
    while (played < quota).any():
        obs, _, terminated, truncated, info = batch.step(actor(obs, info))
        ended = terminated | truncated
        if ended.any():
            counts = ended & (played < quota)
            rows.append(np.stack([info["final_info"]["winner"], info["episode"]["l"]], axis=1)[counts])
            played += ended
            actor.forget(ended)
    return np.concatenate(rows)


def summary(games: np.ndarray) -> dict[str, Any]:
    """Shares of player 1, with Wilson's 95 % interval of the share won."""
    winner, n = games[:, 0], len(games)
    won = float((winner == 1).mean())
    z = 1.96
    middle, half = won + z * z / (2 * n), z * math.sqrt(won * (1 - won) / n + z * z / (4 * n * n))
    low, high = ((middle + sign * half) / (1 + z * z / n) for sign in (-1, 1))
    return {
        "games": n,
        "won": won,
        "low": low,
        "high": high,
        "drawn": float((winner == 0).mean()),
        "lost": float((winner == -1).mean()),
        "mean_length": float(games[:, 1].mean()),
    }
