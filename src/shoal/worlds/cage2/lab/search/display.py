"""What a person sees of a search: a line per pick that stays, and how far the present one is."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from shoal.training.display import LINE_SECONDS, PANEL_SECONDS
from shoal.worlds.cage2.lab.search.search import Progress, WorkflowSearch


class SearchDisplay:
    """On a terminal the present pick is a line that redraws itself; anywhere else it is told every two seconds."""

    def __init__(self) -> None:
        self._console = Console()
        self._live: Live | None = None
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._told_at = time.monotonic()

    def say(self, line: str) -> None:
        """A line that stays."""
        self._console.print(line, highlight=False, soft_wrap=True)

    def progress(self, progress: Progress) -> None:
        """The present pick; not every update is shown."""
        if time.monotonic() - self._told_at < (LINE_SECONDS if self._live is None else PANEL_SECONDS):
            return
        self._told_at = time.monotonic()
        if self._live is None:
            self.say(str(progress))
        else:
            self._live.update(Text(str(progress), style="dim", no_wrap=True, overflow="ellipsis"), refresh=True)

    def __enter__(self) -> SearchDisplay:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()


def describe_best(search: WorkflowSearch) -> str:
    """The best order in a sentence; only one that was followed can be it."""
    best = search.best
    if best is not None:
        return f"Best: {best['name']}, return {best['value']:.2f} [{best['low']:.2f}, {best['high']:.2f}]."
    closest = max(search.rows, key=lambda row: min(row["train_compliance"], row["compliance"]))
    return (
        f"No order was followed in {search.config.compliance_threshold:.0%} of its fixes, so none is the best; the "
        f"closest was {closest['name']} with {closest['train_compliance']:.0%} in training and "
        f"{closest['compliance']:.0%} when scored. Raise --max-episodes or lower --compliance-threshold."
    )
