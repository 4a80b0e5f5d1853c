"""The door of dvrp: its options, and the way to its lanes and its lab."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal.world import BatchOptions, Command, World
from shoal.worlds.dvrp.lanes.settings import COMPILED, OracleChoice, Place, Settings

if TYPE_CHECKING:
    from shoal.worlds.dvrp.lanes.environment import DvrpBatch


@dataclass(frozen=True)
class DvrpOptions(OracleChoice, Place, Settings):
    """Negotiate time windows with the customers of a dial-a-ride fleet."""

    def __post_init__(self) -> None:
        for part in (Settings, Place, OracleChoice):
            part.__post_init__(self)


def make(num_envs: int, options: DvrpOptions, batch: BatchOptions) -> DvrpBatch:
    """Lanes in one city, with one oracle for all of them."""
    from shoal.worlds.dvrp.lanes.environment import DvrpBatch
    from shoal.worlds.dvrp.lanes.oracles import make_oracle
    from shoal.worlds.dvrp.lanes.scenario import make_scenario

    threads = ("num_threads",) if options.oracle in COMPILED else ()
    of_batch, of_oracle = batch.only("autoreset_mode", "copy", *threads), options.oracle_options()
    if "num_threads" in of_batch:
        num_threads = of_batch.pop("num_threads")
        of_oracle["num_threads"] = None if num_threads == "auto" else num_threads
    scenario = make_scenario(options)
    oracle = make_oracle(options.oracle, scenario.city, scenario.fleet, **of_oracle)
    return DvrpBatch(num_envs, scenario, oracle, options, **of_batch)


WORLD = World(
    "dvrp",
    "shoal/DVRP-v0",
    "negotiate time windows for a dial-a-ride fleet",
    DvrpOptions,
    make,
    lab="shoal.worlds.dvrp.lab:LAB",
    commands={
        "train-oracle": Command(
            "train the neural routing oracle for a city", "shoal.worlds.dvrp.lab.oracle_training.command:TRAIN_ORACLE"
        )
    },
    benchmarks={"oracle": Command("routing oracles against proven optima", "shoal.bench.oracle:SUITE")},
)
