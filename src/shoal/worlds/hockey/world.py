"""The door of hockey: its options, and what goes by the names in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from numbers import Integral
from typing import TYPE_CHECKING

from shoal.errors import ConfigError, nearest
from shoal.world import BatchOptions, Command, World

if TYPE_CHECKING:
    from shoal.vector.batch import Batch

Named = str | int | Enum
"""A name in any case, its number, or an enum's member of that name."""
PerLane = Named | tuple[Named, ...]
"""One for all lanes, or one per lane."""

MODES = ("NORMAL", "TRAIN_SHOOTING", "TRAIN_DEFENSE")
SEATS = ("policy", "weak", "strong", "none", "mixed")
STARTERS = ("random", "one", "two", "alternate")
EXTERNAL, POOL = "external", "pool"
OPPONENTS = (EXTERNAL, *SEATS[1:], POOL)
BOTS = ("weak", "strong")


@dataclass(frozen=True)
class HockeyOptions:
    """Two-player laser hockey."""

    mode: PerLane = "NORMAL"
    """NORMAL, TRAIN_SHOOTING or TRAIN_DEFENSE; one for all lanes or a list with one per lane."""
    opponent: PerLane = "weak"
    """Who plays the right side, one for all lanes or one per lane: weak, strong, mixed (one of the two, drawn for each
    episode) or none (stands still). Or, for all lanes, external: actions and observations then have a row for each
    player; or pool: drawn for each episode from bots and policies that training sets, at first from both bots."""
    player: PerLane = "policy"
    """Who plays the left side: policy (the actions given), or weak, strong, mixed, none."""
    starter: PerLane = "random"
    """Who gets the puck in NORMAL mode: random, one, two or alternate."""
    keep_mode: bool = True
    """Players catch the puck, hold it for up to 14 steps and shoot. Without it actions lose their fourth number and
    observations their last two."""
    hold: int = 1
    """Steps of the rink that one step of the lanes takes with the same actions; bots still act in each of them. Rewards
    are summed, infos are those of the last."""
    discrete: bool = False
    """Eight actions instead of four numbers: nothing, back, forward, right, left, turn right, turn left, shoot (the
    last
    one only with keep mode)."""
    actions: str | None = None
    """A finer table of discrete actions: fine3, fine4, ..., combined; or the eight."""
    carry_counters: bool = False
    """As in the original, holding counters survive a reset."""
    extra_step: bool = False
    """As in the original, episodes last one step longer than the limit of 250 (in training modes 80)."""
    timeout_terminates: bool = False
    """As in the original, a time-out counts as the end of the task instead of a truncation."""

    def __post_init__(self) -> None:
        known = {"mode": MODES, "opponent": OPPONENTS, "player": SEATS, "starter": STARTERS}
        for option, names in known.items():
            object.__setattr__(self, option, spelled(option, getattr(self, option), names))
        if self.hold < 1:
            raise ConfigError(f"hold must be at least 1 step, not {self.hold}.")
        self._check_opponents()
        if self.has_drawn_opponents and isinstance(self.mode, tuple):
            raise ConfigError("With opponent='pool' or a table of actions, mode must be one for all lanes.")

    def _check_opponents(self) -> None:
        different = set(self.opponent) if isinstance(self.opponent, tuple) else {self.opponent}
        if different & {EXTERNAL, POOL} and len(different) > 1:
            raise ConfigError(
                "Some lanes have opponent='external' or 'pool' and others do not, but lanes of a batch share their "
                "spaces. Make two batches."
            )
        if len(different) == 1 and different <= {EXTERNAL, POOL}:
            object.__setattr__(self, "opponent", *different)
        if self.opponent == POOL and self.discrete and self.actions is None:
            raise ConfigError("discrete is for lanes without a pool of opponents. Use actions='eight' instead.")
        if self.actions is not None and (isinstance(self.opponent, tuple) or self.opponent == EXTERNAL):
            raise ConfigError(
                f"opponent={self.opponent!r} cannot be combined with a table of actions. "
                "Use 'none', 'weak', 'strong', 'mixed' or 'pool' for all lanes."
            )

    @property
    def has_drawn_opponents(self) -> bool:
        """Whether the lanes are those of `VersusBatch`, whose opponents are drawn outside of the kernel."""
        return self.opponent == POOL or self.actions is not None

    @property
    def table(self) -> str | None:
        """The name of the table of actions that the lanes have; None if actions are continuous."""
        return "eight" if self.actions is None and self.discrete else self.actions


def spelled(option: str, given: object, names: Sequence[str]) -> str | tuple[str, ...]:
    """The names that are meant, as `names` spells them: one, or a tuple of several."""
    if isinstance(given, list | tuple):
        return tuple(str(spelled(option, one, names)) for one in given)
    word = given.name if isinstance(given, Enum) else given
    if isinstance(word, Integral) and 0 <= int(word) < len(names):
        return names[int(word)]
    for name in names:
        if str(word).lower() == name.lower():
            return name
    meant = nearest(str(word), names)
    hint = f" Did you mean {meant!r}?" if meant else ""
    raise ConfigError(f"Invalid value for {option}: {word!r} is not one of {', '.join(map(repr, names))}.{hint}")


def make(num_envs: int, options: HockeyOptions, batch: BatchOptions) -> Batch:
    """Lanes of the rink."""
    from shoal.worlds.hockey.lanes.versus import make_lanes

    return make_lanes(num_envs, options, batch)


def deal(options: HockeyOptions, lanes: range, total: int) -> HockeyOptions:
    """The options of some of `total` lanes, from lists that have one entry per lane."""

    def own(given: PerLane) -> PerLane:
        return tuple(given[k % total] for k in lanes) if isinstance(given, tuple) and len(given) == total else given

    mode, opponent, player, starter = map(own, (options.mode, options.opponent, options.player, options.starter))
    return replace(options, mode=mode, opponent=opponent, player=player, starter=starter)


WORLD = World(
    "hockey",
    "shoal/Hockey-v0",
    "two-player laser hockey against bots",
    HockeyOptions,
    make,
    lab="shoal.worlds.hockey.lab:LAB",
    commands={
        "store": Command(
            "store the policy of a run among those that come with the world", "shoal.worlds.hockey.lab.store:STORE"
        )
    },
    parallel="shoal.worlds.hockey.lanes.parallel:parallel_env",
    deal=deal,
    continuous=True,
)
