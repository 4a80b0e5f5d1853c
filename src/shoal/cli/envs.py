"""`shoal envs`: the worlds and environments that can be named here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from shoal.options import Flag

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class EnvsArgs:
    """List the worlds that come with Shoal or are installed alongside it, and Gymnasium's environments.

    Any Gymnasium id and any "package.module:Class" can be trained.
    """

    text: Annotated[str | None, Flag("TEXT", positional=True)] = None
    """Only those whose name or origin contains this, e.g. mujoco, box2d, ale or minigrid."""
    all: bool = False
    """List Gymnasium's environments too, each in its newest version."""


def main(argv: list[str]) -> int:
    """Print the registry as a table."""
    from rich.console import Console

    from shoal.cli.options import parse
    from shoal.errors import ConfigError

    args = parse(EnvsArgs, argv, "shoal envs")
    rows = [row for row in _world_rows() if _fits(row, args.text)]
    if args.all or args.text is not None:
        rows += [row for row in _gymnasium_rows(args.text) if _fits(row, args.text)]
    if not rows:
        raise ConfigError(f"No world or environment has {args.text!r} in its name. `shoal envs --all` lists them all.")
    console = Console()
    console.print(_table(rows))
    hint = "shoal.make(NAME, num_envs=1024) makes a batch; so does any Gymnasium id or package.module:Class."
    more = "" if args.all or args.text else " `shoal envs --all` lists Gymnasium's."
    console.print(f"\n{hint}{more}", style="dim", highlight=False, markup=False)
    return 0


def _world_rows() -> list[tuple[str, str, str]]:
    from shoal.registry import worlds
    from shoal.world import World

    return [
        (name, *((world.gym_id, world.summary) if isinstance(world, World) else ("", str(world))))
        for name, world in worlds().items()
    ]


def _gymnasium_rows(text: str | None) -> list[tuple[str, str, str]]:
    """Ids of Gymnasium, the newest version of each, without those of our worlds: id, origin, time limit."""
    import gymnasium

    from shoal.vector.lanes.gym_ids import import_packages

    import_packages(text)
    newest = {re.sub(r"-v\d+$", "", each): each for each in sorted(gymnasium.registry, key=_version)}
    rows = []
    for name in sorted(newest.values()):
        spec = gymnasium.registry[name]
        origin = str(spec.entry_point).partition(":")[0]
        if not origin.startswith("shoal."):
            limit = "" if spec.max_episode_steps is None else f"{spec.max_episode_steps:,} steps"
            rows.append((name, origin, limit))
    return rows


def _version(name: str) -> int:
    number = re.search(r"-v(\d+)$", name)
    return int(number[1]) if number else 0


def _fits(row: tuple[str, str, str], text: str | None) -> bool:
    return text is None or any(text.lower() in part.lower() for part in row[:2])


def _table(rows: list[tuple[str, str, str]]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("name", "Gymnasium id or origin", "what it is"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table
