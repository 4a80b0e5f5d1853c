"""`shoal bench step`: who is measured at what, and the command's options."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from shoal.bench.chart import write_bars
from shoal.bench.contender import Contender, Work
from shoal.bench.rounds import Result
from shoal.errors import ConfigError, unknown_name
from shoal.registry import WORLDS, World, find_world

_OURS, _PEERS = "shoal.bench.step.ours", "shoal.bench.step.peers"
NUM_WORKERS = 2
_MIXTURES = {"cage2": {"red": "bline,meander"}}  # worlds that can be played in several ways, dealt out to the lanes


@dataclass(frozen=True)
class StepArgs:
    """Measure environment steps per second: Shoal and every peer installed, one thread each, interleaved in one run.

    CartPole also runs Gymnasium's Python environment on worker processes, LunarLander, and a sweep over lanes.
    """

    world: Annotated[str, tyro.conf.Positional] = "cartpole"
    """A world of `shoal envs`."""
    num_envs: str = "1,8,64,1024,8192"
    """Numbers of lanes, separated by commas."""
    out: Path | None = None
    """Write the rows here as JSON."""
    chart: Path | None = None
    """Draw the rates at the largest number of lanes as an SVG."""
    rounds: int = 7
    """Interleaved rounds, of which the median is reported."""
    seconds: float = 0.15
    """Duration of one measurement."""
    only: str = ""
    """Measure only works whose name contains this: e.g. "workers", "scaling"."""
    python: tuple[str, ...] = ()
    """PACKAGE=PATH: the interpreter of a peer that cannot be installed beside Shoal."""

    @property
    def lanes(self) -> list[int]:
        try:
            lanes = [int(part) for part in self.num_envs.split(",")]
        except ValueError:
            lanes = [0]
        if min(lanes) < 1:
            raise ConfigError(f"--num-envs {self.num_envs!r} is no list of lanes. Pass e.g. 1,64,1024.")
        return lanes

    @property
    def pythons(self) -> dict[str, str]:
        for pair in self.python:
            if "=" not in pair:
                raise ConfigError(f"--python {pair!r} names no package. Pass e.g. pufferlib=/path/to/bin/python.")
        return dict(pair.split("=", 1) for pair in self.python)


def run(argv: list[str]) -> int:
    """The command."""
    args = tyro.cli(StepArgs, args=argv, prog="shoal bench step")
    world = find_world(args.world)
    if world is None:
        raise unknown_name("world", args.world, WORLDS, "`shoal envs`")
    works = [work for work in works_of(world, args.lanes) if args.only in work.name]
    if not works:
        raise ConfigError(f"No work of {world.name} has {args.only!r} in its name.")
    result = measure(works, rounds=args.rounds, seconds=args.seconds, pythons=args.pythons, out=args.out)
    if args.chart is not None:
        title = f"{world.name}, {max(args.lanes):,} lanes, one thread: environment steps per CPU-second"
        drawn = [row for row in result.rows if (row.work, row.num_envs) == (world.name, max(args.lanes))]
        write_bars(drawn, title, args.chart)
    return 0


def run_short(pythons: dict[str, str]) -> None:
    """What `shoal bench` shows without being asked for more: under a minute."""
    cartpole = WORLDS["cartpole"]
    fast = [_kernel(cartpole), _copying(cartpole), *_c_loop(cartpole), *_arrays(cartpole)]
    works = [Work("cartpole", lanes, tuple(fast)) for lanes in (1, 1024, 8192)]
    measure([*works, python_env_work("CartPole-v1", 64, processes_each=False)], rounds=5, seconds=0.1, pythons=pythons)


def measure(
    works: list[Work], *, rounds: int, seconds: float, pythons: dict[str, str], out: Path | None = None
) -> Result:
    """Run, print, and write."""
    from rich.console import Console

    from shoal.bench.report import print_result, write_result
    from shoal.bench.rounds import run_works

    console = Console(width=None if Console().is_terminal else 120)
    with console.status("starting") as status:
        result = run_works(
            "step", works, rounds=rounds, seconds=seconds, pythons=pythons, on_progress=lambda text: status.update(text)
        )
    print_result(result, console)
    if out is not None:
        write_result(result, out)
        console.print(f"rows written to {out}")
    return result


# ---------------------------------------------------------------------- who takes part in what


def works_of(world: World, lanes: list[int]) -> list[Work]:
    """All work of the suite on one world."""
    if world.name == "hockey":
        return [work for num_envs in lanes for work in hockey_works(world, num_envs)]
    env = world.gym_id.removeprefix("shoal/")
    contenders = (
        _kernel(world),
        _copying(world),
        *_c_loop(world),
        Contender("memory limit", f"{_OURS}:memory_limit", {"env": world.name}),
        *_arrays(world),
        *_loops(env),
        *_puffer_c(world),
        *_python_loop(world),
    )
    works = [Work(world.name, num_envs, contenders) for num_envs in lanes]
    if world.name != "cartpole":
        return works
    sweep = (_kernel(world), *_c_loop(world))
    return [
        *works,
        *(Work("cartpole scaling", num_envs, sweep) for num_envs in (1024, 4096, 16384, 65536)),
        python_env_work(env, 64, processes_each=True),
        python_env_work("LunarLander-v3", 64, processes_each=False),
    ]


def hockey_works(world: World, num_envs: int) -> list[Work]:
    """Two bots inside the lanes, and random actions for both players; the peer is the original, one object a lane."""
    works = []
    for name, bots, seats in (
        ("hockey bots", True, {"player": "strong", "opponent": "weak"}),
        ("hockey random", False, {"opponent": "external"}),
    ):
        contenders = (
            Contender("shoal kernel", f"{_OURS}:shoal_batch", _ours(world, copy=False, **seats)),
            Contender("shoal kernel, copies", f"{_OURS}:shoal_batch", _ours(world, **seats)),
            Contender("hockey-env", f"{_PEERS}:hockey_env", {"bots": bots}, "hockey", 1024),
            Contender(
                "python loop", f"{_OURS}:shoal_batch", _ours(world, copy=False, compiled=False, **seats), None, 8
            ),
        )
        works.append(Work(name, num_envs, contenders))
    return works


def _ours(world: World, **options: Any) -> dict[str, Any]:
    """Options of our batch."""
    return {"env": world.name, "num_threads": 1, **_MIXTURES.get(world.name, {}), **options}


def _kernel(world: World) -> Contender:
    return Contender("shoal kernel", f"{_OURS}:shoal_batch", _ours(world, copy=False))


def _copying(world: World) -> Contender:
    return Contender("shoal kernel, copies", f"{_OURS}:shoal_batch", _ours(world))


def _python_loop(world: World) -> list[Contender]:
    """The same source, uncompiled, one lane at a time: what a world without installed peers would be in Python."""
    if world.name != "cage2":
        return []
    return [Contender("python loop", f"{_OURS}:single_lanes", {"env": world.name, **_MIXTURES[world.name]}, None, 1024)]


def _c_loop(world: World) -> list[Contender]:
    return [Contender("c loop", f"{_OURS}:c_loop")] if world.name == "cartpole" else []


def _arrays(world: World) -> list[Contender]:
    """Peers whose lanes are rows of arrays."""
    env = world.gym_id.removeprefix("shoal/")
    native = {"env": env, "mode": "vector_entry_point"}
    return [
        Contender("gymnasium vector", f"{_PEERS}:gymnasium_vector", native, "gymnasium"),
        Contender("gymnax scan", f"{_PEERS}:gymnax_scan", {"env": env}, "gymnax"),
        Contender("envpool", f"{_PEERS}:envpool", {"env": env}, "envpool"),
    ]


def _loops(env: str) -> list[Contender]:
    """Peers that loop over Python environments in one process."""
    return [
        Contender("gymnasium sync", f"{_PEERS}:gymnasium_vector", {"env": env, "mode": "sync"}, "gymnasium", 64),
        Contender("sb3 dummy", f"{_PEERS}:sb3", {"env": env, "processes": False}, "stable_baselines3", 64),
        Contender("torchrl serial", f"{_PEERS}:torchrl_serial", {"env": env}, "torchrl", 64),
        Contender("pufferlib serial", f"{_PEERS}:pufferlib_serial", {"env": env}, "pufferlib", 64),
    ]


def _puffer_c(world: World) -> list[Contender]:
    return [Contender("pufferlib c", f"{_PEERS}:pufferlib_c", package="pufferlib")] if world.name == "cartpole" else []


def python_env_work(env: str, num_envs: int, processes_each: bool) -> Work:
    """A Python environment on two worker processes by the wall clock, against one process and one process per lane."""
    ours = {"env": env, "copy": False}
    contenders = [
        Contender("shoal workers", f"{_OURS}:shoal_batch", {**ours, "backend": "workers", "num_workers": NUM_WORKERS}),
        Contender("shoal serial", f"{_OURS}:shoal_batch", {**ours, "backend": "serial"}),
        Contender("gymnasium sync", f"{_PEERS}:gymnasium_vector", {"env": env, "mode": "sync"}, "gymnasium"),
        Contender("two processes apart", f"{_OURS}:two_processes", {"env": env}),
    ]
    if processes_each:
        contenders += [
            Contender("gymnasium async", f"{_PEERS}:gymnasium_vector", {"env": env, "mode": "async"}, "gymnasium"),
            Contender("sb3 subproc", f"{_PEERS}:sb3", {"env": env, "processes": True}, "stable_baselines3"),
        ]
    return Work(f"{env.partition('-')[0].lower()} workers", num_envs, tuple(contenders), clock="wall")
