"""The doors of the five games."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Literal

from shoal.options import Count, Number, O
from shoal.world import BatchOptions, World

if TYPE_CHECKING:
    from shoal.vector.batch import Batch


@dataclass(frozen=True)
class GameOptions:
    """One of MinAtar's games."""

    actions: Literal["minimal", "full"] = "minimal"
    """The moves that mean something in this game, or all six: stay, left, up, right, down, fire."""
    sticky: Number = 0.1
    """How often the last move is made again instead of the chosen one."""
    max_steps: Count = 5_000
    """Steps after which an episode is truncated; the original has no such limit."""


@dataclass(frozen=True)
class RampingOptions(GameOptions):
    """A game that gets harder the longer it lasts."""

    ramping: bool = True
    """Whether it does."""


def _make(kernel: str, num_envs: int, options: O, batch: BatchOptions) -> Batch:
    from shoal.vector.kernel import KernelBatch

    module, _, name = kernel.partition(":")
    game = getattr(import_module(f"shoal.worlds.minatar.lanes.{module}"), name)
    return KernelBatch(game(**asdict(options)), num_envs, **batch.given())  # type: ignore[call-overload]


def _world(name: str, summary: str, options: type[O], kernel: str) -> World[O]:
    gym_id = f"shoal/MinAtar-{kernel.partition(':')[2]}-v1"
    return World(f"minatar-{name}", gym_id, summary, options, partial(_make, kernel), "shoal.worlds.minatar.lab:GAME")


BREAKOUT = _world("breakout", "break bricks with a ball, 10x10 board", GameOptions, "breakout:Breakout")
ASTERIX = _world("asterix", "take gold and avoid enemies, 10x10 board", RampingOptions, "asterix:Asterix")
FREEWAY = _world("freeway", "cross the traffic, 10x10 board", GameOptions, "freeway:Freeway")
SEAQUEST = _world("seaquest", "shoot, rescue divers and breathe, 10x10 board", RampingOptions, "seaquest:Seaquest")
SPACE_INVADERS = _world(
    "space-invaders", "shoot aliens before they land, 10x10 board", RampingOptions, "space_invaders:SpaceInvaders"
)
