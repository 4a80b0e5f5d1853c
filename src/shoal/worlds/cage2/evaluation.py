"""`shoal eval RUN --leaderboard`: the nine cells of CAGE Challenge 2, beside the published scores."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from shoal.worlds.cage2.leaderboard import Defender, leaderboard_table, score

CELL_EPISODES = 1000
_OF_A_CELL = ("variant", "red", "length")  # options of the lanes that the leaderboard sets itself


def evaluate(
    player: Any, episodes: int | None, seed: int, *, leaderboard: bool = False
) -> tuple[str, dict[str, Any]] | None:
    """Score in all nine cells, with and without restoring Op_Server0 before any evidence; None for the mean return."""
    if not leaderboard:
        return None
    variant = player.env.get("variant", "cage2")
    env = {name: value for name, value in player.env.items() if name not in _OF_A_CELL}
    defender = Defender(player.name, env, player.act_in)
    by_red = {"bline": defender, "meander": defender, "sleep": defender}
    played, honest = (
        score(by_red, variant, episodes=episodes or CELL_EPISODES, needs_evidence=needs_evidence, seed=seed)
        for needs_evidence in (False, True)
    )
    cells = {"as_played": [asdict(cell) for cell in played], "after_evidence": [asdict(cell) for cell in honest]}
    return leaderboard_table(defender.name, variant, played, honest), {"variant": variant, **cells}
