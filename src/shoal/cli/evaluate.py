"""`shoal eval RUN`: how good a run's agent or a policy is, on seeds that training never used."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import Positional, arg

from shoal.cli.options import not_taken, options_note, parse, split_world_options, world_options

if TYPE_CHECKING:
    from shoal.training.opening import Player


@dataclass(frozen=True)
class EvalCommand:
    """Play episodes with a run's agent and report the mean return with its 95 % bootstrap interval."""

    run: Annotated[Positional[str], arg(metavar="RUN")]
    """The run folder; or a world, for one of its policies or the random one."""
    policy: Annotated[str | None, arg(metavar="NAME")] = None
    """Which policy of the world plays, e.g. `shoal eval cartpole --policy random`."""
    episodes: int | None = None
    """Episodes to play (100), spread evenly over the lanes so that short ones are not favoured."""
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


EPISODES = 100


def main(argv: list[str]) -> int:
    """`shoal eval RUN [OPTIONS]`."""
    from shoal.cli.players import open_player, world_among
    from shoal.training.beside import keyword_options, world_part

    world = world_among(argv)
    of_world = {} if world is None else world_options(world, EvalCommand)
    evaluate_world = None if world is None else world_part(world, "evaluation", "evaluate")
    of_evaluation = not_taken(keyword_options(evaluate_world), EvalCommand)
    argv, asked = split_world_options(argv, of_evaluation)
    argv, env = split_world_options(argv, of_world)
    command = parse(EvalCommand, argv, "shoal eval", note=options_note(world or "", of_evaluation | of_world))

    from shoal.training.files import explained, replace_file

    lanes = max(1, min(command.num_envs, command.episodes or EPISODES))
    with closing(open_player(command, lanes, env)) as player:
        result = evaluate_world and evaluate_world(player, command.episodes, command.seed, **asked)
        text, values = result or _evaluate(player, command)
    print(text)
    if command.out is not None:
        values = {**player.about, "seed": command.seed, "deterministic": command.deterministic, **asked, **values}
        with explained(f"{command.out} could not be written", "Choose another --out."):
            replace_file(Path(command.out), json.dumps(values, indent=1) + "\n")
    return 0


def _evaluate(player: Player, command: EvalCommand) -> tuple[str, dict[str, Any]]:
    """The mean return, in a sentence and as a JSON value with every episode."""
    from shoal.training.evaluate import evaluate

    episodes = EPISODES if command.episodes is None else command.episodes
    result = evaluate(player.batch, player.act_in(player.batch), episodes, command.seed)
    found = result.summary()
    text = (
        f"{player.title}: mean return {found['mean']:.2f} "
        f"[{found['low']:.2f}, {found['high']:.2f}] over {found['episodes']} episodes "
        f"(median {found['median']:.2f}, {found['min']:.2f} to {found['max']:.2f}; "
        f"mean length {found['mean_length']:.1f})"
    )
    return text, {**found, "returns": result.returns.tolist(), "lengths": result.lengths.tolist()}
