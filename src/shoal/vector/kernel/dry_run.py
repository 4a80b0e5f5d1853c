"""A few steps of a new kernel as ordinary Python, before the compiler sees it.

Python checks every index and shape and knows the line it is on; compiled code knows neither. Mistakes are found
here, with the author's own line.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import gymnasium as gym
import numpy as np

from shoal.errors import KernelError
from shoal.vector.kernel.compiler import author_functions, explain
from shoal.vector.kernel.kernel import Kernel
from shoal.vector.kernel.rng import Rng, seed_words
from shoal.vector.kernel.source import SourceSet, where
from shoal.vector.seeding import lane_keys
from shoal.vector.spaces import empty_batch, num_actions

STEPS = 4


def dry_run(kernel: Kernel, lane: np.ndarray) -> None:
    """Step a copy of one lane (a record array [1], settings included); `KernelError` naming function and line."""
    functions = SourceSet(wrap=lambda function: function)
    call = author_functions(kernel, functions)
    s, p = lane.copy().view(np.recarray)[0], kernel.param_record().view(np.recarray)[0]
    rng = Rng(seed_words(lane_keys(0, 1))[0])
    actions = kernel.action_space
    actions.seed(0)

    def look() -> None:
        call["observe"](s, p, _row(kernel.observation_space))
        if "mask" in call:
            call["mask"](s, p, np.zeros(num_actions(actions), np.bool_))
        if kernel.info is not None:
            call["inform"](s, p, np.zeros(1, kernel.info).view(np.recarray)[0])

    try:
        with np.errstate(all="ignore"):
            call["reset"](s, p, rng)
            look()
            for _ in range(STEPS):
                _check_result(kernel, call["step"](s, actions.sample(), p, rng))
                look()
    except KernelError:
        raise
    except Exception as error:
        raise explain(error, kernel, functions.files) from error


def _check_result(kernel: Kernel, result: Any) -> None:
    if not (isinstance(result, tuple) and len(result) == 3 and all(np.ndim(part) == 0 for part in result)):
        step = kernel.function("step")
        raise KernelError(
            f"{where(step)} returned {result!r}. "  # type: ignore[arg-type]
            "It must return three numbers: reward, terminated, truncated."
        )


def _row(space: gym.Space) -> Any:
    """An `out` of its own for one lane."""
    if isinstance(space, gym.spaces.Dict):
        return namedtuple("Out", list(space.spaces))(*map(_row, space.spaces.values()))
    row = empty_batch(space)
    return row if row.shape else row.reshape(1)
