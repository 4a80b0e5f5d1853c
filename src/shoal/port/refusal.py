"""What stands in the way of compiling an environment: where it is, what it is, and what to write instead."""

from __future__ import annotations

from dataclasses import dataclass

from shoal.errors import ShoalError


class PortError(ShoalError):
    """An environment cannot be compiled as it is, or its compiled form differs from the original."""


class Outgrown(PortError):
    """A list had more items than the kernel has room for."""


@dataclass(frozen=True)
class Obstacle:
    """One construct that cannot be translated."""

    file: str
    line: int
    function: str
    construct: str
    reason: str
    instead: str

    def sentence(self) -> str:
        """`file:line, in step: ...`, in one sentence with its remedy."""
        return f"{self.file}:{self.line}, in {self.function}: `{self.construct}` {self.reason}. {self.instead}"


class Refused(PortError):
    """Translation came to an obstacle."""

    def __init__(self, obstacle: Obstacle, error: Exception | None = None) -> None:
        super().__init__(obstacle.sentence())
        self.obstacle = obstacle
        self.error = error
        """What the original raises there, always, and whoever stands around it may catch."""


class Cannot(Exception):
    """Raised deep inside, where the line is not known: the reason, and what to write instead."""

    def __init__(self, reason: str, instead: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.instead = instead or "Write it with plain numbers, fixed-size arrays and loops, or keep compiled=False."


class Raises(Cannot):
    """The original raises here, always."""

    def __init__(self, error: Exception) -> None:
        super().__init__(f"raises {type(error).__name__}: {error}")
        self.error = error


class Restart(Exception):
    """Something must be stored in another way than was assumed: translate again with what is known now."""

    refused: Refused | None = None
    """What to say if translating again and again leads here."""


UNSETTLED = Cannot("does not settle on one type for what it changes", "Give every variable and attribute one type.")
