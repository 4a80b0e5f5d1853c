"""`shoal eval RUN --mode MODE`: rank true triples against corruptions, for runs of the world kg."""

from __future__ import annotations

import json
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import Positional, arg

from shoal.cli.options import parse
from shoal.errors import ConfigError


@dataclass(frozen=True)
class RankCommand:
    """Rank the true triples of a split against their corruptions: MRR, Hits@k, AUC-PR, and who was proved.

    Ties: half of the tied candidates count as better, unless --ties says otherwise.
    """

    run: Annotated[Positional[str], arg(metavar="RUN")]
    """The run folder of a kg run."""
    mode: Literal["rl_only", "kge_only", "hybrid", "hybrid_bonus", "symbolic"] = "rl_only"
    """What a candidate's score is: see docs of the world."""
    split: Literal["train", "valid", "test"] = "test"
    """Whose triples are ranked."""
    corruptions: Annotated[str, arg(metavar="N|all")] = "100"
    """Corruptions per triple and side, or all."""
    side: Literal["both", "head", "tail"] = "both"
    """Which argument is corrupted."""
    decode: Literal["greedy", "sample", "beam"] = "greedy"
    """How the policy's proof is found."""
    beam_width: int = 16
    """Derivations followed at once by --decode beam."""
    max_depth: int | None = None
    """Steps per proof; as in training if not given. Of --mode symbolic: 2 if not given."""
    kge: Annotated[str | None, arg(metavar="FOLDER")] = None
    """A model of `shoal kg train-kge`; that of the run if not given."""
    kge_weight: float = 2.0
    """Weight of the log KGE score in hybrid."""
    rl_weight: float = 1.0
    """Weight of the log-probability of the proof in hybrid."""
    fail_penalty: float = 100.0
    """Taken off the score of what was not proved."""
    prove_top: int | None = None
    """Let the prover try only this many candidates per triple, the best by KGE score."""
    ties: Literal["realistic", "optimistic", "pessimistic"] = "realistic"
    """How tied candidates count."""
    limit: int | None = None
    """Only the first triples of the split."""
    num_envs: int = 512
    """Candidates at work at once."""
    checkpoint: str = "latest"
    """latest, best, or step_N."""
    seed: int = 0
    """Which corruptions are drawn."""
    out: Annotated[str | None, arg(metavar="FILE")] = None
    """Write the result to a JSON file."""


def main(argv: list[str]) -> int:
    """Rank, print, and write."""
    command = parse(RankCommand, argv, "shoal eval")

    from shoal.training.opening import open_run

    start = time.perf_counter()
    with closing(open_run(command.run, 1, command.checkpoint)) as opened:
        if opened.world != "kg":
            raise ConfigError(f"--mode ranks runs of the world kg; {command.run} is one of {opened.world!r}.")
        result = rank(command, opened)
    result |= {"run": str(opened.run), "step": opened.step, "seconds": round(time.perf_counter() - start, 1)}
    print_result(result)
    if command.out is not None:
        Path(command.out).write_text(json.dumps(result, indent=1) + "\n")
    return 0


def rank(command: RankCommand, opened: Any) -> dict[str, Any]:
    """Evaluate the opened run as the command asks."""
    from dataclasses import replace

    from rich.progress import Progress

    from shoal.worlds.kg.ranking import EvalConfig, evaluate

    batch, data = opened.batch, opened.batch.data
    kge = batch.kge
    if command.kge is not None:
        from shoal.worlds.kg.kge.saved import load_kge

        kge = load_kge(command.kge, data.kb.vocabulary)
    options = batch.options if command.max_depth is None else replace(batch.options, max_depth=command.max_depth)
    queries = data.split(command.split)
    queries = queries.where(slice(0, command.limit))
    config = EvalConfig(
        mode=command.mode,
        corruptions=_count(command.corruptions),
        sides=("head", "tail") if command.side == "both" else (command.side,),
        ties=command.ties,
        kge_weight=command.kge_weight,
        rl_weight=command.rl_weight,
        fail_penalty=command.fail_penalty,
        prove_top=command.prove_top,
        symbolic_depth=command.max_depth or 2,
        seed=command.seed,
    )
    prove = _prover(command, opened.agent.network, data, options, kge) if config.needs_proofs else None
    with Progress(transient=True) as bar:  # shows the time left
        task = bar.add_task(f"{command.mode}, {len(queries)} {command.split} triples", total=None)
        result = evaluate(
            data,
            queries,
            config,
            prove=prove,
            kge=kge,
            options=options,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    return {**result, "split": command.split, "decode": command.decode, "data": data.name}


def _prover(command: RankCommand, network: Any, data: Any, options: Any, kge: Any) -> Any:
    """How candidates [m, 3] are proved."""
    if command.decode == "beam":
        from shoal.worlds.kg.beam import BeamSearch

        return BeamSearch(network, data, options, width=command.beam_width)
    from shoal.worlds.kg.proving import run_policy

    seed = command.seed if command.decode == "sample" else None
    return lambda triples: run_policy(
        network, data, options, triples, num_envs=command.num_envs, kge=kge, sample_seed=seed
    )


def _count(text: str) -> int | None:
    if text == "all":
        return None
    if not text.isdigit() or int(text) < 1:
        raise ConfigError(f"--corruptions {text} cannot be: it takes a whole number from 1, or all.")
    return int(text)


def print_result(result: dict[str, Any]) -> None:
    """A table: one row per side and their mean."""
    from rich.console import Console
    from rich.table import Table

    columns = ("mrr", "hits@1", "hits@3", "hits@10", "auc_pr", "recall", "proved_negatives", "proof_length")
    names = ("MRR", "Hits@1", "Hits@3", "Hits@10", "AUC-PR", "proved", "proved, false", "steps")
    table = Table("side", *names, box=None, header_style="bold", pad_edge=False)
    for side, numbers in (*result["sides"].items(), ("mean", result)):
        table.add_row(side, *[f"{numbers[column]:.3f}" for column in columns])
    against = "all constants" if result["corruptions"] is None else f"{result['corruptions']} corruptions"
    console = Console(highlight=False)
    console.print(f"{result['data']} {result['split']}, {result['mode']}: {result['queries']} triples, {against}")
    console.print(table)
    by_depth = ", ".join(f"{depth}: {share:.2f}" for depth, share in result["proved_by_depth"].items())
    console.print(f"MRR {result['mrr_low']:.3f} to {result['mrr_high']:.3f} (95 %); ties {result['ties']}")
    console.print(f"proved by annotated depth: {by_depth}  ({result['seconds']} s)")
