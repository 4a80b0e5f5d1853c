"""What a person sees while an experiment trains: one panel for all its runs, or plain lines anywhere but a terminal."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table

from shoal.training.display import LINE_SECONDS, PANEL_SECONDS, duration
from shoal.training.interrupt import Output
from shoal.training.metrics import EVALUATED, RETURN, Row

STOPPING = "Every run finishes its iteration, then saves. Ctrl-C again stops at once."
MOST_ROWS = 24
"""Runs in the panel; of more, those that are at work and the latest others."""


class Progress:
    """Runs by name, how far each is, and what has become of it."""

    def __init__(self, title: str, names: Sequence[str], total_steps: int, quiet: bool = False) -> None:
        self.title, self.total_steps = title, total_steps
        self.console = Output(quiet=quiet)
        self.rows: dict[str, Row] = {name: {"step": 0} for name in names}
        self.state: dict[str, str] = dict.fromkeys(names, "waiting")
        self._shown_at = 0.0
        self._told = False
        self._line = ""
        self._live = (
            Live(console=self.console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
            if self.console.is_terminal and not quiet
            else None
        )
        if self._live is not None:
            self._live.start()

    def begin(self, name: str, step: int = 0) -> None:
        """A run is at work, from `step` on."""
        self.rows.setdefault(name, {"step": step})
        self.state[name] = "training"
        self._show()

    def row(self, name: str, row: Row) -> None:
        """A run is further."""
        self.rows[name] = row
        self._show()

    def end(self, name: str, state: str, steps: int | None = None) -> None:
        """A run has ended: done, stopped or failed."""
        self.state[name] = state
        if steps is not None:
            self.rows[name] = {**self.rows[name], "step": steps}
        self._show(at_once=True)

    def say(self, sentence: str) -> None:
        """A sentence above the panel."""
        self.console.print(sentence, highlight=False, soft_wrap=True)

    def stop(self, sentence: str = STOPPING) -> None:
        """Say, once and not from a signal's handler, that all runs are being ended."""
        if not self._told:
            self._told = True
            self.say(sentence)

    def close(self) -> None:
        """Show the last state and leave it."""
        self._show(at_once=True)
        if self._live is not None:
            self._live.stop()

    def _show(self, at_once: bool = False) -> None:
        every = LINE_SECONDS if self._live is None else PANEL_SECONDS
        if not at_once and time.monotonic() - self._shown_at < every:
            return
        self._shown_at = time.monotonic()
        if self._live is not None:
            self._live.update(self._panel(), refresh=True)
        elif self.state and (line := self._in_words()) != self._line:
            self._line = line
            self.say(line)

    def _in_words(self) -> str:
        ended = sum(state not in ("waiting", "training") for state in self.state.values())
        steps = sum(min(row["step"], self.total_steps) for row in self.rows.values())
        parts = [f"{ended} of {len(self.state)} runs ended", f"step {steps:,}/{self.total_steps * len(self.state):,}"]
        parts += [
            f"{name} {_number(row)}"
            for name, row in self.rows.items()
            if self.state[name] == "training" and _number(row)
        ]
        return "  ".join(parts)

    def _panel(self) -> Panel:
        table = Table.grid(padding=(0, 2), expand=True)
        table.add_column(no_wrap=True)
        table.add_column(ratio=1)
        for _ in range(4):
            table.add_column(justify="right", no_wrap=True)
        names = [name for name in self.state if self.state[name] == "training"]
        names += [name for name in self.state if name not in names][: max(0, MOST_ROWS - len(names))]
        for name in sorted(names, key=list(self.state).index):
            row, state = self.rows[name], self.state[name]
            speed = f"{row['time/fps']:,.0f} steps/s" if "time/fps" in row and state == "training" else ""
            left = f"left {duration(row['time/left'])}" if "time/left" in row and state == "training" else state
            bar = ProgressBar(total=self.total_steps, completed=min(row["step"], self.total_steps), width=None)
            table.add_row(f"[bold]{name}", bar, f"{row['step']:,}", _number(row), speed, f"[dim]{left}")
        return Panel(table, title=self.title, title_align="left", border_style="dim")


def _number(row: Row) -> str:
    """The latest return: of an evaluation if there was one."""
    value = row.get(EVALUATED, row.get(RETURN))
    return "" if value is None else f"{value:.4g}"
