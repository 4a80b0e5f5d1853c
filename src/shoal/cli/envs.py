"""`shoal envs`: the worlds that come with Shoal."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EnvsArgs:
    """List the worlds that come with Shoal. Any Gymnasium id and any "package.module:Class" can be used as well."""


def main(argv: list[str]) -> int:
    """Print the registry as a table."""
    import tyro
    from rich.console import Console
    from rich.table import Table

    from shoal.registry import WORLDS

    tyro.cli(EnvsArgs, args=argv, prog="shoal envs")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("world", "Gymnasium id", "what it is"):
        table.add_column(heading, overflow="fold")
    for world in WORLDS.values():
        table.add_row(world.name, world.gym_id, world.summary)
    console = Console()
    console.print(table)
    console.print(
        "\nshoal.make(NAME, num_envs=1024) makes a batch; so does any Gymnasium id or package.module:Class.",
        style="dim",
        highlight=False,
        markup=False,
    )
    return 0
