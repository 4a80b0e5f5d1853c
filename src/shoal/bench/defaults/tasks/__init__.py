"""The tasks by name. Half of them are left out when defaults are chosen, and judge the choice.

Only the standard library is imported here: every contender reads it in a process of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from shoal.options import Values

KERNELS = "shoal.bench.defaults.tasks"


@dataclass(frozen=True)
class Task:
    """A world, and for how many steps it is learned."""

    name: str
    world: str
    """Anything `shoal.make` takes."""
    steps: int
    held_out: bool
    options: Values = field(default_factory=dict)
    continuous: bool = False
    memory: bool = False
    """Who does not remember cannot solve it: contenders that have a recurrent agent use it."""


def _ours(module: str, kernel: str) -> str:
    return f"{KERNELS}.{module}:{kernel}"


_CHOOSING = (
    Task("cartpole", "cartpole", 50_000, False),
    Task("mountaincar-continuous", "mountaincar-continuous", 100_000, False, continuous=True),
    Task("pendulum", "pendulum", 100_000, False, continuous=True),
    Task("breakout", "minatar-breakout", 100_000, False),
    Task("space-invaders", "minatar-space-invaders", 100_000, False),
    Task("windy-grid", _ours("grids", "WindyGrid"), 100_000, False),
    Task("lake", _ours("grids", "Lake"), 100_000, False),
    Task("point", _ours("control", "Point"), 50_000, False, continuous=True),
    Task("point-large", _ours("control", "Point"), 50_000, False, {"unit": 1e3}, continuous=True),
    Task("catch", _ours("short", "Catch"), 30_000, False),
    Task("knapsack", _ours("masked", "Knapsack"), 50_000, False),
    Task("recall", _ours("memory", "Recall"), 50_000, False, memory=True),
    Task("inventory", _ours("trade", "Inventory"), 50_000, False),
)
_JUDGING = (
    Task("acrobot", "acrobot", 100_000, True),
    Task("mountaincar", "mountaincar", 100_000, True),
    Task("asterix", "minatar-asterix", 100_000, True),
    Task("freeway", "minatar-freeway", 100_000, True),
    Task("cliff", _ours("grids", "Cliff"), 50_000, True),
    Task("rooms", _ours("grids", "Rooms"), 100_000, True),
    Task("point-small", _ours("control", "Point"), 50_000, True, {"unit": 1e-3}, continuous=True),
    Task("arm", _ours("control", "Arm"), 100_000, True, continuous=True),
    Task("lander", _ours("control", "Lander"), 100_000, True, continuous=True),
    Task("bandit", _ours("short", "Bandit"), 20_000, True),
    Task("machines", _ours("masked", "Machines"), 50_000, True),
    Task("t-maze", _ours("memory", "TMaze"), 50_000, True, memory=True),
    Task("queue", _ours("trade", "Queue"), 100_000, True),
)
TASKS = {task.name: task for task in (*_CHOOSING, *_JUDGING)}
