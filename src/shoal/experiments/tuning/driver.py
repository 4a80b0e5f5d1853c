"""The search itself: Optuna proposes settings, runs are trained side by side, what they score goes back to Optuna.

A trial begins with one run. Its training return is reported to Optuna at every tenth of the way, where Optuna's pruner
may end it. One that ends among the best third so far is promising: it gets the other seeds as well, and its value is
their interquartile mean. Others keep the score of their one run, so most of the time goes to what may win. At the
end the best trial is one that several seeds have confirmed, wherever there is one.
"""

from __future__ import annotations

import json
import shutil
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.errors import ConfigError, missing_extra
from shoal.experiments.panel import Progress
from shoal.experiments.processes import Crew, Event, Job, job
from shoal.experiments.sources import SECONDS, read_source
from shoal.experiments.statistics import iqm
from shoal.experiments.tuning.folder import Search
from shoal.options import Values
from shoal.training.checkpoint import Checkpoints
from shoal.training.files import read_json, replace_file
from shoal.training.interrupt import INTERRUPTED
from shoal.training.metrics import RETURN, Row

if TYPE_CHECKING:
    import optuna

PROMISING = 1 / 3
TENTHS = 10
KEPT = 67.0
"""Per cent of the trials that go on at each tenth: one curve is noise enough to spare the middle."""
SCORES, FAILED = "scores.json", "failed.json"
HOPELESS = 20
"""Failed trials after which a search that has trained nothing gives up: what is searched, or the world, is at fault."""
STARTUP = 5
"""Trials before the first one is ended early or proposed by a model."""


@dataclass
class Running:
    """A trial that is not told to Optuna yet."""

    number: int
    config: Values
    trial: optuna.Trial | None
    """None for one that an earlier process began: it goes on, and is not pruned."""
    left: list[int] = field(default_factory=lambda: [0])
    """Seeds that are still to be trained."""
    at_work: int = 0
    scores: dict[int, float] = field(default_factory=dict)
    died: set[int] = field(default_factory=set)
    """Seeds whose process died once."""
    tenth: int = 0
    verdict: str = ""
    """pruned or failed, if it is."""


class Tuner:
    """A search in a folder: `run` begins it or goes on with it."""

    def __init__(self, folder: Path, search: Search, say: Callable[[str], None] = print, trust: bool = False) -> None:
        self.folder, self.search, self.say, self.trust = folder, search, say, trust
        self.study = load_study(folder, search.sampler_seed)
        self.running: dict[str, Running] = {}
        self._deadline = 0.0
        self._most = 0
        self.failed: list[str] = []
        """Why trials failed since the search began or went on."""
        self._works = bool(self.ranked())
        self._revive()
        if not self.study.get_trials(deepcopy=False):
            self._enqueue_defaults()

    # ------------------------------------------------------------------ the loop

    def run(self, crew: Crew, progress: Progress, seconds: float, trials: int | None) -> None:
        """Search for this many seconds, or until there are this many trials."""
        self._deadline, self._most = time.monotonic() + seconds, trials or 10**9
        for event in crew.work(self._next_job):
            if crew.stopping:
                progress.stop()
            self._follow(event, crew, progress)
            if time.monotonic() > self._deadline and not crew.stopping:
                progress.stop("The budget is spent: every run finishes its iteration, then saves.")
                crew.stop()

    def _next_job(self) -> Job | None:
        """Another seed of a promising trial, or a new trial."""
        if time.monotonic() > self._deadline:
            return None
        waiting = next((trial for trial in self.running.values() if trial.left), None)
        while waiting is None:
            begun = [trial for trial in self.study.get_trials(deepcopy=False) if trial.state != _states().WAITING]
            if len(begun) >= self._most or self.hopeless:
                return None
            waiting = self._ask()
        seed = waiting.left.pop(0)
        waiting.at_work += 1
        run = self.run_of(waiting.number, seed)
        run.parent.mkdir(parents=True, exist_ok=True)
        resume = bool(Checkpoints(run / "checkpoints").steps())
        if not resume:
            shutil.rmtree(run, ignore_errors=True)  # what was killed before its first checkpoint
        config = {**waiting.config, "seed": seed}
        return job(f"trial {waiting.number}, seed {seed}", config, run, resume, trust=self.trust)

    def _ask(self) -> Running | None:
        """A new trial; None if what was proposed cannot be trained, which Optuna is told."""
        trial = self.study.ask()
        values = {parameter.name: parameter.suggest(trial) for parameter in self.search.parameters}
        try:
            config = self.search.config_with(values)
        except ConfigError as error:
            self._fail(trial.number, str(error))
            self.study.tell(trial.number, state=_states().FAIL)
            return None
        self.running[_key(trial.number)] = Running(trial.number, config, trial)
        return self.running[_key(trial.number)]

    def _follow(self, event: Event, crew: Crew, progress: Progress) -> None:
        key, seed = event.job.name.split(",")[0], event.job.request["config"]["seed"]
        running = self.running[key]
        if event.kind == "began":
            progress.begin(event.job.name)
        elif event.kind == "row":
            progress.row(event.job.name, event.content)
            if self._is_over(running, event.content):
                crew.interrupt(event.job)
        elif event.kind == "died" and not running.verdict and seed not in running.died:
            running.at_work -= 1
            running.died.add(seed)
            running.left.append(seed)
            progress.end(event.job.name, "stopped")
            self.say(f"{event.job.name}: {event.content}. It is tried once more.")
        else:
            running.at_work -= 1
            stopped = event.kind == "ended" and event.content["reason"] == INTERRUPTED
            state = running.verdict or ("stopped" if stopped else "done") if event.kind == "ended" else "failed"
            progress.end(event.job.name, state)
            if event.kind != "ended":
                running.verdict = "failed"
                self._fail(running.number, str(event.content))
                self.say(f"{event.job.name} failed: {event.content}")
            elif not stopped or self._time_is_up(running, seed):
                running.scores[seed] = self.score_of(running.number, seed)
                self._works = True
            elif not running.verdict:  # somebody stopped it: it goes on when the search does
                running.left.append(seed)
            self._settle(running)

    def _is_over(self, running: Running, row: Row) -> bool:
        """Whether a run has had its time, or Optuna's pruner gives it up."""
        if running.verdict:
            return False
        limit = self.search.run_seconds
        if limit is not None and row["time/time_elapsed"] >= limit:
            return True
        share = row["time/time_elapsed"] / limit if limit else row["step"] / running.config["total_steps"]
        tenth, value = int(TENTHS * share), row.get(RETURN)
        if running.trial is None or running.scores or value is None or not running.tenth < tenth < TENTHS:
            return False  # at the end there is nothing left to spare
        running.tenth = tenth
        running.trial.report(value, tenth)
        if running.trial.should_prune():
            running.verdict = "pruned"
        return running.verdict == "pruned"

    def _fail(self, number: int, why: str) -> None:
        self._note(number, FAILED, why)
        self.failed.append(why)

    @property
    def hopeless(self) -> bool:
        """Whether so many trials failed, and none else was there, that the next one would fail too."""
        return not self._works and len(self.failed) >= HOPELESS

    def _time_is_up(self, running: Running, seed: int) -> bool:
        outcome = self.run_of(running.number, seed) / "outcome.json"
        if self.search.run_seconds is None or not outcome.exists():
            return False
        return read_json(outcome)["seconds"] >= self.search.run_seconds

    def _settle(self, running: Running) -> None:
        """Give a promising trial its other seeds, or tell Optuna what came of it."""
        if running.at_work or running.left:
            return
        states = _states()
        if running.verdict:
            state = states.PRUNED if running.verdict == "pruned" else states.FAIL
            self.study.tell(running.number, state=state)
        elif len(running.scores) < self.search.seeds and self._is_promising(running):
            running.left = [seed for seed in range(self.search.seeds) if seed not in running.scores]
            return
        else:
            self._note(running.number, SCORES, dict(sorted(running.scores.items())))
            value = float(iqm(list(running.scores.values())))
            self.study.tell(running.number, value)
            self.say(f"trial {running.number}: {value:.4g} over {counted(len(running.scores), 'seed')}")
        del self.running[_key(running.number)]

    def _is_promising(self, running: Running) -> bool:
        """Whether its first run is among the best third of those that have ended."""
        ended = [self.scores_of(trial.number) for trial in self.study.get_trials(deepcopy=False)]
        firsts = [scores[0] for scores in ended if 0 in scores]
        better = sum(first > running.scores[0] for first in firsts)
        return better <= PROMISING * (len(firsts) + 1)

    # ------------------------------------------------------------------ what is known

    def run_of(self, number: int, seed: int) -> Path:
        """The run folder of a trial's seed."""
        return self.folder / "trials" / str(number) / f"seed_{seed}"

    def score_of(self, number: int, seed: int) -> float:
        """At equal steps the mean of the last evaluation; at equal time the training return at that moment."""
        run = self.run_of(number, seed)
        if self.search.run_seconds is None:
            score = read_json(run / "outcome.json")["score"]
            return float("-inf") if score is None else score
        return return_at(run, self.search.run_seconds)

    def best(self) -> optuna.trial.FrozenTrial | None:
        """The best of those that the most seeds have confirmed."""
        return next(iter(self.ranked()), None)

    def ranked(self) -> list[optuna.trial.FrozenTrial]:
        """Trials that have ended, best first; those of more seeds stand before those of fewer."""
        done = self.study.get_trials(deepcopy=False, states=(_states().COMPLETE,))
        return sorted(done, key=lambda trial: (-len(self.scores_of(trial.number)), -(trial.value or 0.0)))

    def write_best(self) -> Path | None:
        """Write best.json: the configuration of the best trial, for `shoal train --config`."""
        best = self.best()
        if best is None:
            return None
        config = {
            name: value for name, value in self.search.config_with(self.values_of(best)).items() if name != "seed"
        }
        replace_file(self.folder / "best.json", json.dumps(config, indent=2) + "\n")
        return self.folder / "best.json"

    def values_of(self, trial: optuna.trial.FrozenTrial) -> Values:
        """What a trial has for every setting that is searched."""
        by_name = {parameter.name: parameter for parameter in self.search.parameters}
        return {name: by_name[name].value(key) for name, key in trial.params.items()}

    def scores_of(self, number: int) -> dict[int, float]:
        """Score by seed of a trial that has ended."""
        return {int(seed): score for seed, score in (self._noted(number, SCORES) or {}).items()}

    def failure_of(self, number: int) -> str | None:
        """Why a trial failed, if it did."""
        return self._noted(number, FAILED)

    def _note(self, number: int, name: str, value: Any) -> None:
        folder = self.folder / "trials" / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(folder / name, json.dumps(value) + "\n")

    def _noted(self, number: int, name: str) -> Any:
        path = self.folder / "trials" / str(number) / name
        return read_json(path) if path.exists() else None

    def _enqueue_defaults(self) -> None:
        """The first trial is what holds without a search, where that lies in what is searched."""
        values: dict[str, Any] = {}
        for parameter in self.search.parameters:
            current: Any = self.search.config
            for part in parameter.name.split("."):
                current = current.get(part) if isinstance(current, dict) else None
            if parameter.holds(current):
                values[parameter.name] = parameter.key(current)
        if values:
            self.study.enqueue_trial(values)

    def _revive(self) -> None:
        """Trials that an earlier process left unfinished go on, each of their runs from its last checkpoint."""
        for frozen in self.study.get_trials(deepcopy=False, states=(_states().RUNNING,)):
            if len(frozen.params) < len(self.search.parameters):  # it was killed while it was being proposed
                self.study.tell(frozen.number, state=_states().FAIL)
                continue
            running = Running(frozen.number, self.search.config_with(self.values_of(frozen)), None, left=[])
            self.running[_key(frozen.number)] = running
            for seed in range(self.search.seeds):
                outcome = self.run_of(frozen.number, seed) / "outcome.json"
                ended = outcome.exists() and read_json(outcome)["reason"] != INTERRUPTED
                if ended or self._time_is_up(running, seed):
                    running.scores[seed] = self.score_of(frozen.number, seed)
                elif seed == 0 or self.run_of(frozen.number, seed).exists():
                    running.left.append(seed)
            self._settle(running)


def load_study(folder: Path, seed: int) -> optuna.Study:
    """Optuna's study in a folder, new or as it was left."""
    try:
        import optuna
        from optuna.storages.journal import JournalFileBackend
    except ImportError:
        raise missing_extra("optuna", "tune", "shoal tune") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)  # constant_liar
    backend = JournalFileBackend(str(folder / "journal.log"))
    return optuna.create_study(
        study_name="shoal",
        storage=optuna.storages.JournalStorage(backend),
        sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=STARTUP, constant_liar=True),
        pruner=optuna.pruners.PercentilePruner(KEPT, n_startup_trials=STARTUP, n_warmup_steps=3),
        direction="maximize",
        load_if_exists=True,
    )


def return_at(run: Path, seconds: float) -> float:
    """The training return of a run after this many seconds of training."""
    metrics = read_source(run).runs[0].metrics
    if RETURN not in metrics:
        return float("-inf")
    steps, values = metrics[RETURN]
    at = np.interp(steps, *metrics[SECONDS])
    return float(np.interp(seconds, at, values))


def counted(number: int, what: str) -> str:
    """A number of things, e.g. "1 seed" or "3 seeds"."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _key(number: int) -> str:
    return f"trial {number}"


def _states() -> Any:
    from optuna.trial import TrialState

    return TrialState
