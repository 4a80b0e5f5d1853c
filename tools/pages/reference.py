"""Reference pages: what dataclasses, help texts and docstrings say."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os

import shoal
from shoal.cli import VERBS, main
from shoal.options import NoOptions, default_of, describe, docs_of, flag_of, hints_of
from shoal.registry import OURS, find_world
from shoal.training.lab import Lab, lab_of
from shoal.world import World, options_of

PYTHON = {
    "Make and step batches": ["shoal.registry.make", "shoal.vector.batch.Batch", "shoal.vector.batch.Step"],
    "Write environments": [
        "shoal.vector.kernel.kernel.Kernel",
        "shoal.vector.kernel.record.record",
        "shoal.vector.kernel.batch.KernelBatch",
        "shoal.vector.batched.Batched",
        "shoal.vector.oracle.Oracle",
        "shoal.vector.workers.batch.WorkerBatch",
        "shoal.vector.serial.SerialBatch",
    ],
    "Check them": ["shoal.testing.suite.check_batch", "shoal.testing.suite.assert_batch"],
    "Train": [
        "shoal.experiments.train.train",
        "shoal.agents.ppo.PPO",
        "shoal.agents.sac.SAC",
        "shoal.agents.dddqn.DDDQN",
        "shoal.training.hooks.Hooks",
    ],
    "Take a policy along": ["shoal.policy.load.load", "shoal.policy.policy.Policy"],
    "Bring a world": [
        "shoal.world.World",
        "shoal.world.BatchOptions",
        "shoal.training.lab.Lab",
        "shoal.training.lab.Preset",
        "shoal.vector.rendering.Renderer",
    ],
    "Bridges": [
        "shoal.bridges.rllib.ppo_config",
        "shoal.bridges.torchrl.ShoalEnv",
        "shoal.bridges.sb3.vec_env",
        "shoal.bridges.pettingzoo.parallel_env",
        "shoal.bridges.pettingzoo.parallel_batch",
    ],
    "Errors": ["shoal.errors"],
}
"""What is public, by what it is for."""


def pages() -> dict[str, str]:
    """What is added to pages of docs/, by path."""
    return {
        "reference/worlds.md": worlds_page(),
        "reference/cli.md": cli_page(),
        "reference/python.md": python_page(),
    }


def worlds() -> list[World]:
    """Those that come with Shoal."""
    return [world for world in map(find_world, OURS) if world is not None]


def worlds_page() -> str:
    """Options, presets and policies of every world that comes with Shoal."""
    parts: list[str] = []
    for world in worlds():
        summary = f"{world.summary[0].upper()}{world.summary[1:]}"
        parts += [f"## {world.name}", f"{summary}. In Gymnasium: `{world.gym_id}`.", *_of_world(world)]
    return "\n\n".join(parts)


def _of_world(world: World) -> list[str]:
    lab: Lab = lab_of(world)
    parts = [_table(world.options)]
    if lab.options is not NoOptions:
        parts += ["**In training, beside:**", _table(lab.options)]
    if lab.presets:
        rows = [f"| `{name}` | {preset.about} |" for name, preset in lab.presets.items()]
        parts += ["\n".join(["| preset | |", "|---|---|", *rows])]
    if lab.policies is not None:
        policies = lab.policies(options_of(world, {})).items()
        rows = [f"| `{name}` | {policy.about} |" for name, policy in policies]
        parts += ["\n".join(["| policy | |", "|---|---|", *rows])]
    return parts


def cli_page() -> str:
    """What `--help` prints for every verb."""
    parts = [_help(), *(f"## {verb}\n\n{_help(verb)}" for verb in VERBS)]
    parts += [f"## {world.name} {verb}\n\n{_help(world.name, verb)}" for world in worlds() for verb in world.commands]
    return "\n\n".join(parts)


def python_page() -> str:
    """Directives for mkdocstrings."""
    names = ", ".join(f"`{name}`" for name in shoal.__all__ if name != "__version__")
    parts = [f"`import shoal` gives {names}."]
    for title, things in PYTHON.items():
        parts += [f"## {title}", *(f"::: {thing}" for thing in things)]
    return "\n\n".join(parts)


def _help(*words: str) -> str:
    out = io.StringIO()
    width, os.environ["COLUMNS"] = os.environ.get("COLUMNS"), "110"
    try:
        with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
            main([*words, "--help"])
    finally:
        os.environ.pop("COLUMNS") if width is None else os.environ.__setitem__("COLUMNS", width)
    return f"```text\n$ shoal {' '.join([*words, '--help'])}\n{out.getvalue().rstrip()}\n```"


def _table(options: type) -> str:
    """Name, default, type and meaning of every field."""
    if options is NoOptions:
        return "Nothing can be set."
    hints, docs = hints_of(options), docs_of(options)
    rows = ["| setting | default | takes | |", "|---|---|---|---|"]
    for field in dataclasses.fields(options):
        hint = hints.get(field.name)
        if hint is None or dataclasses.is_dataclass(default_of(field)):
            continue
        takes = " or ".join([describe(hint), *flag_of(hint).words])
        rows.append(f"| `{field.name}` | {_shown(default_of(field))} | {_cell(takes)} | {_cell(docs[field.name])} |")
    return "\n".join(rows)


def _shown(value: object) -> str:
    if value is dataclasses.MISSING:
        return "*must be given*"
    return "none" if value in (None, "") else f"`{' '.join(map(str, value)) if isinstance(value, tuple) else value}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
