"""What all bridges ask of a batch before they hand it on."""

from __future__ import annotations

from typing import Any

from gymnasium.vector import AutoresetMode, VectorEnv

from shoal.errors import ConfigError
from shoal.registry import make
from shoal.vector.batch import Batch


def batch_for(env: object, num_envs: int | None, mode: AutoresetMode, options: dict[str, Any]) -> Batch:
    """`env` as a batch whose ended lanes restart as `mode` says: one that is made already, or whatever `make` takes."""
    if isinstance(env, Batch) and (options or num_envs not in (None, env.num_envs)):
        raise ConfigError("The batch is already made: give num_envs and the options to shoal.make instead.")
    if not isinstance(env, Batch):
        if mode != AutoresetMode.SAME_STEP:  # which is the default, and the only one of some batches
            options = {**options, "autoreset_mode": mode}
        env = make(env, 1 if num_envs is None else num_envs, **options)
    check_autoreset(env, mode)
    if env.num_seats:
        raise ConfigError(
            f"These lanes have {env.num_seats} seats, and this library knows lanes for one. "
            "Pass a VersusBatch or SeatRows of them (docs/games.md)."
        )
    return env


def check_autoreset(batch: VectorEnv, mode: AutoresetMode) -> None:
    """`ConfigError` unless the ended lanes of `batch` restart as `mode` says."""
    declared = batch.metadata.get("autoreset_mode")
    if declared != mode:
        have = "no autoreset mode" if declared is None else f"autoreset mode {declared.name}"
        raise ConfigError(
            f"The batch declares {have}; here it must be {mode.name}, or the ends of episodes would be wrong. "
            f"Make it with autoreset_mode={mode.name.lower()!r}."
        )
