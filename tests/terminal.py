"""A pseudo-terminal to run something on, and what is left to read there in the end."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import sys
import threading

WIDTH, HEIGHT = 160, 40
_PIECES = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|([\r\n])|([^\x1b\r\n])")


class Screen:
    """The lines of a terminal, those that have scrolled away included, for the few sequences that a live panel uses."""

    def __init__(self, width: int = WIDTH) -> None:
        self.width, self.lines, self._row, self._column = width, [""], 0, 0
        self.frames: list[str] = []  # what each line was when it was erased

    def feed(self, text: str) -> None:
        for parameters, command, control, character in _PIECES.findall(text):
            if control == "\r":
                self._column = 0
            elif control:
                self._down()
            elif character:
                self._write(character)
            elif command == "A":
                self._row = max(self._row - int(parameters or 1), 0)
            elif command == "K":
                assert parameters == "2", parameters
                self.frames.append(self.lines[self._row])
                self.lines[self._row] = ""
            else:  # colours, and whether the cursor shows
                assert command in "mhl", (parameters, command)

    def _write(self, character: str) -> None:
        if self._column == self.width:
            self._down()
            self._column = 0
        line = self.lines[self._row].ljust(self._column)
        self.lines[self._row] = line[: self._column] + character + line[self._column + 1 :]
        self._column += 1

    def _down(self) -> None:
        self._row += 1
        if self._row == len(self.lines):
            self.lines.append("")


@contextlib.contextmanager
def terminal(monkeypatch):
    """While entered, standard output is a terminal; afterwards the `Screen` shows what it shows."""
    screen, parts = Screen(), []
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    monkeypatch.setenv("LINES", str(HEIGHT))
    ours, theirs = pty.openpty()

    def read() -> None:
        with contextlib.suppress(OSError):  # a closed terminal answers with an error
            while part := os.read(ours, 65536):
                parts.append(part)

    reader = threading.Thread(target=read)
    reader.start()
    with monkeypatch.context() as patch, open(theirs, "w") as stdout:
        patch.setattr(sys, "stdout", stdout)
        yield screen
    reader.join()
    os.close(ours)
    screen.feed(b"".join(parts).decode())
