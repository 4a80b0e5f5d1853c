"""Worlds for the tests of runners: one that takes its time, one that breaks."""

import time

from tests.training.worlds import EnvWalk


class SlowWalk(EnvWalk):
    """A step takes long enough to be killed in."""

    def step(self, action):
        time.sleep(0.01)
        return super().step(action)


class BrokenWalk(EnvWalk):
    """Breaks in its seventh step."""

    def step(self, action):
        if self.t == 6:
            raise ZeroDivisionError("the cart left the rails")
        return super().step(action)
