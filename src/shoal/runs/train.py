"""`shoal.train`: from a world's name to a run folder with a trained agent. The command line calls the same function.

What is to be trained is known before torch is loaded, which takes seconds: mistakes are told at once, and whatever must
be compiled is begun by then.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.agents.config import is_own
from shoal.runs.num_envs import Source, plan_measured
from shoal.runs.plan import Plan, plan_resumed
from shoal.training.config import AUTO
from shoal.training.display import make_display
from shoal.training.hooks import Hooks
from shoal.training.lab import lab_of
from shoal.training.own_network import name_network
from shoal.training.settings import merge, with_algo_table

if TYPE_CHECKING:
    from torch import nn

    from shoal.runs.carry_out import TrainResult


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
    with _compiling_aside(plan):
        from shoal.runs.carry_out import carry_out

        return carry_out(plan, runs_dir, run_name, track, partial(make_display, quiet=quiet))


def _compiling_aside(plan: Plan) -> AbstractContextManager[None]:
    """Have what learns compiled while the lanes are, where it is the standard one."""
    config = plan.config
    has_own_network = is_own(config.algo.network) or lab_of(plan.world).network is not None
    if config.algo.name != "ppo" or config.device != "cpu" or config.runners or has_own_network:
        return nullcontext()
    from shoal.agents.fast.ahead import learner_compiled_aside

    return learner_compiled_aside(plan.world.continuous)
