"""The ways to run a kernel, and what rewritten source refers to in each of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba.core import types as numba_types
from numba.core.errors import TypingError
from numba.extending import overload

from shoal.vector.kernel import checks, numbers
from shoal.vector.kernel.faults import KernelFault
from shoal.vector.kernel.fill import fill, filler

Wrap = Callable[[Callable], Callable]


@dataclass(frozen=True)
class Build:
    """Which of the ways to run a kernel the source is rewritten for."""

    compiled: bool
    checked: bool = False
    turn: Callable[[], None] = lambda: None
    """Called at every turn of a `while` loop, as Python."""

    def namespace(self, wrap: Wrap) -> dict[str, Any]:
        """What the rewritten source refers to."""
        python = not self.compiled
        checked = self.checked
        names: dict[str, Any] = {
            "widen": numbers.widen,
            "invert": numbers.invert,
            "square": numbers.wrapped(_square) if python else wrap(_square),
            "cube": numbers.wrapped(_cube) if python else wrap(_cube),
            "sqrt": numbers.MATH.sqrt if python else math.sqrt,
            "LShift": checks.shift_left if checked else numbers.shift_left,
            "RShift": checks.shift_right if checked else numbers.shift_right,
            "Pow": checks.power if checked else numbers.power,
            "int": checks.whole if checked else numbers.whole if python else int,
            "float": float if python else wrap(_float),
            "abs": numbers.wrapped(abs) if python else abs,
            "round": numbers.rounded if python else round,
            "fit": checks.fit if checked else numbers.fit,
            "outside": checks.outside,
            "beyond": checks.beyond,
            "at": checks.at,
            "count": checks.count,
            "weights": checks.weights,
            "fill": fill if self.compiled else filler(checks.fit if checked else numbers.fit),
            "turn": self.turn,
            "reward": reward,
            "flag": flag,
            "Fault": KernelFault,
            **(numbers.PYTHON_OPERATORS if python else {}),
            **(checks.CHECKED_OPERATORS if checked else {}),
            **{f"array_{name}": numbers.wrapped(f) if python else wrap(f) for name, f in numbers.ARRAY_METHODS.items()},
        }
        return {f"_k_{name}": value for name, value in names.items()}


def _square(x):
    return x * x


def _float(x):
    return x * 1.0  # of truth values too, which Numba's `float` does not take


def _cube(x):
    return x * x * x


def reward(x: Any) -> float:
    """The reward that `step` returns, which must be a number."""
    if isinstance(x, bool) or not isinstance(x, int | float):
        raise KernelFault(f"step returns {x!r} as its reward; the order is reward, terminated, truncated")
    return float(x)


def flag(x: Any) -> bool:
    """`terminated` or `truncated`, which must be true or false."""
    if not isinstance(x, bool):
        raise KernelFault(f"step returns {x!r} where a bool belongs; the order is reward, terminated, truncated")
    return x


@overload(reward)
def _reward_compiled(x):
    if isinstance(x, numba_types.Boolean):
        raise TypingError("kernel: step returns a bool as its reward; the order is reward, terminated, truncated")
    return (lambda x: np.float64(x)) if isinstance(x, numba_types.Number) else None


@overload(flag)
def _flag_compiled(x):
    if isinstance(x, numba_types.Number):
        raise TypingError(
            "kernel: step returns a number where a bool belongs; the order is reward, terminated, truncated"
        )
    return lambda x: x
