"""`shoal eval RUN`: how good a run's agent or a policy is, on seeds that training never used."""

from __future__ import annotations

import inspect
import json
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from shoal.cli.options import Flags, filled
from shoal.cli.players import WhoPlays, open_player, world_among
from shoal.options import Flag, build

if TYPE_CHECKING:
    from shoal.training.acting import Player
    from shoal.training.lab import Verdict

EPISODES = 100
PROG = "shoal eval"


@dataclass(frozen=True)
class EvalCommand(WhoPlays):
    """Play episodes with a run's agent and report the mean return with its 95 % bootstrap interval."""

    episodes: int | None = None
    """Episodes to play (100), spread evenly over the lanes so that short ones are not favoured."""
    num_envs: int = 64
    """Lanes to play them in."""
    eval_max_steps: int | None = None
    """Steps after which an episode is cut and counts as it is; none takes 10,000, or the environment's own time limit
    if that is longer."""
    out: Annotated[str | None, Flag("FILE")] = None
    """Write the result, with every episode, to a JSON file."""


def main(argv: list[str]) -> int:
    """`shoal eval RUN [OPTIONS]`."""
    from shoal.training.files import explained, replace_file
    from shoal.training.lab import lab_of

    world, flags = world_among(argv), Flags(PROG, inspect.getdoc(EvalCommand) or "")
    flags.add(EvalCommand)
    own = None if world is None else lab_of(world).evaluation
    if world is not None:
        if own is not None:
            flags.add(own.options, f"how {world.name} is evaluated", "evaluation")
        flags.add(world.options, world.name, "env")
    tables = flags.read(argv)
    command = filled(EvalCommand, tables.get("", {}), PROG)
    asked, lanes = tables.get("evaluation", {}), max(1, min(command.num_envs, command.episodes or EPISODES))
    with closing(open_player(command, lanes, tables.get("env", {}))) as player:
        verdict = None
        if own is not None:
            options = build(own.options, asked, f"of {player.world.name}", f"`{PROG} --help`")
            verdict = own.evaluate(player, options, command.episodes, command.seed)
        verdict = verdict or _evaluate(player, command)
    print(verdict.text)
    if command.out is not None:
        about = {**player.about, "seed": command.seed, "deterministic": command.deterministic, **asked}
        with explained(f"{command.out} could not be written", "Choose another --out."):
            replace_file(Path(command.out), json.dumps({**about, **verdict.values}, indent=1) + "\n")
    return 0


def _evaluate(player: Player, command: EvalCommand) -> Verdict:
    """The mean return, in a sentence and as a JSON value with every episode."""
    from shoal.training.evaluate import evaluate
    from shoal.training.lab import Verdict

    episodes = EPISODES if command.episodes is None else command.episodes
    actor = player.act_in(player.batch)
    result = evaluate(player.batch, actor, episodes, command.seed, command.eval_max_steps)
    summary = result.summary()
    text = (
        f"{player.title}: mean return {summary['mean']:.2f} "
        f"[{summary['low']:.2f}, {summary['high']:.2f}] over {summary['episodes']} episodes "
        f"(median {summary['median']:.2f}, {summary['min']:.2f} to {summary['max']:.2f}; "
        f"mean length {summary['mean_length']:.1f})"
    )
    text = "\n".join(filter(None, (text, result.warning)))
    return Verdict(text, {**summary, "returns": result.returns.tolist(), "lengths": result.lengths.tolist()})
