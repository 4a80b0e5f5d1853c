"""An experiment is a folder: `{runs_dir}/{world}__{algo}__{N}-seeds__{time}_vec{num_envs}/`.

| file | what it holds |
|---|---|
| experiment.json | the seeds |
| config.json | the configuration that all runs share; its seed is the first one |
| command.txt | how it was started |
| seed_N/ | the run of each seed, a run folder like any other, and `outcome.json` once it has ended |
| failures.json | for seeds whose run failed, why |
| process_N.log | what the training processes printed, where they did |
| report.html | everything above to look at |
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shoal.errors import ConfigError, RunError
from shoal.options import Values
from shoal.reading import shortened
from shoal.training.checkpoint import Checkpoints
from shoal.training.files import explained, read_json, read_record, read_table, replace_file
from shoal.training.run import EXPERIMENT, new_folder
from shoal.training.settings import refuse_changes
from shoal.training.trust import write_config

FORMAT = "shoal experiment 1"
FAILURES, OUTCOME = "failures.json", "outcome.json"


@dataclass(frozen=True)
class Outcome:
    """How the run of a seed ended."""

    reason: str
    """As `TrainResult.reason`."""
    steps: int
    """Environment steps that it made."""
    total_steps: int
    """Environment steps that it was to make."""
    score: float | None
    """The mean return of its last evaluation, or of its latest episodes if there was none."""
    seconds: float
    """Of training."""


@dataclass(frozen=True)
class Experiment:
    """An experiment folder and what it is to hold."""

    path: Path
    seeds: tuple[int, ...]
    config: Values
    """As config.json has it."""

    def run(self, seed: int) -> Path:
        """The run folder of a seed."""
        return self.path / f"seed_{seed}"

    def outcome(self, seed: int) -> Outcome | None:
        """How the run of a seed ended, or None as long as it has not."""
        path = self.run(seed) / OUTCOME
        return read_record(path, Outcome) if path.exists() else None

    def outcomes(self) -> dict[int, Outcome]:
        """Those of the seeds that have one."""
        return {seed: outcome for seed in self.seeds if (outcome := self.outcome(seed)) is not None}

    def failures(self) -> dict[int, str]:
        """Why the runs of some seeds failed."""
        path = self.path / FAILURES
        named = read_table(path) if path.exists() else {}
        if wrong := [seed for seed in named if not seed.isdigit()]:
            raise ConfigError(
                f"{path} names {wrong[0]!r}, which is not a seed. Remove the file, and run the seeds again."
            )
        return {int(seed): why for seed, why in named.items()}

    def note_failure(self, seed: int, why: str | None) -> None:
        """Write down why the run of a seed failed; None takes that back."""
        before = self.failures()
        others = {each: text for each, text in before.items() if each != seed}
        after = others if why is None else {**others, seed: why}
        if after != before:
            self._write(FAILURES, after)

    def to_resume(self, seed: int) -> Path | None:
        """The run of a seed to go on with; None if it is to be begun: what has no checkpoint is removed."""
        run = self.run(seed)
        if Checkpoints(run / "checkpoints").steps():
            return run
        shutil.rmtree(run, ignore_errors=True)
        return None

    def with_seeds(self, seeds: Sequence[int]) -> Experiment:
        """The same experiment with more seeds, written down."""
        more = tuple(seed for seed in seeds if seed not in self.seeds)
        grown = replace(self, seeds=self.seeds + more)
        self._write(EXPERIMENT, {"format": FORMAT, "seeds": list(grown.seeds)})
        return grown

    def with_total_steps(self, total_steps: int) -> Experiment:
        """The same experiment with longer runs, written down."""
        longer = replace(self, config={**self.config, "total_steps": total_steps})
        write_config(self.path, longer.config)
        return longer

    def _write(self, name: str, values: Mapping[Any, Any]) -> None:
        with explained(f"{self.path / name} could not be written", "Make room or choose another --runs-dir."):
            replace_file(self.path / name, json.dumps(values, indent=2) + "\n")


def create_experiment(
    runs_dir: str | Path, config: Values, seeds: Sequence[int], command: str, name: str | None = None
) -> Experiment:
    """Make the folder of a new experiment. `name` is that of the folder; one that exists is refused."""
    if name is not None and is_experiment(Path(runs_dir) / name):
        existing = open_experiment(Path(runs_dir) / name)
        refuse_changes(existing.path, existing.config, {**config, "seed": existing.config["seed"]})
    path = new_folder(runs_dir, config, f"{len(seeds)}-seeds", name)
    experiment = Experiment(path, (), {**config, "seed": seeds[0]}).with_seeds(seeds)
    with explained(f"{path} could not be written", "Choose another --runs-dir."):
        write_config(path, experiment.config)
        replace_file(path / "command.txt", command + "\n")
    return experiment


def is_experiment(path: str | Path) -> bool:
    """Whether there is an experiment in this folder."""
    return (Path(path) / EXPERIMENT).is_file()


def open_experiment(path: str | Path) -> Experiment:
    """The experiment in a folder."""
    path = Path(path)
    if not is_experiment(path):
        raise RunError(f"{str(path)!r} is not an experiment: it has no {EXPERIMENT}.")
    values = read_json(path / EXPERIMENT)
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise ConfigError(f"{path / EXPERIMENT} was not written by this version of Shoal, whose format is {FORMAT!r}.")
    seeds = values.get("seeds")
    if not isinstance(seeds, list) or not seeds or not all(isinstance(seed, int) for seed in seeds):
        raise ConfigError(f"{path / EXPERIMENT} must list the seeds as whole numbers, not {shortened(seeds)}.")
    return Experiment(path, tuple(seeds), read_table(path / "config.json"))


def write_outcome(run: Path, outcome: Outcome) -> None:
    """Keep how the run of a seed ended."""
    with explained(f"{run / OUTCOME} could not be written", "Make room or choose another --runs-dir."):
        replace_file(run / OUTCOME, json.dumps(vars(outcome), indent=1) + "\n")
