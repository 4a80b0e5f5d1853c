"""`shoal check ENV`: the conformance suite on any environment, its findings in sentences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from shoal.cli.options import parse
from shoal.options import Flag

if TYPE_CHECKING:
    from rich.console import Console

    from shoal.testing import Finding
    from shoal.testing.subject import MakeBatch


@dataclass(frozen=True)
class CheckArgs:
    """Test an environment against the contract of `shoal.vector.batch`, and say in sentences what it breaks.

    A kernel is first tried with every index, division and store tested, which names the line of a mistake; then it is
    checked compiled and compared with its own source uncompiled. A gymnasium.Env is checked serially and on worker
    processes, and the two are compared.
    """

    env: Annotated[str, Flag("ENV", positional=True)]
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
    checked: MakeBatch | None = None
    """Makes lanes that test every index, division and store, if it is a kernel."""


def main(argv: list[str]) -> int:
    """Check, print, and return 1 if a promise is broken."""
    args = parse(CheckArgs, argv, "shoal check")
    from rich.console import Console
    from rich.markup import escape

    from shoal.testing import BROKEN, PROMISES, check_agreement, check_batch

    console = Console(highlight=False)
    plan, broken = plan_for(args.env, args.backend), 0
    if plan.checked is not None:
        with console.status("trying it with every index tested"):
            cause, notes = try_checked(plan.checked, args.num_envs)
        for note in notes:
            console.print(f"  looks like a mistake: {note}", markup=False)
        if cause:
            console.print(f"  [red]broken[/]: {escape(cause)}")
            return 1  # every promise that fails would fail of this
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
    from shoal.registry import as_world, make
    from shoal.vector.kernel import Kernel

    entry = as_world(env).source
    if backend == "gymnasium":
        if not isinstance(entry, str):
            raise ConfigError(f"{env!r} is not a Gymnasium id, so Gymnasium has no vector environment of it.")
        return Plan({"gymnasium.make_vec": lambda num_envs: gymnasium.make_vec(env, num_envs=num_envs)})
    if isinstance(entry, Kernel) or (isinstance(entry, type) and issubclass(entry, Kernel)):
        compiled, uncompiled = _way(make, env), _way(make, env, compiled=False)
        pairs = (("compiled", compiled, "uncompiled", uncompiled),)
        return Plan({"kernel": compiled}, pairs, _way(make, env, compiled=False, checked=True))
    if entry is None:  # a world
        return _plan_for_world(env)
    if isinstance(entry, type) and issubclass(entry, VectorEnv):
        return Plan({"batch": entry})
    serial, workers = _way(make, env, backend="serial"), _way(make, env, backend="workers", context="fork")
    if backend != "auto":
        return Plan({backend: {"serial": serial, "workers": workers}[backend]})
    return Plan({"serial": serial, "workers": workers}, (("workers", workers, "serial", serial),))


def _plan_for_world(env: str) -> Plan:
    """A world's lanes; where they are a kernel's, also the same source uncompiled."""
    from shoal.registry import make
    from shoal.vector.kernel import KernelBatch

    batch = make(env, 1)
    is_kernel = type(batch) is KernelBatch
    batch.close()
    if not is_kernel:
        return Plan({"batch": _way(make, env)})
    compiled, uncompiled = _way(make, env), _way(make, env, compiled=False)
    pairs = (("compiled", compiled, "uncompiled", uncompiled),)
    return Plan({"kernel": compiled}, pairs, _way(make, env, compiled=False, checked=True))


def try_checked(make_checked: MakeBatch, num_envs: int, num_steps: int = 200) -> tuple[str, list[str]]:
    """The sentence about a kernel's mistake, or nothing, and notes about what looks like one."""
    from shoal.errors import KernelError
    from shoal.testing.findings import Broken
    from shoal.testing.player import Case, Player
    from shoal.vector.kernel import KernelBatch
    from shoal.vector.kernel.dry_run import dry_run

    try:
        batch = make_checked(num_envs)
        assert isinstance(batch, KernelBatch)
        notes = dry_run(batch.kernel, batch.lane_state)
        player = Player(batch, Case(num_envs, num_steps, seed=0, action_seed=0), batch.autoreset_mode).reset()
        player.play()
    except KernelError as error:
        return str(error), []
    except Broken as broken:
        if isinstance(broken.__cause__, KernelError):
            return str(broken.__cause__), notes
        raise
    return "", notes


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
