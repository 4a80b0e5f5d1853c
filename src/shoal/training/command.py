"""How a run was started, as it is kept in command.txt."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path


def command_line(world: str) -> str:
    """What was typed at the command line (`shoal ...` or `python -m shoal ...`), or the call in Python."""
    program = Path(sys.argv[0]) if sys.argv else Path()
    if program.name == "shoal" or program.parts[-2:] == ("shoal", "__main__.py"):
        return shlex.join(["shoal", *sys.argv[1:]])
    return f"shoal.train({world!r}, ...)"
