"""What the suite reports: findings, and the exceptions by which a property speaks."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

BROKEN = "broken"
NOT_OFFERED = "not offered"
NOT_SEEN = "not seen"


@dataclass(frozen=True)
class Finding:
    """One promise that a batch does not keep, does not offer, or gave no occasion to test."""

    promise: str
    """Name of the promise, e.g. "same seed same trajectory"."""
    sentence: str
    """What was seen, with the numbers of the smallest case that shows it."""
    severity: str
    """BROKEN, NOT_OFFERED or NOT_SEEN."""

    def __str__(self) -> str:
        return f"{self.severity}: {self.promise}. {self.sentence}"


class Broken(Exception):
    """A property's verdict: the promise is not kept, and how that shows."""


class NotOffered(Exception):
    """A property's verdict: the batch has nothing of the kind."""


class ContractBroken(AssertionError):
    """Raised by `assert_batch`; `findings` holds what was found."""

    def __init__(self, findings: list[Finding]) -> None:
        self.findings = findings
        super().__init__("\n".join(map(str, findings)))


def describe(error: BaseException) -> str:
    """An exception on one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__


@contextlib.contextmanager
def calls(what: str) -> Iterator[None]:
    """Turn an exception out of the batch into a verdict that says in which call it came."""
    try:
        yield
    except (Broken, NotOffered):
        raise
    except Exception as error:
        raise Broken(f"{what} raised {describe(error)}.") from error
