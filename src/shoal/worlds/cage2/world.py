"""The door of cage2."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

from shoal.errors import ConfigError, unknown_name
from shoal.options import Flag, fit, hints_of
from shoal.world import BatchOptions, Command, World
from shoal.worlds.cage2.lanes.names import RED_AGENTS
from shoal.worlds.cage2.lanes.workflow import Spelling, as_workflows, is_one_order, workflow_name

if TYPE_CHECKING:
    from shoal.vector.kernel import KernelBatch

V = TypeVar("V")
Variant = Literal["cage2", "cage2-2022", "debugged"]


@dataclass(frozen=True)
class Cage2Options:
    """Defend a network against CAGE Challenge 2's attackers."""

    variant: Variant = "cage2"
    """The rules: today's code, what the public leaderboard was scored on, or CybORG++."""
    table: Literal["seed", "cage"] = "seed"
    """Blue's table: corrected, or as shipped with the challenge."""
    red: Annotated[str | tuple[str, ...], Flag("NAME[,NAME]")] = "bline"
    """Who attacks: bline, meander, sleep, or given (red's moves come from outside); several, separated by commas, are
    dealt out to the lanes in turn."""
    length: Annotated[int | tuple[int, ...], Flag("STEPS")] = 100
    """Steps of an episode; several are dealt out to the lanes in turn."""
    green: bool = False
    """A green agent scans hosts."""
    actions: Literal["full", "reduced"] = "full"
    """All 145 actions, or 36 with lists of decoys."""
    mask: Literal["none", "useful", "evidence"] = "none"
    """useful forbids what Blue knows to be of no use: decoy lists that are used up, Remove where no shell was noticed,
    Restore where Remove is enough; evidence also forbids restoring Op_Server0 before a foothold there was shown, since
    one such Restore makes Impact harmless for good."""
    scan_memory: bool = False
    """Append which hosts were scanned last and before, 10 values."""
    decoy_memory: bool = False
    """Append how many decoys Blue has on each host, and how many of them red has been seen to scan, 26 values: what
    Blue knows from its own moves."""
    host_memory: bool = False
    """Append what Blue can conclude from the ports that the monitor reports and from its own moves, 72 values: how red
    got into each host, which were restored, the latest traffic."""
    workflow: Annotated[Spelling | tuple[Spelling, ...] | list[Spelling] | None, Flag("ORDER")] = None
    """Append the one-hot of a workflow, 25 values: a name, the five unit types in order as text, or an index 0 to 119.
    A list is several workflows, dealt out to the lanes in turn; only a list of five names of unit types, or in Python
    a tuple of their names or numbers, is one."""
    compliance: Literal["true-state", "action-order"] = "true-state"
    """What counts as following the workflow."""
    alignment_weight: float = 0.0
    """Lambda of the alignment reward, 0 for none."""
    step_bonus: float = 0.0
    """Paid for a fix that complies, as a share of lambda."""
    step_penalty: float = 0.0
    """Charged for a fix that does not comply, as a share of lambda."""
    no_fix_penalty: float = 0.2
    """Charged at the end of an episode without any fix, as a share of lambda."""

    def __post_init__(self) -> None:
        for name, hint in hints_of(type(self)).items():  # Python may construct it without `build`
            object.__setattr__(self, name, fit(getattr(self, name), hint, name))
        for red in self.reds:
            if red not in RED_AGENTS:
                raise unknown_name("red agent", red, RED_AGENTS, "`shoal train cage2 --help`")
        for length in self.lengths:
            if length < 1:
                raise ConfigError(f"Invalid value for length: {length} is not a whole number of at least 1.")
        for name in ("red", "length"):
            if not getattr(self, f"{name}s"):
                raise ConfigError(f"{name} is empty. Give one value, or several to deal out to the lanes in turn.")
        if self.workflow is not None:
            orders = as_workflows(self.workflow)
            if isinstance(self.workflow, tuple) and is_one_order(self.workflow):
                # as text, since a tuple of numbers would come back from JSON as a list, which is several
                object.__setattr__(self, "workflow", workflow_name(orders[0]))
        elif self.alignment_weight != 0:
            raise ConfigError(
                f"alignment_weight={self.alignment_weight} pays for following a workflow. Give workflow=... too."
            )

    @property
    def reds(self) -> tuple[str, ...]:
        """The attackers, in the order in which they are dealt out."""
        names = self.red.split(",") if isinstance(self.red, str) else self.red
        return tuple(name.strip().lower() for name in names)

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths of episodes, in the order in which they are dealt out."""
        return (self.length,) if isinstance(self.length, int) else self.length


def make(num_envs: int, options: Cage2Options, batch: BatchOptions) -> KernelBatch:
    """A batch of networks to defend."""
    from shoal.worlds.cage2.lanes.batch import make_lanes

    return make_lanes(num_envs, options, batch)


def deal(options: Cage2Options, lanes: range, total: int) -> Cage2Options:
    """The options of some of the lanes: what is dealt out in turn begins with what the first of them gets."""
    workflow = options.workflow
    if workflow is not None and len(orders := as_workflows(workflow)) > 1:
        workflow = [workflow_name(order) for order in _turned(orders, lanes.start)]
    red, length = _turned(options.reds, lanes.start), _turned(options.lengths, lanes.start)
    return replace(options, red=red, length=length, workflow=workflow)


def _turned(values: tuple[V, ...], first: int) -> tuple[V, ...]:
    """The values in turn, beginning with the one for lane `first`."""
    return tuple(values[(first + k) % len(values)] for k in range(len(values)))


WORLD = World(
    "cage2",
    "shoal/CAGE2-v0",
    "defend a network, CAGE Challenge 2",
    Cage2Options,
    make,
    "shoal.worlds.cage2.lab:LAB",
    commands={
        "search": Command(
            "search over the orders of repair, training each", "shoal.worlds.cage2.lab.search.command:SEARCH"
        ),
        "store": Command(
            "store the defender of a run as a file that comes with Shoal", "shoal.worlds.cage2.lab.policies.store:STORE"
        ),
    },
    benchmarks={
        "workflow": Command(
            "PPO on cage2 that follows a workflow, with the original's settings", "shoal.bench.workflow:SUITE"
        ),
        "search": Command(
            "strategies of the search over workflows against all orders, repeated", "shoal.bench.search:SUITE"
        ),
    },
    deal=deal,
)
