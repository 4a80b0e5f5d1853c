"""`shoal.train`: from a world's name to a run folder with a trained agent. The command line calls the same function."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from shoal.errors import ConfigError, ShoalError
from shoal.report.replay import record_replay, save_replay
from shoal.report.run_report import write_report
from shoal.training.acting import Actor
from shoal.training.beside import world_hooks
from shoal.training.checkpoint import Checkpoint, Checkpoints
from shoal.training.config import AUTO, TrainConfig
from shoal.training.display import Display, make_display
from shoal.training.evaluate import EVAL_SEEDS, Evaluator
from shoal.training.files import read_json
from shoal.training.hooks import Hooks
from shoal.training.interrupt import Interruptible
from shoal.training.loop import Loop
from shoal.training.num_envs import measured_num_envs
from shoal.training.opening import begin_from, make_agent, make_batch
from shoal.training.replay_file import keep_replay_in
from shoal.training.run import Run, create_run, find_run, resume_run
from shoal.training.settings import config_from, config_values, differences, merge, resolve_config
from shoal.training.track import Tracker, load_service
from shoal.vector.batch import Batch

REPLAY_LANES = 4
INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class TrainResult:
    """What a run leaves behind."""

    run: Path
    """The run folder."""
    agent: Any
    """The trained agent; `agent.act_batch(obs, deterministic=True)` acts."""
    metrics: dict[str, Any]
    """The last row of metrics.jsonl."""
    reason: str
    """Why the run ended."""


def train(
    world: Any = None,
    *,
    preset: str | None = None,
    config: str | Path | None = None,
    resume: str | Path | None = None,
    runs_dir: str | Path = "runs",
    hooks: Hooks | None = None,
    network: Any = None,
    track: str | None = None,
    quiet: bool = False,
    **settings: Any,
) -> TrainResult:
    """Train an agent on a world.

    Args:
        world: a world's name, "package.module:Class", a Gymnasium id, an environment class, or a config file.
        preset: one of the world's named sets of settings, instead of the one for the agent.
        config: a JSON or TOML file of settings, e.g. another run's config.json.
        resume: a run folder to continue exactly where its last checkpoint left it.
        runs_dir: where the run folder is made.
        hooks: what is added to the loop (see `shoal.training.hooks`), instead of what the world itself adds.
        network: an `nn.Module` of your own instead of the standard one or the world's.
        track: also log to "wandb" or "trackio".
        quiet: print nothing.
        settings: fields of `TrainConfig`, e.g. `num_envs=64` (or "auto"), `algo={"lr": 1e-3}`.
    """
    if isinstance(world, str | Path) and Path(world).suffix in (".json", ".toml"):
        world, config = None, world
    name = world if world is None or isinstance(world, str) else f"{world.__module__}:{world.__qualname__}"
    measured = settings.get("num_envs") == AUTO
    if measured:
        del settings["num_envs"]
    if resume is None:
        resolved = resolve_config(name, settings, config, preset)
    else:
        resolved = resumed_config(find_run(resume), name, settings)
    source = resolved.world if world is None or isinstance(world, str) else world
    if measured and resume is None:
        say = (lambda text: None) if quiet else partial(print, flush=True)
        resolved = replace(resolved, num_envs=measured_num_envs(source, resolved, network, say))
        say(f"Training with {resolved.num_envs:,} lanes.")
    service = None if track is None else load_service(track)
    hooks_for = partial(world_hooks, config=resolved) if hooks is None else lambda lanes: hooks
    with _open_lanes(source, resolved, network, hooks_for) as batch:
        own_hooks, agent = hooks_for(batch), make_agent(resolved, batch, network)
        if resume is None and resolved.init is not None:
            begin_from(agent, resolved.init)
        if resume is None:
            run, checkpoint = create_run(runs_dir, config_values(resolved), resolved.algo.name, _command(name)), None
        else:
            run, checkpoint = resume_run(resume)
        with run:
            title = f"{resolved.world} · {resolved.algo.name} · {resolved.num_envs} lanes"
            display = make_display(title, resolved.total_steps, quiet)
            run.listeners += [display] if service is None else [display, Tracker(service, run)]
            return _train(run, resolved, source, batch, agent, own_hooks, hooks_for, checkpoint, display)


def _open_lanes(
    world: Any, config: TrainConfig, network: Any, hooks_for: Callable[[Batch], Hooks]
) -> AbstractContextManager[Batch]:
    """The lanes to train in: here, or on runners."""
    if not config.runners:
        return closing(make_batch(world, config, config.num_envs))
    from shoal.cluster.fleet import open_fleet

    return open_fleet(world, config, network, hooks_for)


def _command(world: str | None) -> str:
    """What was typed at the command line (`shoal ...` or `python -m shoal ...`), or the call in Python."""
    program = Path(sys.argv[0]) if sys.argv else Path()
    if program.name == "shoal" or program.parts[-2:] == ("shoal", "__main__.py"):
        return shlex.join(["shoal", *sys.argv[1:]])
    return f"shoal.train({world!r}, ...)"


def resumed_config(run: Path, world: str | None, settings: Mapping[str, Any]) -> TrainConfig:
    """The configuration of an earlier run. Only `total_steps` may be given anew; anything else must agree."""
    saved = read_json(run / "config.json")
    given = {**settings, **({} if world is None else {"world": world})}
    for field, old, new in differences(saved, merge(saved, given)):
        if field not in ("total_steps", "ray_address"):
            raise ConfigError(
                f"{run} was started with {field}={old!r}, not {new!r}, and a resumed run goes on as it was. "
                f"Leave {field} out, or start a new run with --config {run / 'config.json'}."
            )
    resolved = config_from(merge(saved, given), str(run / "config.json"))
    reached = Checkpoints(run / "checkpoints").load().step
    if reached >= resolved.total_steps:
        raise ConfigError(
            f"{run} has already reached {reached:,} of its {resolved.total_steps:,} steps. "
            f"Pass more total steps to go on, e.g. --total-steps {2 * resolved.total_steps}."
        )
    return resolved


def _train(
    run: Run,
    config: TrainConfig,
    world: Any,
    batch: Batch,
    agent: Any,
    hooks: Hooks,
    hooks_for: Callable[[Batch], Hooks],
    checkpoint: Checkpoint | None,
    display: Display,
) -> TrainResult:
    """Put the pieces around the loop together, run it, and leave a report."""
    eval_lanes = min(config.num_envs, config.eval_episodes)
    with (
        closing(make_batch(world, config, eval_lanes)) as eval_batch,
        closing(make_batch(world, config, REPLAY_LANES, autoreset_mode="disabled")) as replay_batch,
    ):
        viewer = Actor(agent, replay_batch, hooks_for(replay_batch))

        def record(step: int) -> None:
            replay = record_replay(replay_batch, viewer, EVAL_SEEDS + config.seed, f"step {step:,}")
            save_replay(run.path, step, replay)

        evaluator = Evaluator(run, eval_batch, Actor(agent, eval_batch, hooks_for(eval_batch)), config, record)
        hooks = replace(hooks, callbacks=(*hooks.callbacks, evaluator))
        keep_replay_in(run.path, agent, config, resumed=checkpoint is not None)
        loop = _make_loop(batch, agent, config, run, hooks)
        if checkpoint is not None:
            loop.restore(checkpoint.arrays, checkpoint.meta)
            display.say(f"Resuming {run.path} at step {checkpoint.step:,}.")
        reason = _run_loop(loop, run, display)
        if reason != INTERRUPTED and evaluator.evaluated_at != loop.step:  # a rule ended it between two evaluations
            evaluator.evaluate(loop.step)
    display.close()
    report = write_report(run.path)
    if reason == INTERRUPTED:
        display.say(f"Stopped at step {loop.step:,}. Continue with: shoal train --resume {run.path}")
    else:
        display.say(f"Done: {reason}. Report: {report}")
    return TrainResult(run.path, agent, run.last_row, reason)


def _make_loop(batch: Any, agent: Any, config: TrainConfig, run: Run, hooks: Hooks) -> Loop:
    """The loop over lanes that are here, or over runners, which collect and have something to log."""
    if not config.runners:
        return Loop(batch, agent, config, run, hooks)
    return Loop(batch, agent, config, run, replace(hooks, callbacks=(*hooks.callbacks, batch)), batch.collect)


def _run_loop(loop: Loop, run: Run, display: Display) -> str:
    """Run to the end; if that fails, say where the run can go on from."""
    try:
        with Interruptible(lambda: loop.stop(INTERRUPTED), display.say):
            return loop.train()
    except (ShoalError, KeyboardInterrupt):
        display.close()
        saved = run.checkpoints.steps()
        if saved:
            display.say(f"The last checkpoint is of step {saved[-1]:,}. Continue with: shoal train --resume {run.path}")
        else:
            display.say(f"There is no checkpoint in {run.path} yet, so this run cannot be resumed.")
        raise
    finally:
        if loop.inexact is not None:
            display.say(
                f"Resuming this run begins new episodes, because its environments cannot be saved: {loop.inexact}"
            )
