"""A pool of past policies, drawn from by how well the learner does against them, and ratings of everybody.

Ratings from games are openskill's Plackett-Luce model (Weng & Lin 2011): the free kin of TrueSkill.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from shoal.agents.frozen import FrozenPolicy
from shoal.errors import missing_extra
from shoal.options import Values

if TYPE_CHECKING:
    from openskill.models import PlackettLuceRating

STRATEGIES = ("latest", "uniform", "prioritised")
"""How a member is chosen: the latest, any, or most often those that are neither beaten nor hopeless."""


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
        if len(self.members) == self.capacity:
            self.members[int(np.argmax([m.won for m in self.members]))] = Member(policy, step)
        else:
            self.members.append(Member(policy, step))

    def note(self, number: int, score: float) -> None:
        """A game against member `number` ended with 1, 0.5 or 0 for the learner."""
        member = self.members[number]
        member.won = self.memory * member.won + (1 - self.memory) * score

    def weights(self, strategy: str) -> np.ndarray:
        """Shares [members] by which opponents are drawn, summing to one."""
        if strategy == "latest":
            return np.eye(len(self.members))[int(np.argmax([m.step for m in self.members]))]
        if strategy == "prioritised":
            won = np.array([m.won for m in self.members])
            weights = won * (1 - won) + 1e-3  # nobody is forgotten altogether
            return weights / weights.sum()
        return np.full(len(self.members), 1.0 / len(self.members))

    def state(self) -> dict[str, np.ndarray]:
        """Everything, as arrays by name."""
        policies = {
            f"{k}.{name}": array
            for k, member in enumerate(self.members)
            for name, array in member.policy.tensors().items()
        }
        steps, won = np.array([m.step for m in self.members], np.int64), np.array([m.won for m in self.members])
        return {"steps": steps, "won": won, **policies}

    def load(self, state: Mapping[str, np.ndarray], settings: Values) -> None:
        """Go back to what `state` returned; `settings` are those of the policies, which are all alike."""
        self.members = []
        for k, (step, won) in enumerate(zip(state["steps"], state["won"], strict=True)):
            arrays = {n.removeprefix(f"{k}."): a for n, a in state.items() if n.startswith(f"{k}.")}
            self.members.append(Member(FrozenPolicy.from_tensors(arrays, settings), int(step), float(won)))


def score_of(winner: float) -> float:
    """1 for a game that was won (a positive number), 0.5 for a draw, 0 for a loss."""
    return 0.5 + 0.5 * float(np.sign(winner))


class Ratings:
    """A rating for every name, which games change. The number shown is mu - 3 sigma, as is usual."""

    def __init__(self) -> None:
        try:
            from openskill.models import PlackettLuce
        except ImportError:
            raise missing_extra("openskill", "train", "Rating players") from None
        self._model = PlackettLuce()
        self._ratings: dict[str, PlackettLuceRating] = {}

    def note(self, one: str, two: str, score: float) -> None:
        """A game of `one` against `two` ended with 1, 0.5 or 0 for `one`."""
        teams = [[self._of(one)], [self._of(two)]]
        (self._ratings[one],), (self._ratings[two],) = self._model.rate(teams, ranks=[1 - score, score])

    def shown(self, name: str) -> float:
        """mu - 3 sigma."""
        return float(self._of(name).ordinal())

    def table(self) -> list[tuple[str, float, float, float]]:
        """(name, shown, mu, sigma), best first."""
        rows = [(name, self.shown(name), float(r.mu), float(r.sigma)) for name, r in self._ratings.items()]
        return sorted(rows, key=lambda row: -row[1])

    def state(self) -> dict[str, np.ndarray]:
        """Everything, as arrays by name: the names, one in a line, and mu and sigma of each, [names, 2]."""
        numbers = [(r.mu, r.sigma) for r in self._ratings.values()]
        names = "\n".join(self._ratings).encode()
        return {"rated": np.array(list(names), np.uint8), "ratings": np.array(numbers, np.float64).reshape(-1, 2)}

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Go back to what `state` returned."""
        names = state["rated"].tobytes().decode().splitlines()
        numbers = zip(names, state["ratings"].tolist(), strict=True)
        self._ratings = {name: self._model.rating(mu=mu, sigma=sigma) for name, (mu, sigma) in numbers}

    def _of(self, name: str) -> PlackettLuceRating:
        if name not in self._ratings:
            self._ratings[name] = self._model.rating()
        return self._ratings[name]
