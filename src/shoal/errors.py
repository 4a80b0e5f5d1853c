"""Every error a user can meet. Each message says what happened, with the numbers, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ShoalError(Exception):
    """Base of all errors that Shoal raises on purpose."""


class ConfigError(ShoalError, ValueError):
    """An argument or a configuration field cannot be used as given."""


class ActionError(ShoalError, ValueError):
    """Actions of the wrong number, shape, type or range."""


class StateError(ShoalError, RuntimeError):
    """A call at the wrong moment: before reset, after close, twice."""


class LaneFault(ShoalError, RuntimeError):
    """A lane crashed, hung or returned something impossible. `lane` says which one, where that is known."""

    def __init__(self, message: str, lane: int | None = None) -> None:
        super().__init__(message)
        self.lane = lane


class KernelError(ShoalError, RuntimeError):
    """A mistake in a user's kernel; the message names their function, file and line."""


class RunError(ShoalError, RuntimeError):
    """A run folder or a checkpoint that cannot be written, read or continued."""


class UnknownName(ShoalError, LookupError):
    """A name that nothing is registered under; the message proposes the nearest."""


class MissingExtra(ShoalError, ImportError):
    """An optional dependency is not installed; the message is the command that installs it."""


def unknown_name(kind: str, name: str, known: Iterable[str], listed_by: str) -> UnknownName:
    """`UnknownName` that proposes the nearest of `known` and says which command lists them all."""
    known = sorted(known)
    folded = {candidate.lower(): candidate for candidate in known}
    near = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.5)
    hint = f" Did you mean {folded[near[0]]!r}?" if near else ""
    return UnknownName(f"No {kind} {name!r}.{hint} {listed_by} lists all {len(known)}.")


def missing_extra(package: str, extra: str, purpose: str) -> MissingExtra:
    """`MissingExtra` naming the `pip install` that adds `package`."""
    return MissingExtra(f"{purpose} needs {package}, which is not installed: pip install 'shoal[{extra}]'.")
