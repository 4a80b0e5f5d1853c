"""`World`: the one door of every world, ours and a stranger's. The rest of the house knows no other.

A world's module must be cheap to import (no NumPy, no Numba, no torch): it is loaded to list names and flags. The lanes
are imported by `make`, everything about training by `lab`. `docs/worlds.md` builds a world in sixty lines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Generic, Literal

from shoal.errors import ConfigError
from shoal.options import O, Values, build

if TYPE_CHECKING:
    from gymnasium.vector import AutoresetMode

    from shoal.vector.batch import Batch


@dataclass(frozen=True)
class BatchOptions:
    """How lanes are run, whatever the world."""

    autoreset_mode: AutoresetMode | str = "same_step"
    """What happens to a lane whose episode ended: same_step, next_step or disabled."""
    copy: bool = True
    """Hand out copies; without it, views that are valid until the next step."""
    num_threads: int | Literal["auto"] | None = None
    """Threads that step the lanes; none leaves it to the world."""
    compiled: bool | Literal["auto"] | None = None
    """Off runs a kernel as ordinary Python, for breakpoints; on compiles a gymnasium.Env as it is, auto does so
    only where that is proven; none compiles kernels only."""
    checked: bool = False
    """Test every index, division and store of a kernel; a fault names line, lane, step and numbers."""
    lanes: Mapping[str, object] | None = None
    """Values for fields of a kernel's record, one for all lanes or one per lane."""

    def given(self) -> Values:
        """The options that differ from what lanes do by themselves: kernels are compiled unless that is off."""
        given = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        return {name: value for name, value in given.items() if name != "compiled" or value is False}

    def only(self, *names: str) -> Values:
        """The options that were given, all of which must be among `names`; others are refused."""
        given = self.given()
        for name in given:
            if name not in names:
                raise ConfigError(
                    f"Batches of this world do not take {name}={given[name]!r}. They take {', '.join(names)}."
                )
        return given


@dataclass(frozen=True)
class Command:
    """A verb of a world (`shoal kg prove`) or one of its benchmarks (`shoal bench kg`)."""

    summary: str
    """One line for `--help`."""
    verb: str
    """`module:VERB`, a `shoal.training.lab.Verb`."""


@dataclass(frozen=True)
class World(Generic[O]):
    """Everything that the rest of the house knows about a world."""

    name: str
    """What `shoal.make` and the command line call it."""
    gym_id: str
    """What `gymnasium.make` and `gymnasium.make_vec` call it."""
    summary: str
    """One line for `shoal envs`."""
    options: type[O]
    """A frozen dataclass: flags, `config.json`, checks, `--help` and docs fall out of it."""
    make: Callable[[int, O, BatchOptions], Batch]
    """The lanes: `make(num_envs, options, batch_options)`."""
    lab: str | None = None
    """`module:LAB`, a `shoal.training.lab.Lab`: imported only when somebody trains, evaluates or plays."""
    commands: Mapping[str, Command] = field(default_factory=dict)
    """Verbs of its own. They are here and not in the lab because `shoal --help` lists them and must not load torch."""
    benchmarks: Mapping[str, Command] = field(default_factory=dict)
    """Suites of `shoal bench`, here for the same reason."""
    parallel: str | None = None
    """`module:function` that takes options by name and returns one lane for several agents, a PettingZoo
    `ParallelEnv`."""
    deal: Callable[[O, range, int], O] | None = None
    """`deal(options, lanes, total)`: the options of some of `total` lanes, where options differ from lane to lane."""
    path: str = ""
    """`package.module:NAME`, where it is found again if its name does not tell; filled in when it was named that
    way."""
    continuous: bool = False
    """Whether actions are numbers rather than choices, as far as that is known before there are lanes."""
    source: object = None
    """The object behind a world that was given without a door: a kernel, a class, a factory, a Gymnasium id."""

    @property
    def reference(self) -> str:
        """What to write down so that another process finds it."""
        return self.path or self.name


def split_options(options: Values) -> tuple[Values, Values]:
    """(options of the batch, options of the world)."""
    names = {f.name for f in fields(BatchOptions)}
    return {k: v for k, v in options.items() if k in names}, {k: v for k, v in options.items() if k not in names}


def options_of(world: World[O], values: Values) -> O:
    """The options of `world`, an instance of `world.options`, from values by name."""
    return build(world.options, values, f"of {world.name}", f"`shoal train {world.name} --help`")
