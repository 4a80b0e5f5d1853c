"""`shoal cache [clear]`: where compiled code is kept and how much of it, and a way to be rid of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from shoal.options import Flag


@dataclass(frozen=True)
class CacheArgs:
    """Show the folder of compiled code, or clear it. What is needed again is compiled again.

    The folder is `SHOAL_CACHE_DIR`, or `shoal` in the user's cache. When it grows beyond `SHOAL_CACHE_MB`
    megabytes (1,000 unless set), what has gone unused for longest is removed.
    """

    what: Annotated[Literal["show", "clear"], Flag("clear", positional=True)] = "show"
    """Remove everything."""


def main(argv: list[str]) -> int:
    """`shoal cache [clear]`."""
    from shoal.cli.options import parse

    args = parse(CacheArgs, argv, "shoal cache")

    from shoal.jit.folder import cache_dir, limit_bytes, stored_modules, trim

    folder = cache_dir()
    before = stored_modules(folder)
    size = sum(module.size for module in before)
    if args.what == "clear":
        removed = trim(folder, most=0, unused_for=0.0)
        print(f"Removed {len(removed)} modules, {sum(module.size for module in removed) / 1e6:.1f} MB, from {folder}.")
        return 0
    print(f"{folder}: {len(before)} modules, {size / 1e6:.1f} MB of at most {limit_bytes() / 1e6:,.0f} MB.")
    return 0
