"""`shoal cage2 store RUN FILE`: make the defender of a run one of those that come with Shoal."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from shoal.errors import ConfigError
from shoal.options import Flag, as_values
from shoal.training.lab import Verb

if TYPE_CHECKING:
    from shoal.agents.frozen import FrozenPolicy

EPISODES = 1000


@dataclass(frozen=True)
class StoreCommand:
    """Store the policy network of a run in half precision, with what it scores against its red."""

    run: Annotated[Path, Flag("RUN", positional=True)]
    """A run of cage2 with the standard network, trained against one red."""
    file: Annotated[Path, Flag("FILE", positional=True)]
    """The file to write, VARIANT_RED.safetensors."""
    checkpoint: str = "best"
    """Which checkpoint of the run."""
    command: str | None = None
    """The command that made it, if the run does not say."""


def store(given: StoreCommand) -> int:
    """Store one run."""
    from shoal.agents.frozen import FrozenPolicy

    network_of_run(given.run, given.checkpoint).save(given.file, half=True)
    network = FrozenPolicy.load(given.file)  # what is scored is what is shipped
    about = network.about
    about |= {"command": given.command or about["command"], "mean return": _scores(network), "episodes": EPISODES}
    network.save(given.file, about, half=True)
    print(json.dumps(about, indent=1))
    return 0


def network_of_run(run: Path, checkpoint: str = "best") -> FrozenPolicy:
    """The policy network of a run as a checkpoint left it."""
    from shoal.agents.frozen import freeze
    from shoal.training.opening import open_run
    from shoal.worlds.cage2.world import Cage2Options

    player = open_run(run, 1, checkpoint)
    with closing(player):
        options = player.options
        if not isinstance(options, Cage2Options) or player.agent is None or player.run is None:
            raise ConfigError(f"{run} is not a run of cage2.")
    if len(options.reds) != 1:
        raise ConfigError(f"{run} was trained against {options.red!r}; a stored defender is one against a single red.")
    usual = as_values(Cage2Options(variant=options.variant, red=options.red))
    env = {name: value for name, value in as_values(options).items() if value != usual[name]}
    network = freeze(player.agent)
    network.about = {
        "variant": options.variant,
        "red": options.reds[0],
        "env": env,
        "command": (player.run / "command.txt").read_text().strip(),
        "step": player.step,
    }
    return network


def _scores(network: FrozenPolicy) -> dict[str, dict[str, float]]:
    """Mean return by length of the episodes, as played and with restoring Op_Server0 forbidden before evidence."""
    from shoal.worlds.cage2.lab.leaderboard import Defender, score_red
    from shoal.worlds.cage2.lab.policies import NetworkPolicy
    from shoal.worlds.cage2.world import Cage2Options

    variant, red = network.about["variant"], network.about["red"]
    defender = Defender(red, Cage2Options(**network.about["env"]), lambda batch: NetworkPolicy(batch, {red: network}))
    return {
        label: {
            str(cell.length): round(cell.mean, 3)
            for cell in score_red(defender, variant, red, EPISODES, needs_evidence, seed=1)
        }
        for label, needs_evidence in (("as played", False), ("after evidence only", True))
    }


STORE = Verb(StoreCommand, store)
