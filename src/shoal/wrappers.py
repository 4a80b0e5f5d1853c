"""`Wrappers`: what may be put around the lanes of any world. Cheap to import: flags fall out of it."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from shoal.errors import ConfigError
from shoal.options import Values


@dataclass(frozen=True)
class Wrappers:
    """What is put around lanes, of whatever kind they are; applied in this order."""

    sticky_actions: float = 0.0
    """Chance that a lane repeats its previous action instead of taking the new one."""
    action_repeat: int = 1
    """Steps for which each action is repeated; their rewards are summed."""
    time_limit: int = 0
    """Steps after which an episode is truncated; 0 leaves that to the world."""
    clip_reward: float = 0.0
    """Clip rewards to between minus this and plus this; 0 leaves them as they are."""
    grey: bool = False
    """Turn colour images grey."""
    resize: int = 0
    """Side in pixels to which images are scaled; 0 leaves them as they are."""
    frame_stack: int = 1
    """How many successive observations the agent sees together, the newest last."""
    time_aware: bool = False
    """Add the share of time_limit that has passed to observations."""
    atari: bool = False
    """What agents for Atari games are usually shown: grey, 84 x 84 pixels, four frames, and rewards limited to 1. ALE's
    own batches do that already."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.sticky_actions < 1.0:
            raise ConfigError(f"sticky_actions must lie between 0 and 1, not {self.sticky_actions}.")
        for name, least in (("action_repeat", 1), ("time_limit", 0), ("clip_reward", 0), ("resize", 0)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} must be at least {least}, not {getattr(self, name)}.")
        if self.frame_stack < 1:
            raise ConfigError(f"frame_stack must be at least 1, not {self.frame_stack}.")
        if self.time_aware and not self.time_limit:
            raise ConfigError("time_aware needs to know how long an episode may take. Set time_limit too.")

    @property
    def spelled_out(self) -> Wrappers:
        """The same, with what `atari` stands for in its place."""
        if not self.atari:
            return self
        return replace(self, atari=False, grey=True, resize=84, frame_stack=4, clip_reward=1.0)

    @property
    def given(self) -> bool:
        """Whether there is anything to put around."""
        return self != Wrappers()


WRAPPERS = tuple(f.name for f in fields(Wrappers))


def split_wrappers(options: Values) -> tuple[Wrappers, Values]:
    """The wrappers among options, and the rest."""
    return (
        Wrappers(**{name: value for name, value in options.items() if name in WRAPPERS}),
        {name: value for name, value in options.items() if name not in WRAPPERS},
    )
