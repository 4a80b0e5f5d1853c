"""`shoal hockey store RUN NAME`: keep the policy of a run among those that come with Shoal."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

from shoal.options import Flag
from shoal.training.lab import Verb


@dataclass(frozen=True)
class StoreCommand:
    """Keep the policy of a run under a name, for --policy, --vs and tournaments.

    The file is written into the installed package, with the command that trained it and the step it had reached.
    """

    run: Annotated[str, Flag("RUN", positional=True)]
    """The run folder; its latest checkpoint is taken."""
    name: Annotated[str, Flag("NAME", positional=True)]
    """What the policy is to be called."""


def store(command: StoreCommand) -> int:
    """Write the file and print where it is."""
    from shoal.training.checkpoint import Checkpoints
    from shoal.training.files import explained
    from shoal.training.run import find_run
    from shoal.worlds.hockey.lab.policies import STORED, freeze_run

    run = find_run(command.run)
    step = Checkpoints(run / "checkpoints").steps()[-1]
    trained_by = re.sub(r" --runs-dir \S+|(?<=--init )\S*/", "", (run / "command.txt").read_text().strip())
    path = STORED / f"{command.name}.safetensors"
    with explained(f"{path} could not be written", "Is the installed package writable?"):
        freeze_run(run).save(path, {"command": trained_by, "step": step})
    print(path)
    return 0


STORE = Verb(StoreCommand, store)
