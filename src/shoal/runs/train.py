"""`shoal.train`: from a world's name to a run folder with a trained agent. The command line calls the same function."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.agents.agent import Agent
from shoal.agents.config import is_own
from shoal.errors import ConfigError, RunError, ShoalError, naming
from shoal.options import Values, as_values
from shoal.registry import UNNAMED, EnvironmentOptions, as_world
from shoal.report.pictures import LANES as PICTURE_LANES
from shoal.report.pictures import drawing_options, draws_itself, show_pictures
from shoal.report.replay import record_replay, save_replay
from shoal.report.run_report import write_report
from shoal.runs.num_envs import Source, check_memory, plan_measured
from shoal.seeding import Seed, Stream
from shoal.training.acting import Actor
from shoal.training.checkpoint import UNREPORTED, Checkpoint, Checkpoints, fitting
from shoal.training.command import command_line
from shoal.training.config import AUTO, TrainConfig
from shoal.training.display import Display, make_display
from shoal.training.evaluate import Evaluator
from shoal.training.hooks import Hooks
from shoal.training.interrupt import INTERRUPTED, Interruptible, Stopped
from shoal.training.lab import lab_of
from shoal.training.loop import Loop
from shoal.training.metrics import read_evaluations
from shoal.training.opening import begin_from, make_agent, make_batch, make_hooks
from shoal.training.own_network import name_network
from shoal.training.replay_file import keep_replay_in
from shoal.training.run import Run, create_run, find_run, resume_run
from shoal.training.settings import (
    check_tables,
    config_from,
    config_values,
    merge,
    modernised,
    refuse_changes,
    sorted_settings,
    translated,
    with_algo_table,
    world_in,
)
from shoal.training.track import Tracker, load_service
from shoal.training.trust import has_own_config, read_config
from shoal.vector.batch import Batch
from shoal.world import World, options_of

if TYPE_CHECKING:
    from torch import nn


REPLAY_LANES = 4
Opened = tuple[Run, Checkpoint | None]
"""A run, and the checkpoint that it goes on from."""


@dataclass(frozen=True)
class TrainResult:
    """What a run leaves behind."""

    run: Path
    """The run folder."""
    agent: Agent
    """The trained agent; `agent.act_batch(obs, deterministic=True)` acts."""
    metrics: dict[str, Any]
    """The last row of metrics.jsonl."""
    reason: str
    """Why the run ended."""
    total_steps: int
    """Environment steps that it made."""
    evaluation: dict[str, Any] | None
    """The last evaluation, as evaluations.jsonl has it: mean, interval, returns."""

    @property
    def run_name(self) -> str:
        """The name of the run folder."""
        return self.run.name

    @property
    def mean_reward(self) -> float | None:
        """The mean return of the last evaluation; of the latest episodes of training if there was none."""
        return self.metrics.get("rollout/ep_rew_mean") if self.evaluation is None else self.evaluation["mean"]


@dataclass(frozen=True)
class Plan:
    """What is to be trained."""

    world: World
    config: TrainConfig
    resume: Path | None = None
    """The run to go on with."""
    trust: bool = False
    """Whether that run may hold pickles of somebody else."""
    network: nn.Module | None = None
    """In place of the standard one or the world's."""
    hooks: Hooks | None = None
    """In place of what the world's lab adds."""
    source: str = ""
    """The file that the settings come from."""

    def hooks_for(self, batch: Batch) -> Hooks:
        return make_hooks(self.world, self.config, batch) if self.hooks is None else self.hooks


def train(
    world: Any = None,
    *,
    preset: str | None = None,
    config: str | Path | None = None,
    resume: str | Path | None = None,
    trust: bool = False,
    runs_dir: str | Path = "runs",
    run_name: str | None = None,
    hooks: Hooks | None = None,
    network: nn.Module | Callable[..., nn.Module] | str | None = None,
    track: str | None = None,
    quiet: bool = False,
    **settings: Any,
) -> TrainResult:
    """Train an agent on a world.

    Args:
        world: whatever `shoal.make` takes (a world's name, "package.module:Class", a Gymnasium id, a class), or a
            config file.
        preset: one of the world's named sets of settings, instead of the one for the agent.
        config: a JSON or TOML file of settings, e.g. another run's config.json.
        resume: a run folder to continue exactly where its last checkpoint left it.
        trust: resume a run although it holds a pickle, or names code to import, that this user did not sign.
        runs_dir: where the run folder is made.
        run_name: what the folder is called; one that exists is refused.
        hooks: what is added to the loop (see `shoal.training.hooks`), instead of what the world itself adds.
        network: one of your own instead of the standard one or the world's: its class or import path, which every verb
            finds again, or an `nn.Module` (see docs/networks.md).
        track: also log to "wandb" or "trackio".
        quiet: print nothing.
        settings: fields of `TrainConfig` and options of the world and its lab, by name, e.g. `num_envs=64` (or
            "auto"), `algo={"lr": 1e-3}`, `opponent="strong"`.
    """
    if isinstance(world, str | Path) and Path(world).suffix in (".json", ".toml"):
        world, config = None, world
    named, made = name_network(network)
    if named is not None:
        settings = merge(with_algo_table(settings), {"algo": {"network": named}})
    if resume is not None:
        given = {name: value for name, value in settings.items() if (name, value) != ("num_envs", AUTO)}
        plan = plan_resumed(resume, world, given, trust)
    else:
        say = (lambda text: None) if quiet else partial(print, flush=True)
        planned, resolved = plan_measured(Source(world, config, preset), settings, made, say)
        plan = Plan(planned, resolved, source="" if config is None else str(config))
    plan = replace(plan, network=made, hooks=hooks)
    return carry_out(plan, runs_dir, run_name, track, partial(make_display, quiet=quiet))


def carry_out(
    plan: Plan, runs_dir: str | Path, run_name: str | None, track: str | None, show: Callable[..., Display]
) -> TrainResult:
    """Train as planned. `show(title, total_steps, headlines=...)` makes what follows the run."""
    service = None if track is None else load_service(track)
    with ExitStack() as stack:
        with naming(plan.source):
            check_memory(plan.world, plan.config)
            stack.enter_context(_compiling_aside(plan))
            batch = stack.enter_context(_open_lanes(plan))
            own_hooks = plan.hooks_for(batch.pattern)
            agent = make_agent(plan.world, plan.config, batch.pattern, plan.network)
            if plan.config.init is not None and plan.resume is None:
                begin_from(agent, plan.config.init)
        run, checkpoint = _open_run(plan, batch, runs_dir, run_name)
        stack.enter_context(run)
        title = f"{plan.config.world} · {plan.config.algo.name} · {plan.config.num_envs} lanes"
        display = show(title, plan.config.total_steps, headlines=lab_of(plan.world).headlines)
        run.listeners += [display] if service is None else [display, Tracker(service, run)]
        if plan.world.reference.startswith(UNNAMED):
            display.say(
                f"{plan.world.name} has no name to import, so this run can be resumed from Python alone, with "
                "shoal.train(env, resume=...). Put it into a module, and every verb of the command line works."
            )
        if isinstance(plan.config.env, EnvironmentOptions) and plan.config.env.num_workers == AUTO:
            display.say(f"The lanes have {getattr(batch, 'num_workers', 1)} worker processes.")
        if plan.network is not None:
            display.say(
                f"The network {type(plan.network).__name__} was made in Python, so this run can be resumed with "
                "shoal.train(resume=..., network=...) alone. Name its class, network='package.module:Net', and every "
                "verb of the command line works."
            )
        return _train(_make_loop(batch, agent, plan.config, run, own_hooks), plan, run, checkpoint, display)


# ---------------------------------------------------------------------- what is to be trained


def plan_resumed(run: str | Path, world: Any, settings: Values, trust: bool) -> Plan:
    """An earlier run. Only `total_steps` may be given anew; anything else must agree."""
    path = find_run(run)
    saved = check_tables(modernised(read_config(path, trust or world is not None)), str(path / "config.json"))
    source = world_in(saved, str(path / "config.json")) if world is None else as_world(world)
    given = sorted_settings(source, {**settings, **({} if world is None else {"world": source.reference})})
    given = merge(translated(source, lab_of(source), given, saved), given)
    refuse_changes(path, saved, merge(saved, given))
    config = config_from(merge(saved, given), source, str(path / "config.json"))
    address = saved.get("ray_address")
    if address is not None and "ray_address" not in given and not trust and not has_own_config(path):
        raise RunError(
            f"{path / 'config.json'} would connect to the Ray cluster at {address}, and this user did not sign that. "
            "Pass --trust (trust=True) if you know where the run comes from, or name a cluster: --ray-address."
        )
    last = Checkpoints(path / "checkpoints").load()
    reached = last.step
    if reached >= config.total_steps and UNREPORTED not in last.meta:
        raise ConfigError(
            f"{path} has already reached {reached:,} of its {config.total_steps:,} steps. "
            f"Pass more total steps to go on, e.g. --total-steps {2 * config.total_steps}."
        )
    return Plan(source, config, path, trust, source=str(path / "config.json"))


def _open_lanes(plan: Plan) -> AbstractContextManager[Batch]:
    """The lanes to train in: here, or on runners."""
    if not plan.config.runners:
        return closing(make_batch(plan.world, plan.config, plan.config.num_envs))
    from shoal.cluster.fleet import open_fleet

    return open_fleet(plan.world, plan.config, plan.network, plan.hooks_for)


def _open_run(plan: Plan, batch: Batch, runs_dir: str | Path, name: str | None) -> Opened:
    if plan.resume is not None:
        return resume_run(plan.resume, only_numbers=batch.state_is_data, trust=plan.trust)
    values, headlines = config_values(plan.config), lab_of(plan.world).headlines
    return create_run(runs_dir, values, command_line(plan.config.world), headlines, name), None


def _compiling_aside(plan: Plan) -> AbstractContextManager[None]:
    """Have what learns compiled while the lanes are, where it is the standard one."""
    config = plan.config
    has_own_network = is_own(config.algo.network) or lab_of(plan.world).network is not None
    if config.algo.name != "ppo" or config.device != "cpu" or config.runners or has_own_network:
        return nullcontext()
    from shoal.agents.fast.ahead import learner_compiled_aside

    return learner_compiled_aside()


# ---------------------------------------------------------------------- training


def _make_loop(batch: Batch, agent: Agent, config: TrainConfig, run: Run, hooks: Hooks) -> Loop:
    """The loop over lanes that are here, or over runners, which collect and have something to log."""
    if not config.runners:
        return Loop(batch, agent, config, run, hooks)
    from shoal.cluster.fleet import Fleet

    assert isinstance(batch, Fleet)
    return Loop(batch, agent, config, run, replace(hooks, callbacks=(*hooks.callbacks, batch)), batch.collect)


def _train(loop: Loop, plan: Plan, run: Run, checkpoint: Checkpoint | None, display: Display) -> TrainResult:
    """Put evaluation and replays around the loop, run it, and leave a report."""
    config, agent = plan.config, loop.agent
    eval_lanes = min(config.num_envs, config.eval_episodes)
    with (
        closing(make_batch(plan.world, config, eval_lanes)) as eval_batch,
        closing(_open_replay_lanes(plan.world, config, loop.batch.pattern, display.say)) as replay_batch,
    ):

        def record(step: int, stopping: Callable[[], bool]) -> None:
            seed = Seed(config.seed, Stream.EVALUATION)
            replay = record_replay(replay_batch, Actor(agent), seed, f"step {step:,}", stopping=stopping)
            save_replay(run.path, step, replay)

        evaluator = Evaluator(run, eval_batch, agent, config, record)
        loop.hooks = replace(loop.hooks, callbacks=(*loop.hooks.callbacks, evaluator))
        with naming(plan.source):
            keep_replay_in(run.path, agent, config, resumed=checkpoint is not None)
        if checkpoint is not None:
            with fitting(checkpoint):
                loop.restore(checkpoint.arrays, checkpoint.meta)
            display.say(f"Resuming {run.path} at step {checkpoint.step:,}.")
        reason = _run_loop(loop, evaluator, run, display)
    display.close()
    report = write_report(run.path)
    evaluations = read_evaluations(run.path)
    evaluation = evaluations[-1] if evaluations else None
    if evaluation is not None:
        interval = f"[{evaluation['low']:.2f}, {evaluation['high']:.2f}]"
        reached = [f"mean return {evaluation['mean']:.2f} {interval} over {evaluation['episodes']} episodes"]
        reached += [f"{label} {value}" for label, value in display.own_numbers()]
        display.say(f"Reached at step {evaluation['step']:,}: {', '.join(reached)}.")
    if reason == INTERRUPTED:
        display.say(f"Stopped at step {loop.step:,}. Continue with: shoal train --resume {run.path}")
    else:
        display.say(f"Done: {reason}. Report: {report}")
    return TrainResult(run.path, agent, run.last_row, reason, loop.step, evaluation)


def _open_replay_lanes(world: World, config: TrainConfig, lanes: Batch, say: Callable[[str], None]) -> Batch:
    """The lanes that replays are recorded in: those that draw themselves do, if they can."""
    if isinstance(config.env, EnvironmentOptions) and draws_itself(lanes.metadata):
        env = options_of(world, drawing_options(as_values(config.env)))
        drawing = make_batch(world, replace(config, env=env), PICTURE_LANES, autoreset_mode="disabled")
        try:
            show_pictures(drawing)
            return drawing
        except ConfigError as error:
            drawing.close()
            say(f"{error} Replays show observations instead.")
    return make_batch(world, config, REPLAY_LANES, autoreset_mode="disabled")


def _run_loop(loop: Loop, evaluator: Evaluator, run: Run, display: Display) -> str:
    """Run to the end; if that fails, say where the run can go on from."""
    try:
        with Interruptible(lambda: loop.stop(INTERRUPTED), display.say), suppress(Stopped):
            reason = loop.train()
            if not loop.stopping and evaluator.evaluated_at != loop.step:  # a rule ended it between two evaluations
                loop.last_metrics |= evaluator.evaluate(loop)
                loop.save()
        return reason
    except (ShoalError, KeyboardInterrupt):
        display.close()
        saved = run.checkpoints.steps()
        if saved:
            display.say(f"The last checkpoint is of step {saved[-1]:,}. Continue with: shoal train --resume {run.path}")
        else:
            display.say(f"There is no checkpoint in {run.path} yet, so this run cannot be resumed.")
        raise
