"""What `eval` and `play` share: naming who plays (a run, or a world and a policy) and options of that world."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from shoal.cli.options import is_on
from shoal.errors import RunError, unknown_name
from shoal.options import Flag, Values
from shoal.registry import as_world, find_world, world_names
from shoal.training.run import find_checkpoint
from shoal.training.settings import world_in
from shoal.training.trust import read_config
from shoal.vector.lanes.gym_ids import is_gym_id
from shoal.world import World

if TYPE_CHECKING:
    from shoal.training.acting import Player


@dataclass(frozen=True)
class WhoPlays:
    """Arguments of every verb in which a policy plays."""

    run: Annotated[str, Flag("RUN", positional=True)]
    """The run folder, or a checkpoint in it; or a world, for one of its policies or the random one."""
    policy: Annotated[str | None, Flag("NAME")] = None
    """Which policy of the world plays, e.g. `shoal eval cartpole --policy random`."""
    seed: int = 0
    """Which episodes to play; they never coincide with those of training."""
    deterministic: bool = True
    """Take the likeliest action instead of drawing one."""
    checkpoint: str = "latest"
    """latest, best, or step_N."""
    device: str | None = None
    """Where the networks live; as in training if not given."""
    trust: bool = False
    """Import the environment that somebody else's run names as package.module:Name; see docs/security.md."""


def is_world(word: str) -> bool:
    """Whether `word` names a world or an environment, rather than a run folder."""
    if find_world(word) is not None or (":" in word and not Path(word).exists()):
        return True
    return is_gym_id(word)


def world_among(argv: list[str]) -> World | None:
    """The world that the command is about: the one named, or the one of the run named."""
    for word in argv:
        if not word.startswith("-"):
            if is_world(word):
                return as_world(word)
            with suppress(RunError):
                run = find_checkpoint(word)[0]
                break
    else:
        return None
    return world_in(read_config(run, is_on(argv, "--trust")), str(run / "config.json"))


def _check_world_of(run: str, world: World, trust: bool) -> None:
    """`RunError` unless the run was trained in this world."""
    folder = find_checkpoint(run)[0]
    trained = world_in(read_config(folder, trust), str(folder / "config.json"))
    if trained.name != world.name:
        raise RunError(f"{run} was trained in {trained.name} and cannot play {world.name}. Name a run of {world.name}.")


def open_player(who: WhoPlays, num_envs: int, env: Values, **changes: Any) -> Player:
    """Who plays, in fresh lanes: `env` are options of the world, `changes` fields of `BatchOptions`."""
    from shoal.training.opening import open_policy, open_run

    run, policy = who.run, who.policy
    if is_world(run) and policy is not None and Path(policy).is_dir():
        _check_world_of(policy, as_world(run), who.trust)
        run, policy = policy, None  # a run is a policy too
    if is_world(run):
        return open_policy(as_world(run), num_envs, policy, who.seed, env, **changes)
    if len(Path(run).parts) == 1 and not Path(run).exists():
        raise unknown_name("run folder or world", run, world_names(), "`shoal envs`")
    if policy is not None:
        raise RunError(f"{run} is a run, which has its own policy. Leave --policy out, or name a world instead.")
    return open_run(run, num_envs, who.checkpoint, who.device, who.deterministic, env, who.trust, **changes)
