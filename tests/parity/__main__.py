"""`python -m tests.parity WORLD DIR`: each world's module here has `main(rest) -> exit code` and prints JSON."""

from __future__ import annotations

import importlib
import importlib.util
import sys


def main(argv: list[str]) -> int:
    """Hand the rest of the command line to the world's module."""
    if not argv:
        print("usage: python -m tests.parity WORLD DIR", file=sys.stderr)
        return 2
    world, *rest = argv
    if importlib.util.find_spec(f"tests.parity.{world}") is None:
        print(f"There is no parity check for a world {world!r}: tests/parity/{world}.py is missing.", file=sys.stderr)
        return 2
    return importlib.import_module(f"tests.parity.{world}").main(rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
