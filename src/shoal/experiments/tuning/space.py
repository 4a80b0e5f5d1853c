"""What is searched: `algo.lr=1e-4..1e-2:log`, `algo.num_steps=32,64,128`, `algo.normalise_obs=true,false`."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shoal.errors import ConfigError, ShoalError, naming, unknown_name
from shoal.experiments.tuning.defaults import DEFAULTS
from shoal.options import Values, fit, hints_of
from shoal.training.config import TrainConfig, find_algo
from shoal.training.lab import lab_of
from shoal.training.settings import merge
from shoal.world import World

if TYPE_CHECKING:
    import optuna

FORMS = "Write low..high, low..high:log or a list, e.g. algo.lr=1e-4..1e-2:log or algo.num_steps=32,64,128."


@dataclass(frozen=True)
class Parameter:
    """One setting that is searched: a range or a list of choices."""

    name: str
    """Dotted, as config.json has it: algo.lr, num_envs, env.length."""
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    whole: bool = False
    """Whole numbers only."""
    choices: tuple[Any, ...] = ()

    def suggest(self, trial: optuna.Trial) -> Any:
        """A value for a trial. Choices that Optuna cannot store (lists) go by their JSON."""
        if self.choices:
            return self.value(trial.suggest_categorical(self.name, [self.key(choice) for choice in self.choices]))
        if self.whole:
            return trial.suggest_int(self.name, int(self.low), int(self.high), log=self.log)
        return trial.suggest_float(self.name, self.low, self.high, log=self.log)

    def key(self, choice: Any) -> Any:
        """A choice as Optuna keeps it."""
        return json.dumps(choice) if isinstance(choice, list | tuple) else choice

    def value(self, key: Any) -> Any:
        """The setting behind what Optuna keeps."""
        return next((choice for choice in self.choices if self.key(choice) == key), key)

    def holds(self, value: Any) -> bool:
        """Whether a value lies in what is searched."""
        if self.choices:
            return self.key(value) in [self.key(choice) for choice in self.choices]
        return isinstance(value, int | float) and self.low <= value <= self.high


def read_space(specs: Iterable[str], world: World, algo: str, given: Values) -> tuple[Parameter, ...]:
    """Parameters from `--tune` words; without any, those of the world's lab, and the agent's beside them.

    Names and values are checked, and that none is given as a fixed setting too.
    """
    asked = tuple(specs)
    parameters = _read_all(asked, world, algo) if asked else _proposed(world, algo)
    names = [parameter.name for parameter in parameters]
    fixed = [name for name in names if _at(given, name) is not None]
    if asked and fixed:
        raise ConfigError(f"{fixed[0]} is both given and searched. Leave one of them out.")
    kept = tuple(parameter for parameter in parameters if parameter.name not in fixed)
    if not kept:
        raise ConfigError("Everything that would be searched is given. Leave something open, or name it with --tune.")
    return kept


def nested(values: Mapping[str, Any]) -> Values:
    """Values by dotted name, nested as config.json is."""
    tree: Values = {}
    for name, value in values.items():
        for part in reversed(name.split(".")):
            value = {part: value}
        tree = merge(tree, value)
    return tree


def _proposed(world: World, algo: str) -> list[Parameter]:
    """What the world's lab proposes, and what the agent's default does of the rest."""
    with naming(f"search of {world.lab}"):
        own = _read_all(lab_of(world).search.get(algo, ()), world, algo)
    names = [parameter.name for parameter in own]
    return own + [each for each in _read_all(DEFAULTS[algo], world, algo) if each.name not in names]


def _read_all(specs: Iterable[str], world: World, algo: str) -> list[Parameter]:
    parameters = [_read(spec, world, algo) for spec in specs]
    names = [parameter.name for parameter in parameters]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"{name} is searched more than once. Name it once, with all of its values.")
    return parameters


def _read(spec: str, world: World, algo: str) -> Parameter:
    name, equals, text = spec.partition("=")
    if not equals or not text:
        raise ConfigError(f"--tune {spec} does not say what is searched. {FORMS}")
    name, hint = _place(name.strip().replace("-", "_"), world, algo)
    low, dots, high = text.partition("..")
    if not dots:
        choices = tuple(fit(_value(word), hint, name) for word in _words(text))
        if len(choices) < 2:
            raise ConfigError(f"--tune {spec} leaves nothing to choose. {FORMS}")
        if twice := [choice for choice in choices if choices.count(choice) > 1]:
            raise ConfigError(f"--tune {spec} names {twice[0]} more than once. Name each value once.")
        return Parameter(name, choices=choices)
    high, colon, word = high.partition(":")
    if colon and word != "log":
        raise ConfigError(f"--tune {spec} ends with :{word}; only :log can stand there. {FORMS}")
    return _range(spec, name, hint, (low, high), log=bool(colon))


def _range(spec: str, name: str, hint: Any, ends: tuple[str, str], log: bool) -> Parameter:
    try:
        low, high = (fit(_value(end), hint, name) for end in ends)
        if isinstance(low, bool) or not isinstance(low, int | float) or not isinstance(high, int | float):
            raise ConfigError(f"{name} is not a number")
    except ShoalError as error:
        raise ConfigError(f"--tune {spec} is not a range of numbers: {error} {FORMS}") from None
    if not low < high:
        raise ConfigError(f"--tune {spec} is empty: {low:g} is not below {high:g}.")
    if log and low <= 0:
        raise ConfigError(f"--tune {spec} cannot be searched by its logarithm, because {low:g} is not above 0.")
    return Parameter(name, low, high, log, whole=isinstance(low, int) and isinstance(high, int))


def _place(name: str, world: World, algo: str) -> tuple[str, Any]:
    """The dotted name in config.json and the type of what may stand there."""
    if name == "seed":
        raise ConfigError(
            "seed is not searched: every promising trial is trained with several. Say how many with --seeds."
        )
    lab = lab_of(world)
    tables = {"algo": find_algo(algo).config_class(), "env": world.options, "extra": lab.options}
    known = {f"{table}.{field}": hint for table, cls in tables.items() for field, hint in _hints(cls).items()}
    known |= {field: hint for field, hint in hints_of(TrainConfig).items() if field not in (*tables, "world", "seed")}
    matches = [each for each in (name, f"env.{name}", f"extra.{name}") if each in known]
    if not matches:
        listed_by = f"`shoal train {world.name} --algo {algo} --help`"
        raise unknown_name("setting", name, known, listed_by, f"of {world.name} and {algo}")
    return matches[0], known[matches[0]]


def _hints(cls: type) -> dict[str, Any]:
    return hints_of(cls) if dataclasses.is_dataclass(cls) else {}


def _words(text: str) -> list[str]:
    """Parts of a list; commas inside of brackets belong to a value."""
    words, depth = [""], 0
    for letter in text:
        depth += (letter in "[({") - (letter in "])}")
        if letter == "," and not depth:
            words.append("")
        else:
            words[-1] += letter
    return [word.strip() for word in words]


def _value(word: str) -> Any:
    try:
        return json.loads(word)
    except ValueError:
        return word


def _at(values: Mapping[str, Any], dotted: str) -> Any:
    current: Any = values
    for part in dotted.split("."):
        current = current.get(part) if isinstance(current, Mapping) else None
    return current
