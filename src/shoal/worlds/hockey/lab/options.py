"""What training in hockey can be told, and the settings with which it is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from shoal.errors import ConfigError
from shoal.options import Flag
from shoal.training.lab import Preset


@dataclass(frozen=True)
class HockeyTraining:
    """Curricula, self-play, and more data from the same games."""

    curriculum: Annotated[str | dict[str, object] | None, Flag("FILE")] = None
    """Phases of training, a JSON or TOML file (or its content) in the words of the original system."""
    self_play: float = 0.0
    """Share of games against itself and past policies; the others are against both bots. Needs opponent=pool."""
    pool_every: int = 100_000
    """Environment steps after which another policy joins the pool."""
    mirror: bool = False
    """Turn half of what is learned from upside down."""
    both_players: bool = False
    """Learn from the other player's transitions too, where a policy sits there."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.self_play <= 1.0:
            raise ConfigError(f"self_play must be a share between 0 and 1, not {self.self_play}.")
        if self.curriculum is not None and self.self_play:
            raise ConfigError("self_play is for training without a curriculum, which names its own opponents.")


_OFF_POLICY = {
    "num_steps": 16, "updates_per_step": 0.125, "warmup": 20_000, "n_step": 3, "lr": 1e-3, "hidden": (128, 128, 128),
    "scale_obs": True,
}  # fmt: skip
_ON_POLICY = {
    "num_steps": 64, "epochs": 4, "minibatches": 4, "lr": 1e-3, "lr_final": 1e-4, "entropy": 0.0, "hidden": (128, 128),
    "target_kl": None, "normalise_obs": True, "normalise_reward": True,
}  # fmt: skip
_SMALL = {"num_envs": 64, "eval_every": 100_000, "eval_episodes": 200}
_LARGE = {
    "num_envs": 256, "total_steps": 10_000_000, "eval_every": 2_000_000, "eval_episodes": 200,
    "checkpoint_every": 2_000_000,
}  # fmt: skip
_DDDQN = {"lr_final": 1e-4, "gamma": 0.96, "tau": 0.005, "loss": "squared", "explore": 0.05, "reward_scale": 0.2}
_SELF_PLAY = {"mirror": True, "both_players": True, "self_play": 0.6, "pool_every": 50_000}

PRESETS = {
    "ppo": Preset(
        "against both bots, 10 million steps",
        {**_LARGE, "env": {"opponent": "mixed"}, "algo": _ON_POLICY},
    ),
    "sac": Preset(
        "against both bots, 1.5 million steps",
        {
            **_SMALL, "total_steps": 1_500_000, "checkpoint_every": 100_000,
            "env": {"opponent": "mixed"}, "extra": {"mirror": True},
            "algo": {**_OFF_POLICY, "lr_final": 4e-4, "pessimism_final": 0.4},
        },
    ),
    "dddqn": Preset(
        "against both bots, with 28 combined actions, each held for four steps",
        {
            **_SMALL, "total_steps": 800_000, "checkpoint_every": 200_000,
            "env": {"opponent": "mixed", "actions": "combined", "hold": 4}, "extra": {"mirror": True},
            "algo": {**_OFF_POLICY, **_DDDQN},
        },
    ),
    "self-play": Preset(
        "SAC: 60 % of the games against itself and its past",
        {
            **_SMALL, "total_steps": 500_000, "checkpoint_every": 200_000,
            "env": {"opponent": "pool"}, "extra": _SELF_PLAY,
            "algo": {**_OFF_POLICY, "lr": 3e-4, "lr_final": 3e-5, "pessimism": 0.0},
        },
    ),
    "ppo-self-play": Preset(
        "the same for PPO",
        {
            **_LARGE, "env": {"opponent": "pool"}, "extra": {"self_play": 0.6, "pool_every": 500_000},
            "algo": {**_ON_POLICY, "lr": 5e-4, "lr_final": 5e-5},
        },
    ),
}  # fmt: skip

_SEARCHED = ("mirror=true,false", "algo.updates_per_step=0.0625,0.125,0.25")
SEARCH = {"sac": _SEARCHED, "dddqn": (*_SEARCHED, "algo.gamma=0.94,0.96,0.98,0.99")}
"""What `shoal tune` searches: whether the symmetry helps, and values around those of the presets."""
