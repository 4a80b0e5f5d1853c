"""What is measured: contenders, and the work that they are given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Run = Callable[[int], int]
"""`run(k)` steps the whole batch at least k times and returns how many times it did."""


class Unavailable(Exception):
    """A contender cannot take part here; the message says why in a few words."""


@dataclass(frozen=True)
class Contender:
    """One way to do the work."""

    name: str
    """How rows and tables call it, e.g. "gymnasium vector"."""
    entry: str
    """`module:function`; the function takes (num_envs, **options) and returns a `Run`."""
    options: dict[str, Any] = field(default_factory=dict)
    """What the function takes besides num_envs."""
    package: str | None = None
    """The peer's package, whose version is reported and whose absence is a note instead of a row."""
    max_envs: int = 2**30
    """Lanes beyond which it would only cost patience (one Python object per lane)."""
    environment: dict[str, str] = field(default_factory=dict)
    """Variables of its process."""


@dataclass(frozen=True)
class Work:
    """The same task for all contenders; the first one is Shoal, to which the others are compared."""

    name: str
    num_envs: int
    contenders: tuple[Contender, ...]
    clock: str = "cpu"
    """Which clock the ratio is taken from: "cpu" for one thread, "wall" where processes share the work."""
