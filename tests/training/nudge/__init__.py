"""A world that brings every part a world may bring, for tests: entered in the registry as `nudge`."""

from shoal.registry import World

NUDGE = World("nudge", "test/Nudge-v0", "tests.training.nudge.world:make_nudge", "stay near the middle against a wind")
