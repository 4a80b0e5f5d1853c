"""Who a learner plays against: bots, itself, and a pool of past policies, drawn by how well it does against them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shoal.agents.frozen import FrozenPolicy
from shoal.errors import ConfigError
from shoal.worlds.hockey.versus import FIRST_POLICY, NOBODY, STRONG, WEAK

LEARNER = FIRST_POLICY
"""The number of the learner itself as it was after the last iteration; stored policies and the pool follow."""
AFTER_LEARNER = LEARNER + 1
STRATEGIES = ("latest", "uniform", "prioritised")


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


@dataclass
class Member:
    """One past policy, and how the learner does against it."""

    policy: FrozenPolicy
    step: int
    won: float = 0.5
    """Share of games won lately, draws counting half."""


@dataclass
class Pool:
    """Past policies, at most `capacity` of them: a new one takes the place of the one that is beaten most surely."""

    capacity: int = 24
    members: list[Member] = field(default_factory=list)
    memory: float = 0.95
    """Weight of the past in the share of games won."""

    def add(self, policy: FrozenPolicy, step: int) -> None:
        """Take in the policy of `step`."""
        member = Member(policy, step)
        if len(self.members) < self.capacity:
            self.members.append(member)
        else:
            self.members[int(np.argmax([m.won for m in self.members]))] = member

    def note(self, number: int, score: float) -> None:
        """A game against member `number` ended with 1, 0.5 or 0 for the learner."""
        member = self.members[number]
        member.won = self.memory * member.won + (1 - self.memory) * score

    def weights(self, strategy: str) -> np.ndarray:
        """Shares [members] by which opponents are drawn, summing to one."""
        count = len(self.members)
        if strategy == "latest":
            newest = max(range(count), key=lambda k: self.members[k].step)
            return np.eye(count)[newest]
        if strategy == "prioritised":
            won = np.array([m.won for m in self.members])
            weights = won * (1 - won) + 1e-3  # nobody is forgotten altogether
            return weights / weights.sum()
        return np.full(count, 1.0 / count)

    def state(self) -> dict[str, np.ndarray]:
        """Everything, as arrays by name."""
        named: dict[str, np.ndarray] = {
            "steps": np.array([m.step for m in self.members], np.int64),
            "won": np.array([m.won for m in self.members], np.float64),
        }
        for k, member in enumerate(self.members):
            named |= {f"{k}.{name}": array for name, array in member.policy.tensors().items()}
        return named

    def load(self, state: dict[str, np.ndarray], settings: dict[str, Any]) -> None:
        """Go back to what `state` returned; `settings` are those of the policies, which are all alike."""
        self.members = []
        for k, (step, won) in enumerate(zip(state["steps"], state["won"], strict=True)):
            arrays = {n.removeprefix(f"{k}."): a for n, a in state.items() if n.startswith(f"{k}.")}
            self.members.append(Member(FrozenPolicy.from_tensors(arrays, settings), int(step), float(won)))


def opponent_weights(mixture: Mixture, pool: Pool) -> list[float]:
    """Weights of nobody, weak, strong, the learner, the files and the members, as `VersusBatch` draws by.

    While the pool is empty, its share goes to the learner itself.
    """
    weights = [0.0] * AFTER_LEARNER
    weights[NOBODY], weights[WEAK], weights[STRONG] = mixture.nobody, mixture.weak, mixture.strong
    weights[LEARNER] = mixture.learner + (0.0 if pool.members else mixture.pool)
    members: Sequence[float] = (mixture.pool * pool.weights(mixture.strategy)).tolist() if pool.members else []
    return [*weights, *(share for _, share in mixture.files), *members]


def load_files(files: Sequence[str], obs_width: int, action_width: int) -> list[FrozenPolicy]:
    """The policies stored in `files`, checked to fit the rink."""
    loaded = []
    for path in files:
        policy = load_policy(path)
        policy.check_fits(obs_width, action_width, str(path))
        loaded.append(policy)
    return loaded


def load_policy(path: str) -> FrozenPolicy:
    """A stored policy, or the one in the latest checkpoint of a run folder."""
    from pathlib import Path

    if not Path(path).exists():
        raise ConfigError(f"There is no policy {path!r}. Name a run folder or a .safetensors file.")
    if Path(path).is_dir():
        from shoal.worlds.hockey.players import frozen_run

        return frozen_run(Path(path))
    return FrozenPolicy.load(path)


def score_of(winner: Any) -> float:
    """1 for a game that player 1 won, 0.5 for a draw, 0 for a loss."""
    return 0.5 + 0.5 * math.copysign(1.0, winner) if winner else 0.5
