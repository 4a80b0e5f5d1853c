"""The door of kg."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

from shoal.errors import ConfigError
from shoal.options import Flag, fit, hints_of
from shoal.world import BatchOptions, Command, World
from shoal.worlds.kg.lanes.options import EngineOptions, ProofOptions

if TYPE_CHECKING:
    from shoal.worlds.kg.lanes.data.dataset import Dataset
    from shoal.worlds.kg.lanes.env import KGBatch, Scorer

AtomEncoding = Literal["transe", "sum", "complex", "rotate", "concat"]
StateEncoding = Literal["mean", "sum", "role", "concat", "rnn", "transformer", "attention"]


@dataclass(frozen=True)
class DataOptions:
    """Which queries of which knowledge graph are asked."""

    data: Annotated[str | Path | object, Flag("DATA")] = "families"
    """A folder, pykeen:NAME, or families:SEED, which is generated; from Python also a `Dataset`."""
    rules: Annotated[str | Path | None, Flag("FILE")] = None
    """A rule file other than the folder's rules.txt."""
    soft_facts: Annotated[str | Path | None, Flag("FILE")] = None
    """Facts to add to those of the folder, as `shoal kg train-kge --soft-facts` writes them."""
    split: Literal["train", "valid", "test"] = "train"
    """Which queries are asked."""
    mode: Literal["train", "round_robin", "eval", "pool"] = "train"
    """How lanes take them: train draws and corrupts at random, round_robin does so in a fixed order, eval asks each
    query once, pool gives the next one to whichever lane is free."""
    depths: tuple[int, ...] | None = None
    """Annotated depths to keep, e.g. [2,3]."""
    depth_weights: dict[int, float] | None = None
    """How often training queries of an annotated depth are drawn, relative to each other, e.g. {"2": 1, "3": 0.5}."""
    require_rule: bool = True
    """Drop training queries whose predicate is not the head of any rule. Their triples stay facts."""
    limit: int | None = None
    """Only the first queries of the split, counted after the other filters."""


@dataclass(frozen=True)
class NetworkOptions:
    """The network that is trained here. It is of the world because its sizes are those of the knowledge graph."""

    atom_encoder: AtomEncoding = "transe"
    """How a predicate and its arguments become a vector."""
    state_encoder: StateEncoding = "mean"
    """How goals become a state; role keeps the goal that is resolved next apart from the others."""
    embedding_size: int = 64
    """Numbers per predicate, term and state."""
    logit_bias: float = 0.0
    """How much of the KGE log-score of a successor's first goal is added to its logit."""

    def __post_init__(self) -> None:
        if self.embedding_size < 1:
            raise ConfigError(f"embedding_size must be at least 1, not {self.embedding_size}.")
        for name in ("atom_encoder", "state_encoder"):
            fit(getattr(self, name), hints_of(NetworkOptions)[name], name)


@dataclass(frozen=True)
class KGOptions(EngineOptions, NetworkOptions, ProofOptions, DataOptions):
    """Prove queries of a knowledge graph by backward chaining."""

    kge: Annotated[str | Path | object | None, Flag("FOLDER")] = None
    """A saved KGE model, for shaping, cuts, biases and hybrid rankings; from Python also a trained one."""

    def __post_init__(self) -> None:
        for part in (ProofOptions, NetworkOptions, EngineOptions):
            part.__post_init__(self)


def make(num_envs: int, options: KGOptions, batch: BatchOptions) -> KGBatch:
    """Lanes that prove queries of a knowledge graph."""
    from shoal.worlds.kg.lanes.data.dataset import Filters, load_dataset
    from shoal.worlds.kg.lanes.env import KGBatch
    from shoal.worlds.kg.lanes.queries import Asked

    batch.only("autoreset_mode", "copy", "num_threads")
    limit: dict[str, int] = {} if options.limit is None else {options.split: options.limit}
    filters = Filters(limit, options.depths, options.require_rule)
    source = cast("str | Path | Dataset", options.data)
    dataset = load_dataset(source, rules=options.rules, soft_facts=options.soft_facts, filters=filters)
    asked = Asked(dataset.split(options.split), options.mode, depth_weights=options.depth_weights)
    kge = cast("Scorer | None", options.kge)
    if isinstance(options.kge, str | Path):
        from shoal.worlds.kg.lanes.kge.saved import load_kge

        kge = load_kge(options.kge, dataset.kb.vocabulary)
    return KGBatch(num_envs, dataset, options, asked, kge=kge, engine=options, batch=batch)


_COMMANDS = "shoal.worlds.kg.lab.commands"
WORLD = World(
    "kg",
    "shoal/KG-v0",
    "prove queries over a knowledge graph",
    KGOptions,
    make,
    lab="shoal.worlds.kg.lab:LAB",
    commands={
        "prove": Command("search for a shortest proof of a query and print it as a tree", f"{_COMMANDS}:PROVE"),
        "mine-rules": Command("mine rules from the facts", f"{_COMMANDS}:MINE_RULES"),
        "train-kge": Command("train an embedding model, and write facts that it predicts", f"{_COMMANDS}:TRAIN_KGE"),
    },
    benchmarks={"kg": Command("proof search by both engines, and against lanes on workers", "shoal.bench.kg:SUITE")},
)
