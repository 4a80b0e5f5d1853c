"""`shoal bench step`: who is measured at what, and the command's options."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from shoal.bench.chart import write_bars
from shoal.bench.contender import Contender, Work
from shoal.bench.report import Interleaved, measure
from shoal.errors import ConfigError, unknown_name
from shoal.options import Flag
from shoal.registry import find_world, world_names
from shoal.training.lab import Verb
from shoal.world import World

ANY_NUMBER = 2**30
NUM_WORKERS = 2
BOARDS = "boards"
_MIXTURES = {"cage2": {"red": "bline,meander"}}  # worlds that can be played in several ways, dealt out to the lanes


@dataclass(frozen=True)
class StepArgs(Interleaved):
    """Measure environment steps per second: Shoal and every peer installed, one thread each, interleaved in one run.

    CartPole also runs Gymnasium's Python environment on worker processes, LunarLander, and a sweep over lanes. `boards`
    are a Snake and a 2048 of our own against the same by hand in C.
    """

    world: Annotated[str, Flag("WORLD", positional=True)] = "cartpole"
    """A world of `shoal envs`, or `boards`."""
    num_envs: str = "1,8,64,1024,8192"
    """Numbers of lanes, separated by commas."""
    chart: Path | None = None
    """Draw the rates at the largest number of lanes as an SVG."""
    rounds: int = 7
    seconds: float = 0.15
    only: str = ""
    """Measure only works whose name contains this: e.g. "workers", "scaling"."""
    python: tuple[str, ...] = ()
    """PACKAGE=PATH: the interpreter of a peer that cannot be installed alongside Shoal."""

    @property
    def lanes(self) -> list[int]:
        try:
            lanes = [int(part) for part in self.num_envs.split(",")]
        except ValueError:
            lanes = [0]
        if min(lanes) < 1:
            raise ConfigError(f"--num-envs {self.num_envs!r} is not a list of numbers of lanes. Pass e.g. 1,64,1024.")
        return lanes

    @property
    def pythons(self) -> dict[str, str]:
        for pair in self.python:
            if "=" not in pair:
                raise ConfigError(f"--python {pair!r} names no package. Pass e.g. pufferlib=/path/to/bin/python.")
        return dict(pair.split("=", 1) for pair in self.python)


def run(args: StepArgs) -> int:
    """The command."""
    if args.world == BOARDS:
        every = [work for num_envs in args.lanes for work in board_works(num_envs)]
    else:
        world = find_world(args.world)
        if world is None:
            raise unknown_name("world", args.world, [*world_names(), BOARDS], "`shoal envs`")
        every = works_of(world, args.lanes)
    works = [work for work in every if args.only in work.name]
    if not works:
        raise ConfigError(f"No work of {args.world} has {args.only!r} in its name.")
    result = measure("step", works, args, args.pythons)
    if args.chart is not None:
        shown = works[0].name
        title = f"{shown}, {max(args.lanes):,} lanes, one thread: environment steps per CPU-second"
        drawn = [row for row in result.rows if (row.work, row.num_envs) == (shown, max(args.lanes))]
        write_bars(drawn, title, args.chart)
    return 0


def run_short(pythons: dict[str, str]) -> None:
    """What `shoal bench` shows without being asked for more: under a minute."""
    fast = (*_fast("cartpole"), *_arrays("CartPole-v1"))
    works = [Work("cartpole", lanes, fast) for lanes in (1, 1024, 8192)]
    works.append(python_env_work("CartPole-v1", 64, processes_each=False))
    measure("step", works, Interleaved(rounds=5, seconds=0.1), pythons)


# ---------------------------------------------------------------------- who takes part in what


def works_of(world: World, lanes: list[int]) -> list[Work]:
    """All work of the suite on one world."""
    name, env = world.name, world.gym_id.removeprefix("shoal/")
    if name == "hockey":
        return [work for num_envs in lanes for work in hockey_works(num_envs)]
    fast = _fast(name)
    limit = _ours("memory limit", "memory_limit", env=name)
    contenders = [*fast, limit, *_arrays(env), *_loops(env)]
    if name == "cartpole":
        contenders.append(_peer("pufferlib c", "pufferlib_c", "pufferlib"))
    if name == "cage2":  # it has no peers to install: the same source, uncompiled, one lane at a time
        contenders.append(_ours("python loop", "single_lanes", 1024, env=name, **_MIXTURES[name]))
    works = [Work(name, num_envs, tuple(contenders)) for num_envs in lanes]
    if name != "cartpole":
        return works
    kernel, _, *c_loops = fast
    return [
        *works,
        *(Work("cartpole scaling", num_envs, (kernel, limit, *c_loops)) for num_envs in (1024, 4096, 16384, 65536)),
        python_env_work(env, 64, processes_each=True),
        python_env_work("LunarLander-v3", 64, processes_each=False),
    ]


def hockey_works(num_envs: int) -> list[Work]:
    """Two bots inside the lanes, and random actions for both players; the peer is the original, one object a lane."""
    works = []
    for name, bots, seats in (
        ("hockey bots", True, {"player": "strong", "opponent": "weak"}),
        ("hockey random", False, {"opponent": "external"}),
    ):
        contenders = (
            *_fast("hockey", **seats),
            _peer("hockey-env", "hockey_env", "hockey", 1024, bots=bots),
            _batch("python loop", "hockey", 8, copy=False, compiled=False, **seats),
        )
        works.append(Work(name, num_envs, contenders))
    return works


def board_works(num_envs: int) -> list[Work]:
    """Snake and 2048, observed as planes, against the same by hand in C."""
    works = []
    for title, kernel in (("snake", "Snake"), ("2048", "Twenty48")):
        contenders = (
            _ours("shoal kernel", "board", kernel=kernel, num_threads=1, copy=False),
            _ours("shoal kernel, copies", "board", kernel=kernel, num_threads=1),
            _ours("c loop", "board_in_c", kernel=kernel),
        )
        works.append(Work(title, num_envs, contenders))
    return works


def python_env_work(env: str, num_envs: int, processes_each: bool) -> Work:
    """A Python environment on two worker processes by the wall clock, against one process and one process per lane."""
    contenders = [
        _ours("shoal workers", "shoal_batch", env=env, copy=False, backend="workers", num_workers=NUM_WORKERS),
        _ours("shoal serial", "shoal_batch", env=env, copy=False, backend="serial"),
        _peer("gymnasium sync", "gymnasium_vector", "gymnasium", env=env, mode="sync"),
        _ours("two processes apart", "two_processes", env=env),
    ]
    if processes_each:
        contenders += [
            _peer("gymnasium async", "gymnasium_vector", "gymnasium", env=env, mode="async"),
            _peer("sb3 subproc", "sb3", "stable_baselines3", env=env, processes=True),
        ]
    return Work(f"{env.partition('-')[0].lower()} workers", num_envs, tuple(contenders), clock="wall")


def _fast(world: str, **options: str) -> tuple[Contender, ...]:
    """Our kernel, with and without copies of what it returns, and the loops in C where there are any."""
    kernel = (
        _batch("shoal kernel", world, ANY_NUMBER, copy=False, **options),
        _batch("shoal kernel, copies", world, ANY_NUMBER, **options),
    )
    if world != "cartpole":
        return kernel
    return (*kernel, _ours("c loop", "c_loop"), _ours("c loop, columns", "c_loop", columns=True))


def _arrays(env: str) -> tuple[Contender, ...]:
    """Peers whose lanes are rows of arrays."""
    return (
        _peer("gymnasium vector", "gymnasium_vector", "gymnasium", env=env, mode="vector_entry_point"),
        _peer("gymnax scan", "gymnax_scan", "gymnax", env=env),
        _peer("envpool", "envpool", "envpool", env=env),
    )


def _loops(env: str) -> tuple[Contender, ...]:
    """Peers that loop over Python environments in one process."""
    return (
        _peer("gymnasium sync", "gymnasium_vector", "gymnasium", 64, env=env, mode="sync"),
        _peer("sb3 dummy", "sb3", "stable_baselines3", 64, env=env, processes=False),
        _peer("torchrl serial", "torchrl_serial", "torchrl", 64, env=env),
        _peer("pufferlib serial", "pufferlib_serial", "pufferlib", 64, env=env),
    )


def _batch(name: str, world: str, max_envs: int, /, **options: str | bool) -> Contender:
    """A batch of ours on one thread."""
    return _ours(name, "shoal_batch", max_envs, env=world, num_threads=1, **_MIXTURES.get(world, {}), **options)


def _ours(name: str, function: str, max_envs: int = ANY_NUMBER, **options: object) -> Contender:
    return Contender(name, f"shoal.bench.step.ours:{function}", options, max_envs=max_envs)


def _peer(name: str, function: str, package: str, max_envs: int = ANY_NUMBER, **options: object) -> Contender:
    return Contender(name, f"shoal.bench.step.peers:{function}", options, package, max_envs)


SUITE = Verb(StepArgs, run)
