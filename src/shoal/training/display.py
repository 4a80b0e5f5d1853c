"""What a person sees while a run trains: a live panel on a terminal, plain lines anywhere else."""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console, Group
from rich.constrain import Constrain
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from shoal.training.interrupt import Output
from shoal.training.lab import Headline
from shoal.training.metrics import EVALUATED, PHASES, RETURN, Row

PANEL_SECONDS = 0.25  # at most 4 Hz
LINE_SECONDS = 2.0
PHASE_STYLES = ("blue", "cyan", "yellow", "magenta", "green", "bright_black")


def make_display(title: str, total_steps: int, quiet: bool = False, headlines: Sequence[Headline] = ()) -> Display:
    """The panel if standard output is a terminal, else plain lines; nothing at all if `quiet`."""
    console = Output(quiet=quiet)
    kind = PanelDisplay if console.is_terminal and not quiet else LineDisplay
    return kind(title, total_steps, console, headlines)


class Display(ABC):
    """A listener of a run. Subclasses say how a row is shown and how often.

    `headlines` are the world's own numbers, which stand beside return and length.
    """

    every = LINE_SECONDS

    def __init__(self, title: str, total_steps: int, console: Console, headlines: Sequence[Headline] = ()) -> None:
        self.title, self.total_steps, self.console, self.headlines = title, total_steps, console, headlines
        self._row: Row = {}
        self._first: Row = {}  # compiling is part of what it took, and says nothing about the speed of the others
        self.look_back: Callable[[int], str | None] = lambda step: None
        """What there is to say of the run so far, asked after a quarter of the way and at the end."""
        self._has_looked_back = False
        self._shown_at = 0.0
        self._shown: Row = {}
        self._seconds = dict.fromkeys((f"time/{phase}" for phase in PHASES), 0.0)  # of the whole run so far
        self._lasting: Row = {}  # an evaluation, and what is not counted in every iteration, stays until the next one

    def row(self, step: int, row: Row) -> None:
        lasting = {headline.key for headline in self.headlines}
        self._lasting |= {key: value for key, value in row.items() if key.startswith("eval/") or key in lasting}
        for name in self._seconds:
            self._seconds[name] += row.get(name) or 0.0
        self._row = {"step": step, **self._lasting, **row, **self._seconds}
        self._first = self._first or self._row
        if step > self._first["step"]:
            self._row["time/left"] = time_left(self._row, self._first, self.total_steps)
        if time.monotonic() - self._shown_at >= self.every:
            self._shown_at = time.monotonic()
            self.show(self._row)
            self._shown = self._row
        if step >= self.total_steps or (step >= self.total_steps // 4 and not self._has_looked_back):
            self._has_looked_back = True
            sentence = self.look_back(step)
            if sentence is not None:
                self.say(sentence)

    def close(self) -> None:
        """Show the last row, if it was skipped."""
        if self._row and self._row is not self._shown:
            self.show(self._row)
            self._shown = self._row

    def saved(self, checkpoint: Path, best: bool) -> None:
        """A checkpoint is on disk."""
        self.say(f"Saved {checkpoint.parent.name}/{checkpoint.name}{', the best so far' if best else ''}.")

    def say(self, sentence: str) -> None:
        """A sentence between the updates."""
        self.console.print(sentence, highlight=False, soft_wrap=True)

    def numbers(self, row: Row) -> list[tuple[str, str]]:
        """(label, value) of what people ask for first: phase, returns, and the world's headlines."""
        shown = [("phase", row["phase"])] if row.get("phase") else []
        shown += [(label, f"{row[key]:.4g}") for label, key in RETURNS if row.get(key) is not None]
        return shown + self.own_numbers(row)

    def own_numbers(self, row: Row | None = None) -> list[tuple[str, str]]:
        """(label, value) of the world's headlines, in `row` or at last."""
        row = self._row if row is None else row
        return [(h.label, format(row[h.key], h.form)) for h in self.headlines if row.get(h.key) is not None]

    @abstractmethod
    def show(self, row: Row) -> None:
        """Draw the newest values."""


class LineDisplay(Display):
    """One line every two seconds."""

    def show(self, row: Row) -> None:
        parts = [f"step {row['step']:,}/{self.total_steps:,}", f"{row['time/fps']:,.0f} steps/s"]
        parts += [f"{label} {value}" for label, value in self.numbers(row)]
        parts += [f"{name} {row[key]:.3g}" for name in HEALTH if row.get(key := f"train/{name}") is not None]
        parts += [f"left {duration(row['time/left'])}"] if "time/left" in row else []
        self.say("  ".join(parts))


class PanelDisplay(Display):
    """A panel that redraws itself in place, at most four times a second."""

    every = PANEL_SECONDS

    def __init__(self, title: str, total_steps: int, console: Console, headlines: Sequence[Headline] = ()) -> None:
        super().__init__(title, total_steps, console, headlines)
        # what environments print and Python warns of is put above the panel too, unless errors go to a file
        self._live = Live(console=console, auto_refresh=False, redirect_stderr=sys.stderr.isatty())
        self._live.start()

    def show(self, row: Row) -> None:
        panel = draw_panel(self.title, row, self.total_steps, self.numbers(row))
        # A terminal writes "^C" where the cursor is. In a line that is full it would move the cursor to the next one,
        # and redrawing would then leave a line of the old panel behind.
        self._live.update(Constrain(panel, self.console.width - len("^C")), refresh=True)

    def close(self) -> None:
        super().close()
        self._live.stop()


HEALTH = ("approx_kl", "explained_variance", "critic_loss", "q_mean")
"""What tells on one line whether a learner is well: PPO's first two, the others of those with values of actions."""

RETURNS = (
    ("return", RETURN),
    ("length", "rollout/ep_len_mean"),
    ("evaluation", EVALUATED),
)


def draw_panel(title: str, row: Row, total_steps: int, numbers: Sequence[tuple[str, str]]) -> Panel:
    """The panel for one row of metrics; `numbers` are (label, value)."""
    left = Table.grid(padding=(0, 2))
    left.add_row("[dim]steps", f"{row['step']:,} / {total_steps:,}")
    left.add_row("[dim]speed", f"{row['time/fps']:,.0f} steps/s")
    to_come = f", left {duration(row['time/left'])}" if "time/left" in row else ""
    left.add_row("[dim]time", duration(row["time/time_elapsed"]) + to_come)
    for label, value in numbers:
        left.add_row(f"[dim]{label}", f"[bold]{value}")
    right = Table.grid(padding=(0, 2))
    for key in losses(row)[:8]:
        right.add_row(f"[dim]{key.removeprefix('train/')}", f"{row[key]:.4g}")
    columns = Table.grid(padding=(0, 6))
    columns.add_row(left, right)
    bar = ProgressBar(total=total_steps, completed=min(row["step"], total_steps), width=None)
    return Panel(Group(bar, "", columns, "", *_time_bar(row)), title=title, title_align="left", border_style="dim")


def _time_bar(row: Row, width: int = 60) -> list[Text]:
    seconds = [max(row.get(f"time/{phase}") or 0.0, 0.0) for phase in PHASES]
    total = sum(seconds)
    if not total:
        return []
    bar, names = Text(), Text()
    for phase, part, style in zip(PHASES, seconds, PHASE_STYLES, strict=True):
        if not part:
            continue
        bar.append("█" * round(width * part / total), style)
        names.append("■ ", style).append(f"{phase} {part / total:.0%}   ", "dim")
    return [bar, names]


def losses(row: Row) -> list[str]:
    """Keys of the learner's numbers in `row`, losses first."""
    keys = [key for key, value in row.items() if key.startswith("train/") and value is not None]
    return sorted(keys, key=lambda key: "loss" not in key)


def time_left(row: Row, first: Row, total_steps: int) -> float:
    """Seconds to the end at the average speed since the first row."""
    seconds = row["time/time_elapsed"] - first["time/time_elapsed"]
    return max(total_steps - row["step"], 0) * seconds / (row["step"] - first["step"])


def duration(seconds: float) -> str:
    """h:mm:ss or m:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
