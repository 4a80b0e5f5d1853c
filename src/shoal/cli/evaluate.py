"""`shoal eval RUN`: how good a run's agent is, on seeds that training never used."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from shoal.cli.options import parse


@dataclass(frozen=True)
class EvalCommand:
    """Play episodes with a run's agent and report the mean return with its 95 % bootstrap interval."""

    run: Annotated[Positional[str], arg(metavar="RUN")]
    """The run folder."""
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
    if any(word.partition("=")[0] == "--mode" for word in argv):  # knowledge graphs rank triples instead
        from shoal.cli.kg_eval import main as rank

        return rank(argv)
    command = parse(EvalCommand, argv, "shoal eval")

    from shoal.training.acting import Actor
    from shoal.training.evaluate import evaluate
    from shoal.training.files import explained, replace_file
    from shoal.training.opening import open_run

    lanes = max(1, min(command.num_envs, command.episodes))
    with closing(open_run(command.run, lanes, command.checkpoint, command.device)) as opened:
        actor = Actor(opened.agent, opened.batch, deterministic=command.deterministic)
        result = evaluate(opened.batch, actor, command.episodes, command.seed)
        summary = {"run": str(opened.path), "world": opened.config.world, "step": opened.step, **result.summary()}
    print(
        f"{summary['world']}, step {summary['step']:,}: mean return {summary['mean']:.2f} "
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
