"""Ctrl-C and SIGTERM: the first one ends what is under way in good order, the next one at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

INTERRUPTED = "interrupted"
"""Why a run ended that somebody stopped."""


class Stopped(Exception):
    """Something long was broken off because somebody stopped the run; its last checkpoint is from before it."""


FINISHING = "Finishing this iteration, then saving. Ctrl-C again stops at once."


class Interruptible:
    """While entered, the first SIGINT or SIGTERM calls `stop()`; the next one interrupts at once.

    Outside the main thread, where Python delivers no signals, it does nothing.
    """

    def __init__(self, stop: Callable[[], None], say: Callable[[str], None] = lambda sentence: None) -> None:
        """`say` is told, once, that it is being stopped; from within a signal's handler."""
        self._stop, self._say = stop, say
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Interruptible:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._first)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _first(self, number: int, frame: FrameType | None) -> None:
        for each in self._previous:
            signal.signal(each, self._second)
        self._say(FINISHING)
        self._stop()

    def _second(self, number: int, frame: FrameType | None) -> None:
        for each in self._previous:  # a third one need not wait for Python
            signal.signal(each, signal.SIG_DFL)
        raise KeyboardInterrupt
