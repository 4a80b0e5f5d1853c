"""Lanes of `ArrayWalk` in a wind that its opponent sets."""

import numpy as np

from tests.training.worlds import ArrayWalk


class Nudge(ArrayWalk):
    """Every step moves a lane by `wind * blown` as well; without an opponent nothing blows."""

    def __init__(self, num_envs, wind, **options):
        super().__init__(num_envs, **options)
        self.wind = wind
        self.blown = np.zeros(num_envs, np.int64)

    def transition(self, action):
        self.state["pos"] += self.wind * self.blown
        return super().transition(action)


def make_nudge(num_envs, *, wind=0.0, calm=False, **options):
    return Nudge(num_envs, 0.0 if calm else wind, **options)
