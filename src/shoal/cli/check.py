"""`shoal check ENV`: the conformance suite on any environment, its findings in sentences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

if TYPE_CHECKING:
    from rich.console import Console

    from shoal.testing import Finding
    from shoal.testing.subject import MakeBatch


@dataclass(frozen=True)
class CheckArgs:
    """Test an environment against the contract of `shoal.vector.batch`, and say in sentences what it breaks.

    A kernel is checked compiled and compared with its own source uncompiled; a gymnasium.Env is checked serially and
    on worker processes, and the two are compared.
    """

    env: Annotated[str, tyro.conf.Positional]
    """A world ("cartpole"), a Gymnasium id ("CartPole-v1"), or "package.module:Name"."""
    backend: Literal["auto", "serial", "workers", "gymnasium"] = "auto"
    """How a gymnasium.Env is run; "gymnasium" checks Gymnasium's own vector environment of that id."""
    num_envs: int = 3
    """Lanes of the largest case."""
    num_steps: int | None = None
    """Steps of the longest case; by default a little longer than an episode under random actions."""
    max_examples: int = 8
    """Cases drawn for each promise."""


@dataclass(frozen=True)
class Plan:
    """Ways to make the batch that are each checked in full, and pairs that must agree."""

    ways: dict[str, MakeBatch]
    pairs: tuple[tuple[str, MakeBatch, str, MakeBatch], ...] = ()


def main(argv: list[str]) -> int:
    """Check, print, and return 1 if a promise is broken."""
    args = tyro.cli(CheckArgs, args=argv, prog="shoal check")
    from rich.console import Console

    from shoal.testing import BROKEN, PROMISES, check_agreement, check_batch

    console = Console(highlight=False)
    plan, broken = plan_for(args.env, args.backend), 0
    for label, make in plan.ways.items():
        with console.status(f"{label}: …") as status:
            findings = check_batch(
                make,
                num_envs=args.num_envs,
                num_steps=args.num_steps,
                max_examples=args.max_examples,
                on_promise=lambda name, label=label: status.update(f"{label}: {name}"),  # type: ignore[misc]
            )
        broken += sum(finding.severity == BROKEN for finding in findings)
        _print_findings(console, f"{args.env}, {label}", findings, len(PROMISES))
    for label, make, other_label, make_other in plan.pairs:
        findings = check_agreement(make, make_other, (label, other_label), num_envs=args.num_envs)
        broken += len(findings)
        for finding in findings:
            console.print(f"  [red]broken[/]  {label} and {other_label} agree", finding.sentence, markup=True)
        if not findings:
            console.print(f"[bold]{args.env}[/]: {label} and {other_label} give the same trajectories, bit for bit")
    return 1 if broken else 0


def plan_for(env: str, backend: str = "auto") -> Plan:
    """What there is to check about `env`."""
    import gymnasium
    from gymnasium.vector import VectorEnv

    from shoal.errors import ConfigError
    from shoal.registry import find_world, make, resolve
    from shoal.vector.kernel import Kernel

    entry = resolve(env)
    if backend == "gymnasium":
        if not isinstance(entry, str):
            raise ConfigError(f"{env!r} is no Gymnasium id, so Gymnasium has no vector environment of it.")
        return Plan({"gymnasium.make_vec": lambda num_envs: gymnasium.make_vec(env, num_envs=num_envs)})
    if isinstance(entry, Kernel) or (isinstance(entry, type) and issubclass(entry, Kernel)):
        compiled, uncompiled = _way(make, env), _way(make, env, compiled=False)
        return Plan({"kernel": compiled}, (("compiled", compiled, "uncompiled", uncompiled),))
    if find_world(env) is not None:
        return Plan({"batch": _way(make, env)})
    if isinstance(entry, type) and issubclass(entry, VectorEnv):
        return Plan({"batch": entry})
    serial, workers = _way(make, env, backend="serial"), _way(make, env, backend="workers", context="fork")
    if backend != "auto":
        return Plan({backend: {"serial": serial, "workers": workers}[backend]})
    return Plan({"serial": serial, "workers": workers}, (("workers", workers, "serial", serial),))


def _way(make: Callable[..., Any], env: str, **fixed: Any) -> MakeBatch:
    return lambda num_envs, **options: make(env, num_envs, **fixed, **options)


def _print_findings(console: Console, title: str, findings: list[Finding], total: int) -> None:
    from shoal.testing import BROKEN, NOT_OFFERED

    broken = [finding for finding in findings if finding.severity == BROKEN]
    kept = total - len([finding for finding in findings if finding.severity in (BROKEN, NOT_OFFERED)])
    verdict = f"[red]{len(broken)} broken[/]" if broken else "[green]none broken[/]"
    console.print(f"[bold]{title}[/]: {kept} of {total} promises kept, {verdict}")
    for finding in sorted(findings, key=lambda finding: finding.severity != BROKEN):
        colour = "red" if finding.severity == BROKEN else "dim"
        console.print(f"  [{colour}]{finding.severity}[/]: {finding.promise}")
        console.print(f"    {finding.sentence}", markup=False, style=None if finding.severity == BROKEN else "dim")
