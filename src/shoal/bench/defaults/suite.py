"""The suite "defaults": tasks by contenders by seeds, written down one by one, so that it can go on where it was."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from shoal.bench.contender import Unavailable
from shoal.bench.defaults.tasks import TASKS, Task
from shoal.bench.defaults.verdict import Outcome, tables
from shoal.bench.process import ONE_THREAD, ChildProcess
from shoal.bench.report import make_console
from shoal.errors import ConfigError, unknown_name
from shoal.options import Values, hints_of, read_text
from shoal.training.config import find_algo
from shoal.training.lab import Verb

PATIENCE_S = 3_600.0  # for one run, on a busy machine


class Contender(NamedTuple):
    """A library with its defaults."""

    entry: str
    package: str
    seeds: int
    algos: tuple[str, ...] = ("ppo", "sac", "dddqn")


CONTENDERS = {
    "chance": Contender("shoal.bench.defaults.ours:Chance", "torch", 1),
    "shoal": Contender("shoal.bench.defaults.ours:Training", "torch", 5),
    "sb3": Contender("shoal.bench.defaults.sb3:Training", "sb3_contrib", 3),
    "cleanrl": Contender("shoal.bench.defaults.cleanrl:Training", "torch", 3, ("ppo",)),
}


@dataclass(frozen=True)
class DefaultsArgs:
    """Train a suite of small tasks with everybody's defaults at equal steps, and say who learns what."""

    out: Path = Path("defaults.jsonl")
    """A line for every run. Those that are there already are not trained again."""
    algo: str = "ppo"
    """Whose defaults: ppo, sac (tasks with continuous actions) or dddqn (with choices)."""
    tasks: tuple[str, ...] = tuple(TASKS)
    """Which tasks."""
    only: tuple[str, ...] = tuple(CONTENDERS)
    """Which of chance, shoal, sb3 and cleanrl."""
    settings: tuple[str, ...] = ()
    """Try other defaults for Shoal, e.g. lr=1e-3 num_envs=16: runs are called after them."""
    seeds: int | None = None
    """Seeds of everybody, in place of 5 for Shoal and 3 for the others."""

    def __post_init__(self) -> None:
        for name in self.tasks:
            if name not in TASKS:
                raise unknown_name("task", name, TASKS, "`shoal bench defaults --help`")
        for name in self.only:
            if name not in CONTENDERS:
                raise unknown_name("contender", name, CONTENDERS, "`shoal bench defaults --help`")
        if self.algo not in CONTENDERS["shoal"].algos:
            raise unknown_name("agent", self.algo, CONTENDERS["shoal"].algos, "`shoal bench defaults --help`")
        if self.seeds is not None and self.seeds < 1:
            raise ConfigError(f"--seeds must be at least 1, not {self.seeds}.")


def settings_of(words: tuple[str, ...], algo: str) -> Values:
    """`name=value` words as settings of an agent, or of how many lanes it has."""
    hints = {**hints_of(find_algo(algo).config_class()), "num_envs": int}
    settings: Values = {}
    for name, equals, text in (word.partition("=") for word in words):
        if not equals:
            raise ConfigError(f"--settings takes words like lr=1e-3, not {name!r}.")
        if name not in hints:
            raise unknown_name("setting", name, hints, "docs/settings.md")
        settings[name] = read_text(text, hints[name], name)
    return settings


def work_of(args: DefaultsArgs) -> Iterator[tuple[str, Contender, Task, int]]:
    """Every run that is asked for, and the name under which it is written down."""
    for name in args.tasks:
        task = TASKS[name]
        if (args.algo == "sac" and not task.continuous) or (args.algo == "dddqn" and task.continuous):
            continue
        for library in args.only:
            contender = CONTENDERS[library]
            called = " ".join([library, *args.settings]) if library == "shoal" else library
            if args.algo in contender.algos and importlib.util.find_spec(contender.package) is not None:
                for seed in range(args.seeds or contender.seeds):
                    yield called, contender, task, seed


def train(child: ChildProcess, entry: str, task: Task, seed: int, args: DefaultsArgs) -> Values:
    """One run in a contender's process."""
    child.start(entry, task=asdict(task), seed=seed, algo=args.algo, settings=settings_of(args.settings, args.algo))
    return child.do("run")


def run(args: DefaultsArgs) -> int:
    """The command."""
    console = make_console()
    outcomes = read(args.out)
    known = {(each.algo, each.task, each.name, each.seed) for each in outcomes}
    children: dict[str, ChildProcess] = {}
    try:
        for name, contender, task, seed in work_of(args):
            if (args.algo, task.name, name, seed) in known:
                continue
            if contender.entry not in children:
                children[contender.entry] = ChildProcess(ONE_THREAD)
                children[contender.entry].patience_s = PATIENCE_S
            try:
                answer = train(children[contender.entry], contender.entry, task, seed, args)
            except Unavailable as reason:
                console.print(f"{task.name}, {name}, seed {seed}: {reason}", highlight=False, markup=False)
                children.pop(contender.entry).close()
                continue
            outcomes.append(Outcome(args.algo, task.name, name, seed, **answer))
            append(args.out, outcomes[-1])
            console.print(f"{task.name}, {name}, seed {seed}: {answer['score']:,.4g}", highlight=False, markup=False)
    finally:
        for child in children.values():
            child.close()
    for table in tables([each for each in outcomes if each.algo == args.algo]):
        console.print(table)
    return 0


def read(path: Path) -> list[Outcome]:
    """The runs that a file holds."""
    if not path.exists():
        return []
    try:
        return [Outcome(**json.loads(line)) for line in path.read_text().splitlines()]
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{path} is not a file of this suite: {error}. Name another one with --out.") from error


def append(path: Path, outcome: Outcome) -> None:
    """One more run in the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(outcome._asdict()) + "\n")


SUITE = Verb(DefaultsArgs, run)
