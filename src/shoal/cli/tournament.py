"""`shoal tournament RUN RUN weak strong`: everybody against everybody, a win matrix and ratings."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from shoal.cli.options import parse
from shoal.errors import ConfigError, ShoalError
from shoal.options import Flag
from shoal.registry import as_world, worlds
from shoal.world import World

if TYPE_CHECKING:
    from shoal.training.lab import Tournament


@dataclass(frozen=True)
class TournamentCommand:
    """Let runs, stored policies and bots of a world for two play a round robin; print and draw who beats whom."""

    entrants: Annotated[tuple[str, ...], Flag("RUN|NAME", positional=True)]
    """Run folders, stored policies (.safetensors files, or names of those that come with the world), or bots of the
    world, e.g. weak strong."""
    world: str | None = None
    """The world in which they meet; if none is named, that of a run among them, or the first that knows them all."""
    games: int = 200
    """Games per pair; each side begins equally often."""
    seed: int = 0
    """Which games are played."""
    out: Annotated[str, Flag("FILE")] = "tournament.html"
    """The page with the win matrix and the ratings; the numbers are written beside it as JSON."""


def main(argv: list[str]) -> int:
    """`shoal tournament RUN RUN ... [OPTIONS]`."""
    command = parse(TournamentCommand, argv, "shoal tournament")

    world, tournament = find_tournament(command.world, command.entrants)
    names = [tournament.name_of(name) for name in command.entrants]
    if len(set(names)) < len(names):
        raise ConfigError(f"A player is named twice among {', '.join(names)}. Name each one once.")
    entrants = {name: tournament.find_entrant(entrant) for name, entrant in zip(names, command.entrants, strict=True)}
    result = tournament.play(entrants, command.games, command.seed)
    print(as_text(result))
    _write(command, world.name, result)
    return 0


def find_tournament(name: str | None, entrants: tuple[str, ...]) -> tuple[World, Tournament]:
    """The world in which these meet, and its tournaments."""
    from shoal.training.lab import lab_of
    from shoal.training.opening import read_run

    if name is None:
        run = next((entrant for entrant in entrants if (Path(entrant) / "config.json").is_file()), None)
        named = None if run is None else read_run(run)[1]
    else:
        named = as_world(name)
    candidates = [each for each in worlds().values() if isinstance(each, World)] if named is None else [named]
    makers = [(world, make) for world in candidates if (make := lab_of(world).tournament) is not None]
    if not makers:
        raise ConfigError(f"{candidates[0].name} is not a world for two, so there are no tournaments in it.")
    refusals = []
    for world, make in makers:
        try:
            for entrant in entrants:
                make(world).find_entrant(entrant)
        except ShoalError as error:
            refusals.append(error)
        else:
            return world, make(world)
    raise (
        refusals[0]
        if len(makers) == 1
        else ConfigError(
            f"No world for two knows all of {', '.join(entrants)}. Name the world: --world {makers[0][0].name}."
        )
    )


def as_text(result: Any) -> str:
    """The ratings, best first, with everybody's share of games won against each of the others."""
    order = [row[0] for row in result.ratings]
    width = max(map(len, order))
    heads = [f"{k + 1:>6}" for k in range(len(order))]
    lines = [f"{'':>4}{'player':<{width}}  rating {''.join(heads)}   (% won of {result.games} games)"]
    index = [result.names.index(name) for name in order]
    for k, (name, shown, _, _) in enumerate(result.ratings):
        shares = (result.won[index[k], j] for j in index)
        cells = "".join("     -" if share != share else f"{100 * share:6.1f}" for share in shares)
        lines.append(f"{k + 1:>3} {name:<{width}}  {shown:6.1f} {cells}")
    return "\n".join(lines)


def section_of(result: Any) -> Any:
    """The same to look at."""
    from shoal.report import sections as build

    order = [result.names.index(row[0]) for row in result.ratings]
    names = [result.names[i] for i in order]
    won = result.won[order][:, order]
    bars = [{"name": n, "value": mu, "low": mu - 3 * s, "high": mu + 3 * s} for n, _, mu, s in result.ratings]
    return build.Section(
        "Tournament",
        [
            build.matrix("games won by the row against the column", names, names, won, 0.0, 1.0, percent=True),
            build.bars("rating, with three standard deviations either way", bars),
        ],
        f"{result.games} games of every pair, deterministic, both sides begin equally often; ratings by openskill.",
    )


def _write(command: TournamentCommand, world: str, result: Any) -> None:
    from shoal.report.page import render_page
    from shoal.report.run_report import write_report
    from shoal.report.sections import add_section
    from shoal.training.files import explained, replace_file

    section, page = section_of(result), Path(command.out)
    values = {
        "games": result.games,
        "names": result.names,
        "won": [[None if v != v else v for v in row] for row in result.won.tolist()],
        "drawn": [[None if v != v else v for v in row] for row in result.drawn.tolist()],
        "ratings": [dict(zip(("name", "shown", "mu", "sigma"), row, strict=True)) for row in result.ratings],
    }
    with explained(f"{page} could not be written", "Choose another --out."):
        replace_file(page, render_page(world, "tournament", ", ".join(result.names), [section]))
        replace_file(page.with_suffix(".json"), json.dumps(values, indent=1) + "\n")
    for run in map(Path, command.entrants):
        if (run / "metrics.jsonl").is_file():
            add_section(run, "tournament", section)
            write_report(run)
    print(page)
