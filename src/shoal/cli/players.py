"""What `eval` and `play` share: naming who plays (a run, or a world and a policy) and options of that world."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.errors import RunError, unknown_name
from shoal.registry import WORLDS, find_world
from shoal.training.files import read_json
from shoal.training.run import find_run

if TYPE_CHECKING:
    from shoal.training.opening import Player


def is_world(word: str) -> bool:
    """Whether `word` names a world or an environment, rather than a run folder."""
    if find_world(word) is not None or (":" in word and not Path(word).exists()):
        return True
    import gymnasium

    return word in gymnasium.registry


def world_among(argv: list[str]) -> str | None:
    """The world that the command is about: the one named, or the one of the run named."""
    for word in argv:
        if not word.startswith("-"):
            if is_world(word):
                return word
            if (Path(word) / "config.json").is_file():
                return str(read_json(find_run(word) / "config.json")["world"])
    return None


def open_player(command: Any, num_envs: int, env: dict[str, Any], **options: Any) -> Player:
    """Who plays, in fresh lanes: `env` are options of the world, `options` of the batch."""
    from shoal.training.opening import open_policy, open_run

    run, policy = command.run, command.policy
    if is_world(run) and policy is not None and Path(policy).is_dir():
        run, policy = policy, None  # a run is a policy too
    if is_world(run):
        return open_policy(run, num_envs, policy, command.seed, env, **options)
    if len(Path(run).parts) == 1 and not Path(run).exists():
        raise unknown_name("run folder or world", run, WORLDS, "`shoal envs`")
    if policy is not None:
        raise RunError(f"{run} is a run, which has its own policy. Leave --policy out, or name a world instead.")
    return open_run(run, num_envs, command.checkpoint, command.device, command.deterministic, env, **options)
