"""The doors of the classic worlds."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from shoal.options import Count, Number, O
from shoal.world import BatchOptions, World

if TYPE_CHECKING:
    from shoal.vector.batch import Batch


@dataclass(frozen=True)
class CartPoleOptions:
    """Balance a pole on a cart."""

    gravity: Number = 9.8
    """m/s²."""
    cart_mass: Number = 1.0
    """kg."""
    pole_mass: Number = 0.1
    """kg."""
    half_length: Number = 0.5
    """Half the length of the pole, m."""
    force: Number = 10.0
    """Force of a push, N."""
    dt: Number = 0.02
    """Seconds of a step."""
    max_steps: Count = 500
    """Steps after which an episode is truncated."""


@dataclass(frozen=True)
class PendulumOptions:
    """Swing a pendulum up."""

    gravity: Number = 10.0
    """m/s²."""
    mass: Number = 1.0
    """kg."""
    length: Number = 1.0
    """m."""
    dt: Number = 0.05
    """Seconds of a step."""
    max_steps: Count = 200
    """Steps after which an episode is truncated."""


@dataclass(frozen=True)
class AcrobotOptions:
    """Swing a two-link arm above the bar."""

    mass_1: Number = 1.0
    """Of the upper link, kg."""
    mass_2: Number = 1.0
    """Of the lower link, kg."""
    length_1: Number = 1.0
    """Of the upper link, m."""
    centre_1: Number = 0.5
    """From the bar to the upper link's centre of mass, m."""
    centre_2: Number = 0.5
    """From the joint to the lower link's centre of mass, m."""
    inertia: Number = 1.0
    """Moment of inertia of each link, kg m²."""
    gravity: Number = 9.8
    """m/s²."""
    dt: Number = 0.2
    """Seconds of a step."""
    max_steps: Count = 500
    """Steps after which an episode is truncated."""


@dataclass(frozen=True)
class MountainCarOptions:
    """Rock a car out of a valley."""

    force: Number = 0.001
    """Of the engine, as a change of speed per step."""
    gravity: Number = 0.0025
    """On a vertical slope, as a change of speed per step."""
    goal: Number = 0.5
    """Where the flag stands."""
    max_steps: Count = 200
    """Steps after which an episode is truncated."""


@dataclass(frozen=True)
class MountainCarContinuousOptions(MountainCarOptions):
    """The same with a continuous engine."""

    force: Number = 0.0015
    goal: Number = 0.45
    max_steps: Count = 999


def _make(kernel: str, num_envs: int, options: O, batch: BatchOptions) -> Batch:
    from shoal.vector.kernel import KernelBatch

    module, _, name = kernel.partition(":")
    lanes = getattr(import_module(f"shoal.worlds.classic.lanes.{module}"), name)
    return KernelBatch(lanes(**asdict(options)), num_envs, **batch.given())  # type: ignore[call-overload]


def _world(name: str, gym_id: str, summary: str, options: type[O], kernel: str, continuous: bool = False) -> World[O]:
    lab = f"shoal.worlds.classic.lab:{name.upper().replace('-', '_')}"
    return World(name, gym_id, summary, options, partial(_make, kernel), lab, continuous=continuous)


CARTPOLE = _world("cartpole", "shoal/CartPole-v1", "balance a pole on a cart", CartPoleOptions, "cartpole:CartPole")
PENDULUM = _world(
    "pendulum",
    "shoal/Pendulum-v1",
    "swing a pendulum up, continuous torque",
    PendulumOptions,
    "pendulum:Pendulum",
    continuous=True,
)
ACROBOT = _world("acrobot", "shoal/Acrobot-v1", "swing a two-link arm above the bar", AcrobotOptions, "acrobot:Acrobot")
MOUNTAINCAR = _world(
    "mountaincar", "shoal/MountainCar-v0", "rock a car out of a valley", MountainCarOptions, "mountaincar:MountainCar"
)
MOUNTAINCAR_CONTINUOUS = _world(
    "mountaincar-continuous",
    "shoal/MountainCarContinuous-v0",
    "the same with a continuous engine",
    MountainCarContinuousOptions,
    "mountaincar:MountainCarContinuous",
    continuous=True,
)
