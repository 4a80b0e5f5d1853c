"""Who a learner plays against on the rink: nobody, the bots, itself, stored policies, and a pool of its past."""

from __future__ import annotations

from dataclasses import dataclass

from shoal.games.lab.pool import Pool
from shoal.worlds.hockey.lanes.versus import FIRST_POLICY

LEARNER = FIRST_POLICY
"""The number of the learner itself as it was after the last iteration; stored policies and the pool follow."""
AFTER_LEARNER = LEARNER + 1


@dataclass(frozen=True)
class Mixture:
    """Shares of kinds of opponents; they need not sum to one."""

    nobody: float = 0.0
    weak: float = 0.0
    strong: float = 0.0
    learner: float = 0.0
    pool: float = 0.0
    strategy: str = "prioritised"
    """How a member of the pool is chosen: the latest, any, or most often those that are neither beaten nor hopeless."""
    files: tuple[tuple[str, float], ...] = ()
    """Stored policies and their shares."""


def opponent_weights(mixture: Mixture, pool: Pool) -> list[float]:
    """Weights of nobody, weak, strong, the learner, the files and the members, as `VersusBatch` draws by.

    While the pool is empty, its share goes to the learner itself.
    """
    learner = mixture.learner + (0.0 if pool.members else mixture.pool)
    members = (mixture.pool * pool.weights(mixture.strategy)).tolist() if pool.members else []
    files = [share for _, share in mixture.files]
    return [mixture.nobody, mixture.weak, mixture.strong, learner, *files, *members]
