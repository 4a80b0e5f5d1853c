"""What training in a world with seats can be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from shoal.errors import ConfigError

ITSELF, POOL = "itself", "pool"
"""Opponents that come of training: the learner as it was after the last iteration, and those before."""


@dataclass(frozen=True)
class GameTraining:
    """Who learns in lanes with seats, and against whom."""

    seats: Literal["shared", "versus", "separate", "joint"] = "shared"
    """shared: one network plays every seat, each a row of the rollout. versus: the learner sits in one seat, which
    changes with every episode, and opponents in the others. separate: a network for every role. joint: one controller
    sees and moves all seats at once."""
    central_value: bool = False
    """For shared: the value sees what all seats see; who acts still sees only its own part."""
    seat_number: bool = False
    """For shared and separate: a seat also sees which one it is, so that a network can play its seats differently."""
    roles: tuple[str, ...] = ()
    """For separate: the role of every seat, e.g. hunter hunter prey; every seat its own if none are named."""
    opponents: tuple[str, ...] = (ITSELF, f"{POOL}=4")
    """For versus, with their weights (1 if none is given): bots of the world, random, itself, pool (its past), run
    folders and stored policies, e.g. random=1 itself=2 pool=4."""
    pool_every: int = 100_000
    """Environment steps after which another policy joins the pool."""
    strategy: Literal["latest", "uniform", "prioritised"] = "prioritised"
    """How a member of the pool is chosen: the latest, any, or most often those that are neither beaten nor hopeless."""
    both_players: bool = False
    """For versus, with a replay memory: learn from the other player's transitions too, where a policy sits there."""
    mirror: bool = False
    """With a replay memory: learn from mirror images of half of the transitions, in worlds that have a symmetry."""
    eval_against: tuple[str, ...] = ()
    """For versus: bots to play at every evaluation; all that the world has if none is named."""
    eval_games: int = 200
    """Games against each of them."""

    def __post_init__(self) -> None:
        for name in ("pool_every", "eval_games"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, not {getattr(self, name)}.")
        if self.central_value and self.seats != "shared":
            raise ConfigError(f"central_value is for seats='shared', not {self.seats!r}.")
        if self.seat_number and self.seats not in ("shared", "separate"):
            raise ConfigError(f"seat_number is for seats='shared' and 'separate', not {self.seats!r}. Leave it out.")
        if self.both_players and self.seats != "versus":
            raise ConfigError(f"both_players is for seats='versus', not {self.seats!r}, where all seats learn already.")
        if self.roles and self.seats != "separate":
            raise ConfigError(f"roles are for seats='separate', not {self.seats!r}.")
        twice = [bot for bot in self.eval_against if self.eval_against.count(bot) > 1]
        if twice:
            raise ConfigError(f"eval_against names {twice[0]!r} twice. Name each bot once.")
        weights_of(self.opponents)


def weights_of(words: tuple[str, ...]) -> dict[str, float]:
    """Opponents and their weights, from words as "pool=4"."""
    weights: dict[str, float] = {}
    for word in words:
        name, _, number = word.partition("=")
        try:
            weight = float(number or 1)
        except ValueError:
            raise ConfigError(f"Invalid value for opponents: the weight in {word!r} is not a number.") from None
        if not 0 <= weight < float("inf"):
            raise ConfigError(f"Invalid value for opponents: the weight in {word!r} must not be negative or infinite.")
        if name in weights:
            raise ConfigError(f"Invalid value for opponents: {name!r} is named twice. Add its weights up.")
        weights[name] = weight
    if not sum(weights.values()) > 0:
        raise ConfigError(f"The weights of the opponents, {' '.join(words) or 'none'}, sum to zero. Raise one of them.")
    return weights
