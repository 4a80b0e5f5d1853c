"""How many lanes there can be, and with `--num-envs auto` how many there should be, by measuring.

Numbers of lanes compete: each has lanes and an agent of its own and makes real iterations (collect and update), all of
them in turn, round after round, so that a moment in which the machine is busy hits everybody. Twice as many join
while that promises more and fits into memory, and it ends once the same number has been the choice for some rounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from shoal.agents.config import OffPolicyConfig
from shoal.errors import ConfigError
from shoal.options import Values
from shoal.platform import free_memory
from shoal.registry import as_world
from shoal.training.config import AUTO, TrainConfig
from shoal.training.settings import plan_config, read_settings, world_in
from shoal.trees import named_leaves
from shoal.vector.spaces import empty_batch
from shoal.world import World

if TYPE_CHECKING:
    from torch import nn

    from shoal.runs.contender import Contender

ConfigFor = Callable[[int], TrainConfig]
"""The settings of the run with this many lanes; `ConfigError` where they do not suit it."""

FIRST, LAST = 16, 16_384
ENOUGH = 1.10  # more lanes must be this much faster
JOIN_ROUNDS, STEADY_ROUNDS = 3, 4
BUDGET_S = 60.0  # after which what is known decides
SHARE_OF_MEMORY = 0.5  # that lanes may take of what is free
SURELY_FITS = 1 << 22  # steps that are not worth making a lane to measure


class Source(NamedTuple):
    """What a new run is made from, besides its settings."""

    world: Any
    file: str | Path | None = None
    preset: str | None = None


def plan_measured(
    source: Source, settings: Values, network: nn.Module | None, say: Callable[[str], None]
) -> tuple[World, TrainConfig]:
    """World and configuration of a new run, with as many lanes as are fastest if that is left to measuring."""

    def planned(**lanes: int) -> tuple[World, TrainConfig]:
        return plan_config(source.world, {**settings, **lanes}, source.file, source.preset)

    named = None if source.world is None else as_world(source.world)
    in_file = {} if source.file is None else read_settings(source.file, named)
    if settings.get("num_envs", in_file.get("num_envs")) != AUTO or (named is None and "world" not in in_file):
        return planned()
    world = named or world_in(in_file, str(source.file))
    num_envs = measured_num_envs(world, lambda count: planned(num_envs=count)[1], network, say)
    say(f"Training with {num_envs:,} lanes.")
    return planned(num_envs=num_envs)


def measured_num_envs(
    world: World,
    config_for: ConfigFor,
    network: nn.Module | None = None,
    say: Callable[[str], None] = lambda text: None,
    free_bytes: int | None = None,
) -> int:
    """The number of lanes with which a run trains fastest here, within half of the free memory."""
    from shoal.runs.contender import Contender

    room = SHARE_OF_MEMORY * (_room() if free_bytes is None else free_bytes)
    waiting, late, choices = candidates(config_for), Deadline(BUDGET_S), list[int]()
    with ExitStack() as stack:
        field: list[Contender] = []
        upcoming = next(waiting, None)
        while not choices or not (late() or _is_steady(choices)):
            if upcoming is not None and promises_more(field):
                if (needed := upcoming.num_envs * bytes_per_lane(field)) > room:
                    lanes, size = f"{upcoming.num_envs:,} lanes", f"{needed / 2**20:,.0f} MiB"
                    say(f"{lanes} would take {size}, more than half of what is free.")
                    upcoming = None
                    continue
                field.append(stack.enter_context(closing(Contender(world, upcoming, network))))
                play(field, late, JOIN_ROUNDS)
                size = f", {bytes_per_lane(field) / 2**10:,.0f} KiB per lane" if len(field) > 1 else ""
                say(f"{upcoming.num_envs:,} lanes: {field[-1].steps_per_s:,.0f} steps/s{size}")
                upcoming, choices = next(waiting, None), []
            else:
                play(field, late)
            choices.append(chosen(field))
    if not _is_steady(choices):
        measured = "1 number of lanes" if len(field) == 1 else f"{len(field)} numbers of lanes"
        say(
            f"The choice was not steady after {BUDGET_S:.0f} s, with {measured} measured. The machine may be busy: "
            "measure again when it is not (or with OMP_NUM_THREADS=1), or name a number."
        )
    return choices[-1]


def _is_steady(choices: list[int]) -> bool:
    return len(choices) >= STEADY_ROUNDS and len(set(choices[-STEADY_ROUNDS:])) == 1


class Deadline:
    """Tells whether some seconds have passed since it was made."""

    def __init__(self, seconds: float) -> None:
        self._at = time.monotonic() + seconds

    def __call__(self) -> bool:
        return time.monotonic() > self._at


def play(field: Sequence[Contender], late: Deadline, rounds: int = 1) -> None:
    """Rounds in which everybody has a turn, in one order and then in the other; one is enough when it is late."""
    for number in range(rounds):
        for contender in field[:: 1 if number % 2 else -1]:
            contender.run()
        if late():
            return


def chosen(field: Sequence[Contender]) -> int:
    """The fewest lanes that are as fast as any, but for what is not worth more of them."""
    best = max(contender.steps_per_s for contender in field)
    return next(contender.num_envs for contender in field if contender.steps_per_s * ENOUGH > best)


def promises_more(field: Sequence[Contender]) -> bool:
    """Whether still more lanes may be faster: the latest are clearly faster than a quarter of them."""
    return len(field) < 3 or field[-1].steps_per_s >= ENOUGH * field[-3].steps_per_s


def bytes_per_lane(field: Sequence[Contender]) -> float:
    """What a lane takes, by how much the memory of the process grew since the first; 0 until that is known."""
    lanes = sum(contender.num_envs for contender in field[1:])
    return (field[-1].peak_bytes - field[0].peak_bytes) / lanes if lanes else 0.0


def candidates(config_for: ConfigFor) -> Iterator[TrainConfig]:
    """Settings with ever more lanes, doubled, that suit the run and leave it at least ten iterations."""
    config = _first_candidate(config_for)
    yield config
    while 2 * config.num_envs <= LAST:
        try:
            config = config_for(2 * config.num_envs)
        except ConfigError:  # e.g. more steps at once than a replay memory holds
            return
        if 10 * config.batch_size > config.total_steps:
            return
        yield config


def _first_candidate(config_for: ConfigFor) -> TrainConfig:
    """The fewest lanes, from `FIRST` on, that suit the minibatches and runners of a run."""
    for num_envs in range(FIRST, 2 * FIRST):
        try:
            return config_for(num_envs)
        except ConfigError as error:
            refused = error
    raise ConfigError(f"No number of lanes from {FIRST} to {2 * FIRST - 1} suits this run. Name one. {refused}")


def check_memory(world: World, config: TrainConfig, free_bytes: int | None = None) -> None:
    """`ConfigError` if what is collected and remembered cannot fit into memory, before anything is allocated."""
    remembered = config.algo.replay_capacity if isinstance(config.algo, OffPolicyConfig) else 0
    if config.batch_size + remembered < SURELY_FITS:
        return
    needed, free = needed_bytes(world, config), _room() if free_bytes is None else free_bytes
    if needed > free:
        what = f"num_envs={config.num_envs:,} lanes with algo.num_steps={config.algo.num_steps:,}"
        what += f" and algo.replay_capacity={remembered:,}" if remembered else ""
        raise ConfigError(
            f"{what} need about {needed / 2**30:,.1f} GiB, but {free / 2**30:,.1f} GiB are free here. Lower "
            f"{'algo.replay_capacity or ' if remembered else ''}num_envs."
        )


def needed_bytes(world: World, config: TrainConfig) -> int:
    """What is collected and remembered takes this much memory, by the size of one lane's observation and action."""
    from shoal.training.opening import make_batch

    remembered = config.algo.replay_capacity if isinstance(config.algo, OffPolicyConfig) else 0
    with closing(make_batch(world, config, 1)) as lane:
        spaces = lane.single_observation_space, lane.single_action_space
        obs, action = (sum(leaf.nbytes for _, leaf in named_leaves(empty_batch(space, 1))) for space in spaces)
    return config.batch_size * (obs + action + 16) + remembered * (2 * obs + action + 8)


def _room() -> float:
    """Bytes that are free; where the system does not tell, nothing is refused."""
    free = free_memory()
    return float("inf") if free is None else free
