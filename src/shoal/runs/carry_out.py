"""A run as planned: lanes, agent and folder are opened, the loop runs, evaluated on the way, and a report is left."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from shoal.agents.agent import Agent
from shoal.agents.offpolicy import OffPolicyAgent
from shoal.errors import ConfigError, ShoalError, naming
from shoal.options import as_values
from shoal.registry import UNNAMED, EnvironmentOptions
from shoal.report.pictures import LANES as PICTURE_LANES
from shoal.report.pictures import drawing_options, draws_itself, show_observations, show_pictures
from shoal.report.replay import record_replay, save_replay
from shoal.report.run_report import write_report
from shoal.report.standstill import standstill
from shoal.runs.num_envs import check_memory
from shoal.runs.plan import Plan
from shoal.seeding import Seed, Stream
from shoal.training.acting import Actor
from shoal.training.checkpoint import Checkpoint, fitting
from shoal.training.config import AUTO, TrainConfig
from shoal.training.display import Display
from shoal.training.evaluate import Evaluator
from shoal.training.hooks import Hooks
from shoal.training.interrupt import INTERRUPTED, Interruptible, Stopped
from shoal.training.lab import lab_of
from shoal.training.loop import Loop
from shoal.training.metrics import RETURN, read_evaluations
from shoal.training.opening import begin_from, make_agent, make_batch, make_hooks
from shoal.training.replay_file import keep_replay_in
from shoal.training.run import Run, command_line, create_run, resume_run
from shoal.training.settings import config_values
from shoal.training.track import Tracker, load_service
from shoal.vector.batch import Batch
from shoal.world import World, options_of

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
        return self.metrics.get(RETURN) if self.evaluation is None else self.evaluation["mean"]


def carry_out(
    plan: Plan, runs_dir: str | Path, run_name: str | None, track: str | None, show: Callable[..., Display]
) -> TrainResult:
    """Train as planned. `show(title, total_steps, headlines=...)` makes what follows the run."""
    service = None if track is None else load_service(track)
    with ExitStack() as stack:
        with naming(plan.source):
            check_memory(plan.world, plan.config)
            batch = stack.enter_context(_open_lanes(plan))
            own_hooks = _hooks_for(plan, batch.pattern)
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
                f"{plan.world.name} has no name to import, so this run can only be resumed from Python, with "
                "shoal.train(env, resume=...). Put it into a module, and every verb of the command line works."
            )
        if isinstance(plan.config.env, EnvironmentOptions) and plan.config.env.num_workers == AUTO:
            display.say(f"The lanes have {getattr(batch, 'num_workers', 1)} worker processes.")
        if plan.network is not None:
            display.say(
                f"The network {type(plan.network).__name__} was made in Python, so this run can only be resumed with "
                "shoal.train(resume=..., network=...). Name its class, network='package.module:Net', and every "
                "verb of the command line works."
            )
        return _train(_make_loop(batch, agent, plan.config, run, own_hooks), plan, run, checkpoint, display)


def _hooks_for(plan: Plan, batch: Batch) -> Hooks:
    return make_hooks(plan.world, plan.config, batch) if plan.hooks is None else plan.hooks


def _open_lanes(plan: Plan) -> AbstractContextManager[Batch]:
    """The lanes to train in: here, or on runners."""
    if not plan.config.runners:
        return closing(make_batch(plan.world, plan.config, plan.config.num_envs))
    from shoal.cluster.fleet import open_fleet

    return open_fleet(plan.world, plan.config, plan.network, partial(_hooks_for, plan))


def _open_run(plan: Plan, batch: Batch, runs_dir: str | Path, name: str | None) -> Opened:
    if plan.resume is not None:
        return resume_run(plan.resume, only_numbers=batch.state_is_data, trust=plan.trust)
    values, headlines = config_values(plan.config), lab_of(plan.world).headlines
    return create_run(runs_dir, values, command_line(plan.config.world), headlines, name), None


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
        loop.evaluate = evaluator.evaluate
        display.look_back = partial(standstill, run.path)
        if isinstance(agent, OffPolicyAgent):
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
    plain = make_batch(world, config, REPLAY_LANES, autoreset_mode="disabled")
    show_observations(plain)
    return plain


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
            display.say(
                f"The last checkpoint is from step {saved[-1]:,}. Continue with: shoal train --resume {run.path}"
            )
        else:
            display.say(f"There is no checkpoint in {run.path} yet, so this run cannot be resumed.")
        raise
