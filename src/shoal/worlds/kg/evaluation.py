"""`shoal eval RUN --mode ...`: rank the true triples of a split against their corruptions."""

from __future__ import annotations

import io
import sys
import time
from typing import Any

from shoal.errors import ConfigError
from shoal.worlds.kg.dataset import Dataset, Queries
from shoal.worlds.kg.ranking import MODES, EvalConfig, rank_queries

DECODERS = ("greedy", "sample", "beam")
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


def evaluate(
    player: Any,
    episodes: int | None,
    seed: int,
    *,
    mode: str | None = None,
    split: str = "test",
    corruptions: int | str = 100,
    side: str = "both",
    decode: str = "greedy",
    beam_width: int = 16,
    kge_weight: float = 2.0,
    rl_weight: float = 1.0,
    fail_penalty: float = 100.0,
    walks: str | None = None,
    walk_weight: float = 1.0,
    fit_weights: bool = False,
    prove_top: int | None = None,
    ties: str = "realistic",
    num_queries: int | None = None,
    pool_size: int = 512,
) -> tuple[str, dict[str, Any]] | None:
    """Rank a split, or with no `mode` leave it to the mean return of episodes.

    Args:
        mode: rl_only, kge_only, hybrid, hybrid_bonus or symbolic: see `ranking`.
        corruptions: per triple and side, a number or "all".
        side: both, head or tail.
        decode: greedy, sample or beam: how the policy's proof is found. `beam_width` derivations are followed at once.
        kge_weight, rl_weight, fail_penalty, walk_weight, prove_top, ties: see `EvalConfig`.
        walks: folder of a model of walks, whose score hybrid adds.
        fit_weights: choose the weights of hybrid on the validation split first.
        num_queries: only the first triples of the split.
        pool_size: candidates at work at once.

    `--max-depth` and `--kge` are options of the world and count here too.
    """
    if mode is None:
        return None
    start = time.perf_counter()
    if decode not in DECODERS:
        raise ConfigError(f"decode={decode!r} is unknown. Use one of {', '.join(DECODERS)}.")
    if side not in ("both", "head", "tail"):
        raise ConfigError(f"side={side!r} is unknown. Use both, head or tail.")
    batch = player.batch
    config = EvalConfig(
        mode=mode,  # type: ignore[arg-type]
        corruptions=_number(corruptions),
        sides=("head", "tail") if side == "both" else (side,),
        ties=ties,  # type: ignore[arg-type]
        kge_weight=kge_weight,
        rl_weight=rl_weight,
        fail_penalty=fail_penalty,
        walk_weight=walk_weight,
        prove_top=prove_top,
        seed=seed,
    )
    prove = _proving(player, decode, beam_width, pool_size, seed) if config.needs_proofs else None
    queries = batch.data.split(split).where(slice(0, num_queries))
    with _progress(f"{mode}, {len(queries)} {split} triples") as show:
        result = rank_queries(
            batch.data,
            queries,
            config,
            prove=prove,
            kge=batch.kge,
            walks=_walks(walks, mode, batch.data),
            fit_on=_fitted_on(fit_weights, mode, split, batch.data),
            options=batch.options,
            progress=show,
        )
    result |= {"data": batch.data.name, "split": split, "decode": decode, "seconds": time.perf_counter() - start}
    return as_text(result), result


def _walks(folder: str | None, mode: str, data: Dataset) -> Any:
    if folder is None:
        return None
    if mode != "hybrid":
        raise ConfigError(
            f"walks enter mode hybrid, not {mode}. To rank by them alone: --mode kge_only --kge {folder}."
        )
    from shoal.worlds.kg.kge.saved import load_kge

    return load_kge(folder, data.kb.vocabulary)


def _fitted_on(fit: bool, mode: str, split: str, data: Dataset) -> Queries | None:
    if not fit:
        return None
    if mode != "hybrid" or split == "valid":
        raise ConfigError(
            f"fit_weights fits mode hybrid on the validation split to rank another one, not mode {mode} of {split}."
        )
    return data.split("valid")


def _number(corruptions: int | str) -> int | None:
    if corruptions == "all":
        return None
    if not isinstance(corruptions, int) or corruptions < 1:
        raise ConfigError(f"corruptions={corruptions!r} cannot be: it takes a whole number from 1, or all.")
    return corruptions


def _proving(player: Any, decode: str, beam_width: int, pool_size: int, seed: int) -> Any:
    """How the policy of `player` proves candidates [m, 3]."""
    network = getattr(player.agent, "network", None)
    if network is None:
        raise ConfigError(f"{player.title} has no network to prove with. Rank a run, or use mode {MODES[-1]}.")
    batch = player.batch
    if decode == "beam":
        from shoal.worlds.kg.beam import BeamSearch

        return BeamSearch(network, batch.data, batch.options, width=beam_width)
    from shoal.worlds.kg.proving import run_policy

    drawn = seed if decode == "sample" else None
    return lambda triples, show: run_policy(
        network, batch.data, batch.options, triples, num_envs=pool_size, kge=batch.kge, sample_seed=drawn, show=show
    )


class _progress:
    """A bar with the time left, on terminals."""

    def __init__(self, title: str) -> None:
        from rich.progress import Progress

        self._bar = Progress(transient=True, disable=not sys.stdout.isatty())
        self._task = self._bar.add_task(title, total=1.0)

    def __enter__(self) -> Any:
        self._bar.start()
        return lambda share: self._bar.update(self._task, completed=share)

    def __exit__(self, *_: object) -> None:
        self._bar.stop()


def as_text(result: dict[str, Any]) -> str:
    """A table with a row per side and their mean."""
    from rich.console import Console
    from rich.table import Table

    against = "all constants" if result["corruptions"] is None else f"{result['corruptions']} corruptions"
    table = Table("side", *_COLUMNS, box=None, header_style="bold", pad_edge=False)
    for side, numbers in (*result["sides"].items(), ("mean", result)):
        table.add_row(side, *[f"{numbers[column]:.3f}" for column in _COLUMNS.values()])
    console = Console(file=io.StringIO(), highlight=False, width=120)
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
    return console.file.getvalue().rstrip()  # type: ignore[attr-defined]
