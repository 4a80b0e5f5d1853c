"""`shoal eval RUN`: how good a run's agent or a world's own policy is, on seeds that training never used."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from shoal.cli.options import parse, split_world_options, take


@dataclass(frozen=True)
class EvalCommand:
    """Play episodes with a run's agent and report the mean return with its 95 % bootstrap interval."""

    run: Annotated[Positional[str], arg(metavar="RUN")]
    """The run folder; with --policy, a world and its options."""
    policy: Annotated[str | None, arg(metavar="NAME")] = None
    """Evaluate a policy that the world brings instead of a run, e.g. `shoal eval cage2 --policy bundled`."""
    leaderboard: bool = False
    """For cage2: the nine cells of the challenge beside the published scores; see `shoal eval --leaderboard --help`."""
    episodes: int = 100
    """Episodes to play, spread evenly over the lanes so that short ones are not favoured."""
    num_envs: int = 64
    """Lanes to play them in."""
    seed: int = 0
    """Which episodes: seeds of evaluation never meet those of training."""
    deterministic: bool = True
    """Take the likeliest action instead of drawing one."""
    checkpoint: str = "latest"
    """latest, best, or step_N."""
    device: str | None = None
    """Where the networks live; as in training if not given."""
    out: Annotated[str | None, arg(metavar="FILE")] = None
    """Write the result, with every episode, to a JSON file."""


def main(argv: list[str]) -> int:
    """`shoal eval RUN [OPTIONS]`."""
    if "--leaderboard" in argv:
        from shoal.cli.leaderboard import main as leaderboard

        return leaderboard([word for word in argv if word != "--leaderboard"])
    argv, options = split_policy_options(argv)
    command = parse(EvalCommand, argv, "shoal eval")

    from shoal.training.evaluate import evaluate
    from shoal.training.files import explained, replace_file

    lanes = max(1, min(command.num_envs, command.episodes))
    batch, actor, about = open_player(command, lanes, options)
    with closing(batch):
        result = evaluate(batch, actor, command.episodes, command.seed)
    summary = {**about, **result.summary()}
    print(
        f"{describe(about)}: mean return {summary['mean']:.2f} "
        f"[{summary['low']:.2f}, {summary['high']:.2f}] over {summary['episodes']} episodes "
        f"(median {summary['median']:.2f}, {summary['min']:.2f} to {summary['max']:.2f}; "
        f"mean length {summary['mean_length']:.1f})"
    )
    if command.out is not None:
        episodes = {"returns": result.returns.tolist(), "lengths": result.lengths.tolist()}
        asked = {"seed": command.seed, "deterministic": command.deterministic}
        with explained(f"{command.out} could not be written", "Choose another --out."):
            replace_file(Path(command.out), json.dumps({**summary, **asked, **episodes}, indent=1) + "\n")
    return 0


def open_player(command: Any, num_envs: int, options: dict[str, Any], **more: Any) -> tuple[Any, Any, dict[str, Any]]:
    """Batch, actor, and what they are: of a run, or with --policy of a world."""
    from shoal.training.acting import Actor
    from shoal.training.opening import open_policy, open_run

    if command.policy is not None:
        batch, policy = open_policy(command.run, command.policy, num_envs, **options, **more)
        return batch, policy, {"world": command.run, "policy": command.policy, **options}
    opened = open_run(command.run, num_envs, command.checkpoint, getattr(command, "device", None), **more)
    actor = Actor(opened.agent, opened.batch, deterministic=command.deterministic)
    return opened.batch, actor, {"run": str(opened.path), "world": opened.config.world, "step": opened.step}


def describe(about: dict[str, Any]) -> str:
    """Who plays, in a few words."""
    return f"{about['world']}, step {about['step']:,}" if "step" in about else f"{about['world']}, {about['policy']}"


def split_policy_options(argv: list[str]) -> tuple[list[str], dict[str, Any]]:
    """With --policy, take the options of the world out of `argv`."""
    from shoal.cli.train import world_options

    if take(argv, "--policy") is None or not argv or argv[0].startswith("-"):
        return argv, {}
    return split_world_options(argv, world_options(argv[0]))
