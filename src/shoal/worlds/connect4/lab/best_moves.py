"""`shoal connect4 best-moves RUN`: how often a player finds a move that cannot be bettered, in solved positions."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from shoal.errors import ConfigError
from shoal.options import Flag
from shoal.training.lab import Verb

MOST_STONES = 30
"""With more on the board there is little left to choose."""


@dataclass(frozen=True)
class BestMovesCommand:
    """Say for what share of solved positions, taken from random games, a player's move is one of the best."""

    run: Annotated[str, Flag("RUN", positional=True)]
    """The player: a run folder, or a stored policy (.safetensors)."""
    positions: int = 2000
    """Positions, each with 14 to 30 stones and nobody about to win at once."""
    seed: int = 0
    """Which positions."""


def run(command: BestMovesCommand) -> int:
    """Solve, ask, and print."""
    from shoal.games.lab.entrants import load_policy
    from shoal.games.lab.games import wilson
    from shoal.vector.kernel import KernelBatch
    from shoal.worlds.connect4.lab.solver import solve
    from shoal.worlds.connect4.lanes.kernel import Connect4
    from shoal.worlds.connect4.world import WORLD

    if command.positions < 1:
        raise ConfigError(f"positions must be at least 1, not {command.positions}.")
    with closing(KernelBatch(Connect4, 1)) as lanes:
        policy = load_policy(command.run, WORLD, lanes)
    position = positions(command.positions, command.seed)
    values = solve(position["own"], position["board"], position["stones"])
    chosen = policy(position["obs"], position["mask"], position["stones"] % 2)
    share = float((values[np.arange(len(values)), chosen] == values.max(1)).mean())
    keeps = float((np.sign(values[np.arange(len(values)), chosen]) == np.sign(values.max(1))).mean())
    low, high = wilson(share, len(values))
    print(
        f"{command.run}: the best move in {share:.1%} ({low:.1%} to {high:.1%}) of {len(values)} solved positions, "
        f"and one that keeps the outcome in {keeps:.1%}."
    )
    return 0


def positions(count: int, seed: int) -> dict[str, np.ndarray]:
    """Of random games, one from each: stones of the player to move (`own`) and of both, what it sees and may do."""
    from shoal.vector.kernel import KernelBatch
    from shoal.worlds.connect4.lab.solver import FEWEST
    from shoal.worlds.connect4.lanes.board import completing_cells, landing_cells
    from shoal.worlds.connect4.lanes.kernel import Connect4, stones_on_turn

    rng = np.random.default_rng(seed)
    rows: dict[str, list] = {name: [] for name in ("own", "board", "stones", "obs", "mask")}
    with closing(KernelBatch(Connect4, 512)) as lanes:
        obs, info = lanes.reset(seed=seed)
        wanted = rng.integers(FEWEST, MOST_STONES + 1, 512)
        while len(rows["own"]) < count:
            for lane in np.flatnonzero(lanes.lane_state["stones"] == wanted):
                record = lanes.lane_state[lane : lane + 1].view(np.recarray)[0]
                own, board, turn = int(stones_on_turn(record)), int(record.board), info["turn"][lane]
                if completing_cells(own, board) & landing_cells(board):
                    continue
                found = (own, board, int(record.stones), obs[lane, turn], info["action_mask"][lane, turn])
                for name, value in zip(rows, found, strict=True):
                    rows[name].append(value)
            action = (rng.random(info["action_mask"].shape) * info["action_mask"]).argmax(-1)
            obs, _, terminated, _, info = lanes.step(action)
            wanted[terminated] = rng.integers(FEWEST, MOST_STONES + 1, int(terminated.sum()))
    return {name: np.array(values[:count]) for name, values in rows.items()}


BEST_MOVES = Verb(BestMovesCommand, run)
