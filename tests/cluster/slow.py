"""Worlds for the tests of runners: one that can be held in the middle of a step, one that breaks."""

import os
import time
from pathlib import Path

from tests.training.worlds import EnvWalk


class HeldWalk(EnvWalk):
    """Never comes back from a step in the process that `hold` chose."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def step(self, action):
        if self.t == 3 and chosen(self.folder) == os.getpid():
            (self.folder / "held").touch()
            while True:
                time.sleep(3600)
        return super().step(action)


def hold(folder, pid):
    """Have the lanes of process `pid` stop in the fourth step of an episode."""
    (folder / "new").write_text(str(pid))
    (folder / "new").rename(folder / "chosen")


def chosen(folder):
    """The process that `hold` chose, or None."""
    path = folder / "chosen"
    return int(path.read_text()) if path.exists() else None


def wait_until_held(folder):
    """Until a lane of the chosen process has stopped."""
    while not (folder / "held").exists():
        time.sleep(0.01)


class BrokenWalk(EnvWalk):
    """Breaks in its seventh step."""

    def step(self, action):
        if self.t == 6:
            raise ZeroDivisionError("the cart left the rails")
        return super().step(action)
