"""`shoal oracle-train dvrp`: train the neural routing oracle and keep its weights."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import Positional, arg

from shoal.cli.options import options_note, parse, split_world_options
from shoal.worlds.dvrp.config import Place, make_scenario, option_defaults, split_options
from shoal.worlds.dvrp.fleet import Fleet
from shoal.worlds.dvrp.oracles.neural.settings import TrainOracle


@dataclass(frozen=True)
class OracleTrainCommand:
    """Train a routing oracle for a city: imitation of the compiled oracle, then REINFORCE."""

    world: Annotated[Positional[Literal["dvrp"]], arg(metavar="WORLD")]
    """The world that the oracle is for."""
    settings: Annotated[TrainOracle, arg(name="")] = field(default_factory=TrainOracle)
    out: Annotated[str, arg(metavar="FILE")] = "dvrp-oracle.safetensors"
    """Where the weights are written, again and again while training goes on."""
    start: Annotated[str | None, arg(metavar="FILE")] = None
    """Weights to begin with, of the same city; none begins with random ones."""


def main(argv: list[str]) -> int:
    """`shoal oracle-train WORLD [OPTIONS]`."""
    prog = "shoal oracle-train"
    of_place = _place_options()
    rest, options = split_world_options(argv, of_place)
    command = parse(OracleTrainCommand, rest, prog, note=options_note("dvrp", of_place))

    from shoal.training.files import explained
    from shoal.worlds.dvrp.oracles.neural.oracle import load_model, save_model
    from shoal.worlds.dvrp.oracles.neural.training import train

    _, place, _, fleet = split_options(options)
    scenario = make_scenario(place, fleet)
    start = None if command.start is None else load_model(command.start, scenario.city)
    sizes, words = (1, command.settings.customers), shlex.join(["shoal", "oracle-train", *argv])
    with explained(f"{command.out} could not be written", "Choose another --out."):
        Path(command.out).parent.mkdir(parents=True, exist_ok=True)

        def keep(model: Any) -> None:
            save_model(command.out, model, scenario.city, sizes, words)

        train(scenario, command.settings, partial(print, flush=True), keep, start)
    print(f"Wrote {command.out}. Use it with --oracle neural --oracle-checkpoint {command.out}")
    return 0


def _place_options() -> dict[str, Any]:
    """Options of the city, its travellers and the fleet."""
    names = {field.name for part in (Place, Fleet) for field in fields(part)} | {"fleet"}
    return {name: default for name, default in option_defaults().items() if name in names}
