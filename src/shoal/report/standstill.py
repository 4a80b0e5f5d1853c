"""Whether a run learns nothing because all episodes come out the same, and what can be done about it.

An agent that never meets a goal sees no difference between what it does and what it leaves: every episode runs into its
time limit, with one and the same return. Then no update is wrong, and none helps.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from shoal.training.files import read_table

MONITOR = "monitor.csv"
EPISODES, FEWEST = 100, 20
"""Looked at from the beginning and from the end; with fewer in all, nothing is said."""
SAME = 0.95
"""Share of them that must have the same return and length."""
ROW_BYTES = 64
EXPLORE = {
    "ppo": "more exploration (--algo.entropy 0.03)",
    "sac": "a longer warm-up of random actions (--algo.warmup)",
    "dddqn": "more exploration (--algo.explore)",
}
Episode = tuple[str, str]
"""Return and length, as written."""


def standstill(run: Path) -> str | None:
    """A sentence for a run whose first and last episodes are all alike; None for any other."""
    first, last = _ends(run / MONITOR)
    if len(first) < FEWEST:
        return None
    (usual, count), *_ = Counter(first).most_common(1)
    again = last.count(usual)
    if count < SAME * len(first) or again < SAME * len(last):
        return None
    value, length = float(usual[0]), int(usual[1])
    algo = read_table(run / "config.json").get("algo")
    explore = EXPLORE.get(algo.get("name", "") if isinstance(algo, dict) else "", "more exploration")
    steps = "1 step" if length == 1 else f"{length:,} steps"
    return (
        f"Nothing is being learned: {count} of the first {len(first)} episodes and {again} of the last {len(last)} "
        f"returned {value:g} after {steps}, whatever the agent did. Unless that is the best there is, it never meets "
        "what makes a difference, e.g. a goal before the time limit. Try a later limit, an easier start, rewards on "
        f"the way, {explore}."
    )


def _ends(path: Path) -> tuple[list[Episode], list[Episode]]:
    """The first and the last episodes in a monitor file, without reading what lies between."""
    if not path.is_file():
        return [], []
    with path.open("rb") as file:
        head = file.read(ROW_BYTES * (EPISODES + 2))
        file.seek(max(0, os.fstat(file.fileno()).st_size - ROW_BYTES * EPISODES))
        tail = file.read()
    return _episodes(head)[:EPISODES], _episodes(tail)[-EPISODES:]


def _episodes(part: bytes) -> list[Episode]:
    """Episodes in the whole lines of a part of the file; its first line may be cut, and so may the last."""
    rows = (line.split(",") for line in part.decode().split("\n")[1:-1])
    return [(row[0], row[1]) for row in rows if len(row) == 3 and row[0] != "r"]
