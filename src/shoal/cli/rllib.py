"""`shoal rllib WORLD`: RLlib's PPO on Shoal's lanes, a line per iteration."""

from __future__ import annotations

import inspect
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from shoal.cli.options import Flags, filled
from shoal.errors import ConfigError
from shoal.options import Flag, Values
from shoal.registry import as_world

PROG = "shoal rllib"


@dataclass(frozen=True)
class RllibCommand:
    """Train with RLlib's PPO on a batch of environments. All sizes are environment samples."""

    world: Annotated[str, Flag("WORLD", positional=True)]
    """A world of Shoal (`shoal envs` lists them), or your own environment as package.module:Class."""
    mode: Literal["auto", "vec", "packed_vec", "columnar"] = "auto"
    """How RLlib sees the environments: each by itself, all as one, or through Shoal's own env runner."""
    num_envs: int = 64
    """Environments per env runner."""
    iterations: int = 10
    """Iterations to train."""
    train_batch_size: int = 8192
    """Environment samples per iteration."""
    minibatch_size: int | None = None
    """Environment samples per gradient step of each learner; if not given, 1,024, or all there are."""
    epochs: int = 4
    """Passes over the samples of an iteration."""
    lr: float = 3e-4
    """Learning rate."""
    num_env_runners: int = 0
    """Remote env runners; 0 samples in this process."""
    num_learners: int = 0
    """Remote learners; 0 learns in this process."""
    num_gpus_per_learner: float = 0
    """GPUs per learner, e.g. 1 or 0.5; 0 learns on the CPU. Env runners stay on the CPU."""
    seed: int = 0
    """Everything random follows from this."""
    eval_every: int = 0
    """Iterations between evaluations; 0 never evaluates."""
    eval_episodes: int = 20
    """Episodes per evaluation."""
    checkpoint: Annotated[Path | None, Flag("DIR")] = None
    """Where to save RLlib's checkpoint at the end."""
    restore: Annotated[Path | None, Flag("DIR")] = None
    """A checkpoint to start from; its mode and number of environments may differ."""
    ray_address: Annotated[str | None, Flag("HOST:PORT")] = None
    """A running Ray cluster; none starts Ray on this machine."""
    out: Annotated[Path | None, Flag("FILE")] = None
    """Write the lines here as JSON."""


def main(argv: list[str]) -> int:
    """`shoal rllib WORLD [OPTIONS]`."""
    flags = Flags(PROG, inspect.getdoc(RllibCommand) or "")
    flags.add(RllibCommand)
    if argv and not argv[0].startswith("-"):
        world = as_world(argv[0])
        flags.add(world.options, world.name, "env")
    tables = flags.read(argv)
    command, options = filled(RllibCommand, tables.get("", {}), PROG), tables.get("env", {})
    if command.iterations < 1:
        raise ConfigError(f"--iterations must be at least 1, not {command.iterations}.")
    from shoal.cluster.start import use_ray

    check_gpus(command)
    cpus = 1 + command.num_env_runners + command.num_learners
    with use_ray(command.ray_address, cpus, "`shoal rllib`"):
        rows = train(command, options)
    if command.out is not None:
        command.out.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


def check_gpus(command: RllibCommand) -> None:
    """`ConfigError` for GPUs that this machine does not have; a cluster is asked by Ray."""
    if command.num_gpus_per_learner < 0:
        raise ConfigError(f"--num-gpus-per-learner must be at least 0, not {command.num_gpus_per_learner:g}.")
    if command.num_gpus_per_learner and command.ray_address is None:
        import torch

        needed, present = command.num_gpus_per_learner * max(1, command.num_learners), torch.cuda.device_count()
        if needed > present:
            raise ConfigError(
                f"--num-gpus-per-learner {command.num_gpus_per_learner:g} needs {needed:g} GPU(s), but torch sees "
                f"{present} here. Use 0, or a cluster with --ray-address."
            )


def train(command: RllibCommand, options: Values) -> list[dict[str, float]]:
    """Build, restore, iterate, save; returns what was printed."""
    from shoal.bridges.rllib import ppo_config

    config = ppo_config(
        command.world, mode=command.mode, num_envs=command.num_envs, train_batch_size=command.train_batch_size,
        minibatch_size=command.minibatch_size, num_epochs=command.epochs, num_env_runners=command.num_env_runners,
        num_learners=command.num_learners, num_gpus_per_learner=command.num_gpus_per_learner, seed=command.seed,
        evaluate_every=command.eval_every,
        evaluation_episodes=command.eval_episodes, options=options, lr=command.lr,
    )  # fmt: skip
    algo = config.build_algo()
    try:
        if command.restore is not None:
            restore(algo, command.restore)
        print(f"{command.world}, mode {config.env_config['mode']}, {command.num_envs:,} lanes")
        rows = []
        for k in range(1, command.iterations + 1):
            result = algo.train()
            evaluated = command.eval_every > 0 and k % command.eval_every == 0  # RLlib repeats old results in between
            rows.append(row_of(result, evaluated))
            print(line_of(k, rows[-1]), flush=True)
        if command.checkpoint is not None:
            print(f"checkpoint: {algo.save_to_path(str(command.checkpoint.absolute()))}")
        return rows
    finally:
        algo.stop()


def restore(algo: Any, path: Path) -> None:
    """Weights, optimiser and counters of a checkpoint. Environments begin new episodes: RLlib does not save them."""
    if not (path / "rllib_checkpoint.json").is_file():
        raise ConfigError(f"{path} is not a checkpoint of RLlib: it has no rllib_checkpoint.json.")
    from shoal.bridges.rllib.timing import time_each_iteration

    algo.restore_from_path(str(path.absolute()))
    time_each_iteration(metrics_logger=algo.metrics)


def row_of(result: dict[str, Any], evaluated: bool) -> dict[str, float]:
    """What a line shows of RLlib's results."""
    runners, timers = result["env_runners"], result["timers"]
    row = {
        "steps": float(runners["num_env_steps_sampled_lifetime"]),
        "return_mean": float(runners.get("episode_return_mean", float("nan"))),
        "length_mean": float(runners.get("episode_len_mean", float("nan"))),
        "sampling_s": float(timers["env_runner_sampling_timer"]),
        "learning_s": float(timers["learner_update_timer"]),
        "iteration_s": float(result["time_this_iter_s"]),
    }
    if evaluated:
        row["evaluation_return_mean"] = float(result["evaluation"]["env_runners"]["episode_return_mean"])
    return row


def line_of(number: int, row: dict[str, float]) -> str:
    line = (
        f"{number:>4}  {row['steps']:>12,.0f} steps  return {row['return_mean']:>8.2f}  "
        f"length {row['length_mean']:>7.1f}  sampling {row['sampling_s']:.2f} s  learning {row['learning_s']:.2f} s"
    )
    return line + (f"  evaluation {row['evaluation_return_mean']:.2f}" if "evaluation_return_mean" in row else "")
