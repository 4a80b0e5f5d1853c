"""`Lab`: what a world brings to training, evaluation and play. Every part is optional; see `docs/worlds.md`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from shoal.errors import ConfigError
from shoal.options import NoOptions, O, Values
from shoal.registry import load
from shoal.world import World

if TYPE_CHECKING:
    import gymnasium as gym
    import numpy as np
    from torch import nn

    from shoal.agents.agent import Agent
    from shoal.agents.offpolicy import Mirror
    from shoal.training.acting import Player
    from shoal.training.config import TrainConfig
    from shoal.training.hooks import Hooks
    from shoal.trees import Tree
    from shoal.vector.batch import Batch

T = TypeVar("T")
"""What the lab adds to the settings of a run."""
E = TypeVar("E")
"""Options of an evaluation."""
S = TypeVar("S")
"""Settings in a world's own counting."""


MakeAgent = Callable[["gym.Space", "gym.Space", int], "Agent"]
"""From spaces of observations and actions, and a number that its seed depends on, to an agent of the run's kind."""


@dataclass(frozen=True)
class Preset:
    """Settings that differ from the defaults, nested as config.json is. One named after an agent is its default."""

    about: str
    """One line for `--help`."""
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class Headline:
    """A number that belongs on the screen: in the panel, the plain lines and at the top of the report."""

    key: str
    """Under which it is logged, e.g. "rollout/compliance"."""
    label: str
    """What people call it."""
    form: str = ".4g"
    """How it is written, as `format` takes it, e.g. ".1%"."""


class Policy(Protocol):
    """Anything that acts in the lanes of one batch."""

    def __call__(self, obs: Tree, info: dict[str, Any]) -> Any:
        """Actions [B, ...] for what `reset` or `step` just returned."""

    def forget(self, ended: np.ndarray) -> None:
        """Lanes in `ended` [B] bool begin a new episode. Policies that remember nothing can inherit this."""
        return


@dataclass(frozen=True)
class NamedPolicy:
    """A policy that a world brings, for `shoal eval|play WORLD --policy NAME`."""

    about: str
    """One line for `--help`."""
    make: Callable[[Any], Policy]
    """From a batch of the world to the policy in its lanes."""
    needs: Mapping[str, object] = field(default_factory=dict)
    """Options that the lanes must have for it; those that were given win."""


class Verdict(NamedTuple):
    """What an evaluation says."""

    text: str
    """To print."""
    values: Values
    """For `--out`, what JSON can hold."""


@dataclass(frozen=True)
class OwnEvaluation(Generic[E]):
    """How a world measures a player, in place of the mean return."""

    options: type[E]
    """A frozen dataclass: flags of `shoal eval`."""
    evaluate: Callable[[Player, E, int | None, int], Verdict | None]
    """`(player, options, episodes, seed)`; `episodes` is None unless asked for. None leaves it to the mean return."""


@dataclass(frozen=True)
class Shorthands(Generic[S]):
    """Settings in which a world's users count (episodes, epochs), put into those of every world and not kept."""

    options: type[S]
    """A frozen dataclass of flags, each None unless given."""
    translate: Callable[[S, Values, Values], Values]
    """`(options, given, base)` to settings that follow: `given` is what was asked for, `base` what holds without it."""


@dataclass(frozen=True)
class Verb(Generic[E]):
    """A command of a world: what `Command.main` names. The command line reads the options and calls `run`."""

    options: type[E]
    """A frozen dataclass: flags and arguments; its docstring is the help."""
    run: Callable[[E], int]
    """Does it and returns the exit code."""


class Tournament(Protocol):
    """Round robins of a world for two: a module or an object with these functions."""

    def find_entrant(self, name: str) -> Any: ...
    def name_of(self, entrant: str) -> str: ...
    def play(self, entrants: dict[str, Any], games: int, seed: int) -> Any: ...
    def play_pair(self, one: Any, two: Any, games: int, seed: int) -> np.ndarray:
        """Outcomes [games]: 1, 0 or -1 as `one` sees it."""

    def settings_against(self, path: str) -> Values:
        """Settings of a run that learns against this policy alone."""


@dataclass(frozen=True)
class Lab(Generic[O, T]):
    """A world's part in training, evaluating and playing. `O` are the world's options, `T` the lab's."""

    options: type[T] = NoOptions  # type: ignore[assignment]
    """A frozen dataclass of what else training can be told; kept in config.json under `extra`."""
    presets: Mapping[str, Preset] = field(default_factory=dict)
    headlines: tuple[Headline, ...] = ()
    network: Callable[[Any, TrainConfig[O, T]], nn.Module | None] | None = None
    """The network for a batch; None for the standard one. Its first weights follow from the seed of the run."""
    lanes: Callable[[Any, T], Batch] | None = None
    """What is trained in: the lanes of the world seen otherwise, e.g. one seat of each, as the lab's options say."""
    agent: Callable[[Any, TrainConfig[O, T], MakeAgent], Agent | None] | None = None
    """Who learns in a batch, made of agents that the last argument makes; None for one agent."""
    hooks: Callable[[Any, TrainConfig[O, T]], Hooks] | None = None
    """What is added to the loop, for the batch that is trained in."""
    mirror: Callable[[O], Mirror] | None = None
    """The symmetry of lanes with these options, where the world has one."""
    policies: Callable[[O], Mapping[str, NamedPolicy]] | None = None
    """Policies by name, for lanes with these options. `random` is everywhere."""
    stored: Path | None = None
    """The folder of policies that come with the world, NAME.safetensors: who can play against others by name."""
    default_policy: str = "random"
    """The policy that `shoal play WORLD` shows if none is named."""
    evaluation: OwnEvaluation[Any] | None = None
    shorthands: Shorthands[Any] | None = None
    read_curriculum: Callable[[Values, Path], Values] | None = None
    """A file with a `curriculum` as the settings of a run."""
    search: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What `shoal tune` searches here by agent if nothing is named, in place of or besides what is searched everywhere:
    words as "algo.lr=1e-4..1e-2:log"."""
    tournament: Callable[[World[O]], Tournament] | None = None
    serve: Callable[[str | None], int] | None = None
    """Let a person play, against the one who is named; returns the exit code."""
    by_hand: bool = False
    """Whether `shoal play WORLD` does that unless a player is named."""


def lab_of(world: World[O]) -> Lab[O, Any]:
    """The lab of a world; an empty one if it has none."""
    if world.lab is None:
        return Lab()
    lab = load(world.lab)
    if not isinstance(lab, Lab):
        raise ConfigError(f"{world.lab}, the lab of {world.name}, is a {type(lab).__name__}, not a Lab.")
    return lab
