"""What can go wrong with a lane, and the sentence for each."""

from __future__ import annotations

import enum
import traceback
from typing import NamedTuple

CRASHES = (Exception, SystemExit)
"""What an environment may raise. One that leaves the process is not to take the whole run with it."""


class FaultKind(enum.IntEnum):
    """Why a lane was lost; the number is what `info["fault"]` holds."""

    RAISED = 1  # the environment raised an exception
    INVALID = 2  # it returned something impossible: wrong shape or type, NaN
    LOST = 3  # its worker process died
    HUNG = 4  # it did not come back within `step_timeout`


class Fault(NamedTuple):
    """One fault of one lane, as `batch.faults` keeps it."""

    lane: int
    kind: FaultKind
    reason: str


class InvalidValue(ValueError):
    """An environment returned something its spaces do not allow; the message says what."""


def fault_kind(error: BaseException) -> FaultKind:
    """INVALID for what our own checks found, RAISED for the environment's own exceptions."""
    return FaultKind.INVALID if isinstance(error, InvalidValue) else FaultKind.RAISED


def describe_exception(lane: int, during: str, error: BaseException) -> str:
    """The sentence for an exception out of `lane`, followed by the original traceback where it helps."""
    if isinstance(error, InvalidValue):
        return f"Lane {lane} returned from {during} something impossible: {error}. Fix the environment."
    text = "".join(traceback.format_exception(error)).rstrip()
    hint = f" {_OLD_API}" if _speaks_of_old_api(error) else ""
    return f"Lane {lane} raised {type(error).__name__} in {during}: {error}{hint}\nOriginal traceback:\n{text}"


_OLD_API = (
    "(Environments have reset(seed=..., options=...) -> obs, info and step(action) -> obs, reward, terminated, "
    "truncated, info; those of the older Gym had fewer, and need a wrapper.)"
)


def _speaks_of_old_api(error: BaseException) -> bool:
    text = str(error)
    return "values to unpack" in text or "unexpected keyword argument 'seed'" in text
