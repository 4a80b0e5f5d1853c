"""`shoal eval RUN --mode ...`: rank the true triples of a split against their corruptions."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from shoal.agents.ppo import PPO
from shoal.errors import ConfigError
from shoal.options import Values
from shoal.training.acting import Player
from shoal.training.lab import Verdict
from shoal.worlds.kg.lab.network import ProofNetwork
from shoal.worlds.kg.lab.policy import BeamSearch, run_policy
from shoal.worlds.kg.lab.prover import Prove, Share, exact_search
from shoal.worlds.kg.lab.ranking import rank_queries
from shoal.worlds.kg.lab.ranking_options import EvalConfig, RankingOptions
from shoal.worlds.kg.lanes.env import KGBatch
from shoal.worlds.kg.lanes.kge.saved import load_kge
from shoal.worlds.kg.lanes.kge.scoring import KGE
from shoal.worlds.kg.world import KGOptions

TIES = {
    "realistic": "half of the tied candidates count as better",
    "optimistic": "none of the tied candidates counts as better",
    "pessimistic": "all tied candidates count as better",
}
_COLUMNS = {
    "MRR": "mrr",
    "Hits@1": "hits@1",
    "Hits@3": "hits@3",
    "Hits@10": "hits@10",
    "AUC-PR": "auc_pr",
    "proved": "recall",
    "proved, false": "proved_negatives",
    "steps": "proof_length",
}


def evaluate(player: Player[KGOptions], options: RankingOptions, config: EvalConfig) -> Verdict:
    """Rank a split by the player's proofs, a KGE model, or both."""
    start, batch = time.perf_counter(), player.batch
    assert isinstance(batch, KGBatch)
    data = batch.data
    prove = _proving(player, batch, options, config) if config.needs_proofs else None
    queries = data.split(options.split).where(slice(0, options.num_queries))
    with _progress(f"{config.mode}, {len(queries)} {options.split} triples") as show:
        result = rank_queries(
            data,
            queries,
            config,
            prove=prove,
            kge=cast("KGE | None", batch.kge),
            walks=None if options.walks is None else load_kge(options.walks, data.kb.vocabulary),
            fit_on=data.split("valid") if options.fit_weights else None,
            progress=show,
        )
    result |= {"data": data.name, "split": options.split, "decode": options.decode}
    result["seconds"] = time.perf_counter() - start
    return Verdict(as_text(result), result)


def _proving(player: Player[KGOptions], batch: KGBatch, options: RankingOptions, config: EvalConfig) -> Prove:
    """How candidates [m, 3] are proved: by exact search, or by the policy of `player`."""
    if config.mode == "symbolic":
        return exact_search(batch.data.kb, batch.options)
    if not isinstance(player.agent, PPO):
        raise ConfigError(f"{player.title} has no network to prove with. Rank a run, or use mode symbolic.")
    network: ProofNetwork = player.agent.network
    if options.decode == "beam":
        return BeamSearch(network, batch.data, batch.options, width=options.beam_width)
    drawn, pool = config.seed if options.decode == "sample" else None, options.pool_size
    return lambda triples, show: run_policy(
        network, batch.data, batch.options, triples, num_envs=pool, kge=batch.kge, sample_seed=drawn, show=show
    )


@contextmanager
def _progress(title: str) -> Iterator[Share]:
    """A bar with the time left, on terminals."""
    from rich.progress import Progress

    with Progress(transient=True, disable=not sys.stdout.isatty()) as bar:
        task = bar.add_task(title, total=1.0)
        yield lambda share: bar.update(task, completed=share)


def as_text(result: Values) -> str:
    """A table with a row per side and their mean."""
    from rich.console import Console
    from rich.table import Table

    against = "all constants" if result["corruptions"] is None else f"{result['corruptions']} corruptions"
    table = Table("side", *_COLUMNS, box=None, header_style="bold", pad_edge=False)
    for side, numbers in (*result["sides"].items(), ("mean", result)):
        table.add_row(side, *[f"{numbers[column]:.3f}" for column in _COLUMNS.values()])
    text = io.StringIO()
    console = Console(file=text, highlight=False, width=120)
    console.print(f"{result['data']} {result['split']}, {result['mode']}: {result['queries']} triples, {against}")
    console.print(table)
    interval = f"MRR {result['mrr_low']:.3f} to {result['mrr_high']:.3f} (95 %)"
    console.print(f"{interval}; ties are {result['ties']}: {TIES[result['ties']]}")
    if result["mode"].startswith("hybrid"):
        gain = result["over_kge"]
        console.print(f"above kge_only of the same model by {gain['mean']:.4f} ± {gain['error']:.4f} (95 %, paired)")
    if result["weights"]:
        console.print("weights: " + ", ".join(f"{name} {value:.3g}" for name, value in result["weights"].items()))
    if result["mode"] != "kge_only":
        for by in ("depth", "predicate"):
            shares = ", ".join(f"{name}: {share:.2f}" for name, share in result[f"proved_by_{by}"].items())
            console.print(f"proved by {'annotated depth' if by == 'depth' else by}: {shares}")
    console.print(f"{result['seconds']:.1f} s")
    return text.getvalue().rstrip()
