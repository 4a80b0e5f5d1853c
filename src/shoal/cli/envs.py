"""`shoal envs`: the worlds that can be named here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EnvsArgs:
    """List the worlds that come with Shoal or are installed beside it.

    Any Gymnasium id and any "package.module:Class" can be used as well.
    """


def main(argv: list[str]) -> int:
    """Print the registry as a table."""
    from rich.console import Console
    from rich.table import Table

    from shoal.cli.options import parse
    from shoal.registry import worlds
    from shoal.world import World

    parse(EnvsArgs, argv, "shoal envs")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("world", "Gymnasium id", "what it is"):
        table.add_column(heading, overflow="fold")
    for name, world in worlds().items():
        table.add_row(name, *((world.gym_id, world.summary) if isinstance(world, World) else ("", str(world))))
    console = Console()
    console.print(table)
    console.print(
        "\nshoal.make(NAME, num_envs=1024) makes a batch; so does any Gymnasium id or package.module:Class.",
        style="dim",
        highlight=False,
        markup=False,
    )
    return 0
