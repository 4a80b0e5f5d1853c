"""`shoal eval RUN --leaderboard`: the challenge's nine cells, B-line, Meander and Sleep at 30, 50 and 100 steps.

The public scores were computed on variant `cage2-2022`; a score means nothing without its variant. One Restore of
Op_Server0 makes Impact harmless for the rest of the episode (even before any attack), so every score comes twice: as
played, and with that action forbidden until Blue's table has shown a foothold there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from shoal.errors import ConfigError
from shoal.training.lab import Policy, Verdict
from shoal.vector.kernel import KernelBatch
from shoal.world import BatchOptions
from shoal.worlds.cage2.lanes.names import ANALYSE, MONITOR, NUM_ACTIONS
from shoal.worlds.cage2.lanes.reduced import PLAIN
from shoal.worlds.cage2.world import Cage2Options, Variant, make

if TYPE_CHECKING:
    from shoal.training.acting import Player

CELL_EPISODES = 1000
REDS = ("bline", "meander", "sleep")
LENGTHS = (30, 50, 100)
CELLS = tuple((red, length) for red in REDS for length in LENGTHS)

PUBLISHED = {  # mean return per cell of B-line and Meander at 30, 50, 100; the good entries have 0 against Sleep
    "1 Cardiff, PPO + greedy decoys": (-3.47, -6.41, -13.76, -5.64, -8.69, -16.60),
    "2 Keeping it RL, ensemble": (-3.48, -5.85, -11.39, -6.47, -10.33, -19.38),
    "3 Mindrake, HIPPO": (-3.53, -6.20, -12.78, -6.76, -10.13, -17.65),
    "7 UoA, belief ensemble": (-3.87, -6.74, -14.63, -6.54, -12.01, -26.09),
    "10 Keeping it RL, single PPO": (-4.76, -8.13, -17.19, -8.03, -12.91, -22.94),
    "13 benchmark PPO": (-8.75, -14.92, -30.19, -7.31, -12.04, -22.21),
    "18 react-restore": (-58.83, -93.05, -184.34, -44.29, -85.75, -192.63),
    "20 sleep": (-218.65, -480.17, -1134.03, -39.31, -267.60, -972.43),
    "best of all, per cell": (-3.47, -5.85, -11.39, -5.64, -8.69, -16.60),
}


@dataclass(frozen=True)
class Defender:
    """What is scored."""

    name: str
    options: Cage2Options
    """Of its lanes; variant, red and length are those of the cell."""
    make_policy: Callable[[KernelBatch], Policy]
    """From a batch of such lanes to the policy that acts in them."""


@dataclass(frozen=True)
class Cell:
    """One cell: mean return with its 95 % interval."""

    red: str
    length: int
    episodes: int
    mean: float
    low: float
    high: float
    early_restores: float
    """Share of the episodes in which Op_Server0 was restored before any evidence."""


def evaluate(player: Player[Cage2Options], episodes: int | None, seed: int) -> Verdict:
    """Score in all nine cells, with and without restoring Op_Server0 before any evidence."""
    variant, defender = player.options.variant, Defender(player.name, player.options, player.act_in)
    played, honest = (
        score(defender, variant, episodes=episodes or CELL_EPISODES, needs_evidence=needs_evidence, seed=seed)
        for needs_evidence in (False, True)
    )
    cells = {"as_played": [asdict(cell) for cell in played], "after_evidence": [asdict(cell) for cell in honest]}
    return Verdict(leaderboard_table(defender.name, variant, played, honest), {"variant": variant, **cells})


def score(
    defender: Defender | Mapping[str, Defender],
    variant: Variant,
    *,
    episodes: int = CELL_EPISODES,
    needs_evidence: bool = False,
    seed: int = 0,
) -> list[Cell]:
    """All nine cells, `episodes` each, for one defender or for one per red."""
    if episodes < 2:
        raise ConfigError(f"episodes must be at least 2, so that every cell has an interval, not {episodes}.")
    by_red = dict.fromkeys(REDS, defender) if isinstance(defender, Defender) else defender
    return [cell for red in REDS for cell in score_red(by_red[red], variant, red, episodes, needs_evidence, seed)]


def score_red(
    defender: Defender, variant: Variant, red: str, episodes: int, needs_evidence: bool = False, seed: int = 0
) -> list[Cell]:
    """The three lengths against one red: every lane plays one episode, lanes of all lengths side by side."""
    mask = "evidence" if needs_evidence else defender.options.mask
    options = replace(defender.options, variant=variant, red=red, length=LENGTHS, mask=mask)
    batch = make(episodes * len(LENGTHS), options, BatchOptions())
    policy = defender.make_policy(batch)
    returns = np.full(batch.num_envs, np.nan)
    early = np.zeros(batch.num_envs, np.bool_)
    obs, info = batch.reset(seed=seed)
    while np.isnan(returns).any():
        obs, _, _, truncated, info = batch.step(_obey(policy(obs, info), info.get("action_mask")))
        if truncated.any():
            new = truncated & np.isnan(returns)
            returns[new] = info["final_info"]["env_return"][new]
            early[new] = info["final_info"]["early_restore"][new]
            policy.forget(truncated)
    lengths = np.arange(batch.num_envs) % len(LENGTHS)
    batch.close()
    return [_cell(red, length, returns[lengths == k], early[lengths == k]) for k, length in enumerate(LENGTHS)]


def _obey(action: npt.ArrayLike, mask: np.ndarray | None) -> np.ndarray:
    """For policies that ignore masks: something harmless in place of a forbidden action."""
    action = np.array(action)
    if mask is not None:
        idle = MONITOR if mask.shape[1] == NUM_ACTIONS else PLAIN.index(ANALYSE)
        action[~mask[np.arange(len(action)), action]] = idle
    return action


def _cell(red: str, length: int, returns: np.ndarray, early: np.ndarray) -> Cell:
    mean, half = float(returns.mean()), 1.96 * float(returns.std(ddof=1)) / math.sqrt(len(returns))
    return Cell(red, length, len(returns), mean, mean - half, mean + half, float(early.mean()))


def total(cells: list[Cell]) -> float:
    """The sum over the six cells of B-line and Meander, which the leaderboard ranks by."""
    return sum(cell.mean for cell in cells if cell.red != "sleep")


def leaderboard_table(name: str, variant: str, cells: list[Cell], honest: list[Cell]) -> str:
    """Text of the table: this defender's two rows with intervals, and the published scores below."""
    head = ["", *(f"{red} {length}" for red, length in CELLS), "sum of six"]
    rows = [head]
    for label, row in ((name, cells), ("  after evidence only", honest)):
        rows.append([label, *(f"{cell.mean:.2f}" for cell in row), f"{total(row):.2f}"])
        rows.append(["  ± 95 %", *(f"{(cell.high - cell.low) / 2:.2f}" for cell in row), ""])
    for entry, means in PUBLISHED.items():
        rows.append([entry, *(f"{mean:.2f}" for mean in means), "", "", "", f"{sum(means):.2f}"])
    widths = [max(len(row[k]) for row in rows) for k in range(len(head))]
    lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]
    early = max(cell.early_restores for cell in cells)
    notes = [
        f"Variant {variant}, {cells[0].episodes:,} episodes per cell. Published scores are of cage2-2022.",
        f"As played, Op_Server0 is restored before any evidence in {early:.0%} of the episodes of the worst cell; "
        "'after evidence only' forbids it.",
    ]
    return "\n".join([*lines, "", *notes])
