"""`shoal export RUN --to FORMAT`: a run's policy as a file for another program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from shoal.cli.options import parse
from shoal.options import Flag


@dataclass(frozen=True)
class ExportCommand:
    """Write a run's policy as a file for other programs: its best actions, normalisation included."""

    run: Annotated[str, Flag("RUN", positional=True)]
    """The run folder, or a checkpoint in it."""
    to: Annotated[str, Flag("FORMAT")]
    """onnx (for ONNX runtimes), torch (a torch.export program), c (one C header without dependencies), or numpy (plain
    arrays, with a short reader beside them that needs NumPy alone)."""
    out: Annotated[str | None, Flag("FILE")] = None
    """The file to write; by default policy.onnx, .pt2, .h or .safetensors in the run folder."""
    checkpoint: str = "latest"
    """latest, best, or step_N."""
    trust: bool = False
    """Import the environment that somebody else's run names as package.module:Name; see docs/security.md."""


def main(argv: list[str]) -> int:
    """`shoal export RUN --to FORMAT`."""
    command = parse(ExportCommand, argv, "shoal export")

    from shoal.policy.export import export

    for path in export(command.run, command.to, command.out, command.checkpoint, command.trust):
        print(path)
    return 0
