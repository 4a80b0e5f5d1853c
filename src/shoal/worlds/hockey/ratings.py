"""Ratings from games, by openskill's Plackett-Luce model (Weng & Lin 2011): the free kin of TrueSkill."""

from __future__ import annotations

from typing import Any

from shoal.errors import missing_extra


class Ratings:
    """A rating for every name, which games change. The number shown is mu - 3 sigma, as is usual."""

    def __init__(self) -> None:
        try:
            from openskill.models import PlackettLuce
        except ImportError:
            raise missing_extra("openskill", "train", "Rating players") from None
        self._model: Any = PlackettLuce()
        self._ratings: dict[str, Any] = {}

    def note(self, one: str, two: str, score: float) -> None:
        """A game of `one` against `two` ended with 1, 0.5 or 0 for `one`."""
        teams = [[self._of(one)], [self._of(two)]]
        (first,), (second,) = self._model.rate(teams, ranks=[1 - score, score])
        self._ratings[one], self._ratings[two] = first, second

    def shown(self, name: str) -> float:
        """mu - 3 sigma."""
        return float(self._of(name).ordinal())

    def table(self) -> list[tuple[str, float, float, float]]:
        """(name, shown, mu, sigma), best first."""
        rows = [(name, self.shown(name), float(r.mu), float(r.sigma)) for name, r in self._ratings.items()]
        return sorted(rows, key=lambda row: -row[1])

    def state(self) -> dict[str, tuple[float, float]]:
        """mu and sigma by name."""
        return {name: (float(r.mu), float(r.sigma)) for name, r in self._ratings.items()}

    def load(self, state: dict[str, tuple[float, float]]) -> None:
        self._ratings = {name: self._model.rating(mu=mu, sigma=sigma) for name, (mu, sigma) in state.items()}

    def _of(self, name: str) -> Any:
        if name not in self._ratings:
            self._ratings[name] = self._model.rating()
        return self._ratings[name]
