"""Ctrl-C, SIGTERM, a terminal that is closed and output that nobody reads: the first one ends what is under way in good
order, the next one at once."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from rich.console import Console

from shoal.platform import HANGUP, silence

INTERRUPTED = "interrupted"
"""Why a run ended that was stopped by hand."""


class Stopped(Exception):
    """Something long was broken off because the run was stopped; its last checkpoint is from before that."""


FINISHING = "Finishing this iteration, then saving. Ctrl-C again stops at once."

SIGNALS = [number for number in (signal.SIGINT, signal.SIGTERM, HANGUP) if number is not None]


class Interruptible:
    """While entered, the first signal calls `stop()`; the next one interrupts at once.

    Outside the main thread, where Python delivers no signals, it does nothing.
    """

    def __init__(self, stop: Callable[[], None], say: Callable[[str], None] = lambda sentence: None) -> None:
        """`say` is told, once, that it is being stopped; from within a signal's handler."""
        self._stop, self._say = stop, say
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Interruptible:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if signal.getsignal(number) != signal.SIG_IGN:  # as `nohup` ignores that the terminal is closed
                    self._previous[number] = signal.signal(number, self._first)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _first(self, number: int, frame: FrameType | None) -> None:
        for each in self._previous:
            signal.signal(each, self._second)
        if number == HANGUP:
            silence(sys.stdout, sys.stderr)  # the terminal is gone, and writing to it would be an error
        self._say(FINISHING)
        self._stop()

    def _second(self, number: int, frame: FrameType | None) -> None:
        for each in self._previous:  # a third one need not wait for Python
            signal.signal(each, signal.SIG_DFL)
        raise KeyboardInterrupt


class Output(Console):
    """The terminal, or a pipe; when nobody reads it any more (`| head`), that counts as Ctrl-C."""

    def on_broken_pipe(self) -> None:
        silence(sys.stdout)
        signal.raise_signal(signal.SIGINT)
