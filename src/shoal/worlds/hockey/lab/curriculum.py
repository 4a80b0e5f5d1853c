"""Curriculum files: phases of training, in the field names of the original system.

`read` turns the parsed file into phases, and raises one `ConfigError` that lists everything wrong with it. What else
such a file says is read by `curriculum_settings`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from shoal.errors import ConfigError, ShoalError
from shoal.games.lab.pool import STRATEGIES
from shoal.options import Values
from shoal.reading import is_number, shortened
from shoal.training.settings import read_config
from shoal.worlds.hockey.lab.policies import load_fitting, stored_policies
from shoal.worlds.hockey.lanes.kernel import WIDTHS
from shoal.worlds.hockey.world import MODES

_BOTS = {"none": "nobody", "basic_weak": "weak", "basic_strong": "strong"}
_OPPONENTS = (*_BOTS, "self_play", "weighted_mixture", "archive", "run_checkpoints")
_PHASE = ("name", "episodes", "steps", "win_rate", "environment", "opponent", "reward_shaping", "reward_bonus",
          "clear_buffer")  # fmt: skip
_OPPONENT = ("type", "weight", "checkpoint", "deterministic", "agent_type", "opponents", "distribution", "skill_range",
             "strategy")  # fmt: skip
SHAPING = {
    "N": 600, "K": 400, "CLOSENESS_START": 20.0, "TOUCH_START": 15.0, "DIRECTION_START": 0.0, "OUTCOME_START": 0.0,
    "CLOSENESS_FINAL": 1.5, "TOUCH_FINAL": 1.0, "DIRECTION_FINAL": 2.0, "OUTCOME_FINAL": 0.0,
}  # fmt: skip
BONUS = {
    "N": 0, "K": 2000, "WIN_BONUS_START": 10.0, "WIN_BONUS_FINAL": 1.0, "WIN_DISCOUNT_START": 0.92,
    "WIN_DISCOUNT_FINAL": 0.92,
}  # fmt: skip
_SHAPED = {
    "CLOSENESS": "reward_closeness_to_puck", "TOUCH": "reward_touch_puck", "DIRECTION": "reward_puck_direction",
    "OUTCOME": "winner",
}  # fmt: skip
MOST = 2**63
"""Episodes and steps are fewer."""
T = TypeVar("T")
_ARCHIVE = {"pfsp": 0.5, "random": 0.3, "baseline": 0.2}


@dataclass(frozen=True)
class Mixture:
    """Who a learner plays against: shares of nobody, the bots, itself, its past and stored policies, of any sum."""

    nobody: float = 0.0
    weak: float = 0.0
    strong: float = 0.0
    learner: float = 0.0
    pool: float = 0.0
    strategy: str = "prioritised"
    """How a member of the pool is chosen: the latest, any, or most often those that are neither beaten nor hopeless."""
    files: tuple[tuple[str, float], ...] = ()
    """Stored policies and their shares."""


@dataclass(frozen=True)
class Schedule:
    """Numbers that are held for `hold` finished episodes of a phase, then move linearly over `over` more."""

    hold: float
    over: float
    start: dict[str, float]
    final: dict[str, float]

    def at(self, episodes: float) -> dict[str, float]:
        """The numbers after this many episodes."""
        share = (episodes - self.hold) / self.over if self.over > 0 else float(episodes >= self.hold)
        share = min(max(share, 0.0), 1.0)
        return {name: value + (self.final[name] - value) * share for name, value in self.start.items()}


@dataclass(frozen=True)
class Phase:
    """One phase. It ends after some finished episodes or environment steps, or at a share of recent games won."""

    name: str
    episodes: int | None
    steps: int | None
    win_rate: float | None
    modes: tuple[tuple[str, float], ...]
    keep_mode: bool
    opponents: Mixture
    shaping: Schedule | None
    bonus: Schedule | None
    clear_buffer: bool


def load(curriculum: Values | str) -> tuple[Values, str, Path]:
    """(content, name, folder) of a curriculum that is given as its content or as the name of a JSON or TOML file."""
    if not isinstance(curriculum, str):
        return curriculum, "the curriculum", Path()
    return read_config(curriculum), curriculum, Path(curriculum).parent


def readable_anywhere(given: object, folder: Path) -> object:
    """The same content, with checkpoints that are relative to `folder` as absolute paths."""
    if isinstance(given, list):
        return [readable_anywhere(one, folder) for one in given]
    if not isinstance(given, Mapping):
        return given
    content = {name: readable_anywhere(value, folder) for name, value in given.items()}
    checkpoint = content.get("checkpoint")
    if isinstance(checkpoint, str) and (folder / checkpoint).exists():
        content["checkpoint"] = str((folder / checkpoint).absolute())
    return content


def endless_phase(name: str, opponents: Mixture) -> Phase:
    """A phase of the whole game that ends with the run."""
    return Phase(name, None, None, None, (("NORMAL", 1.0),), True, opponents, None, None, clear_buffer=False)


def read(values: Values, source: str, folder: Path = Path()) -> list[Phase]:
    """The phases of `values["curriculum"]`; paths in it may be relative to `folder`."""
    reader = Reader(folder)
    phases = reader.phases(values.get("curriculum"))
    reader.refuse(source)
    return phases


class Reader:
    """Goes through a whole file and gathers what is wrong with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.errors: list[str] = []

    def refuse(self, source: str) -> None:
        """`ConfigError` that lists all errors, if there are any."""
        if self.errors:
            raise ConfigError(f"{source} has {len(self.errors)} error(s): " + "; ".join(self.errors) + ".")

    def phases(self, curriculum: object) -> list[Phase]:
        listed = curriculum.get("phases") if isinstance(curriculum, Mapping) else None
        if not isinstance(listed, list) or not listed:
            self.errors.append("curriculum.phases must be a list of at least one phase")
            return []
        phases = [self.phase(one, f"curriculum.phases[{i}]") for i, one in enumerate(listed)]
        for i, phase in enumerate(phases):
            self.check_policies(phase, f"curriculum.phases[{i}].opponent.checkpoint")
        if len({phase.keep_mode for phase in phases}) > 1:
            self.errors.append("environment.keep_mode must be the same in all phases: it changes the spaces")
        return phases

    def phase(self, given: object, at: str) -> Phase:
        values = self.table(given, at, _PHASE)
        episodes, steps = (self.whole(values, name, at) for name in ("episodes", "steps"))
        win_rate = self.number(values, "win_rate", at, None, low=0.0, high=1.0)
        if all(values.get(name) is None for name in ("episodes", "steps", "win_rate")):
            self.errors.append(f"{at} needs episodes, steps or win_rate to know when it ends")
        environment = self.table(values.get("environment", {}), f"{at}.environment", ("mode", "mixture", "keep_mode"))
        bonus = {"WIN_BONUS": "win_bonus", "WIN_DISCOUNT": "win_discount"}
        return Phase(
            self.text(values, "name", at, at),
            episodes,
            steps,
            win_rate,
            self.modes(environment, f"{at}.environment"),
            self.switch(environment, "keep_mode", f"{at}.environment", True),
            self.opponents(values.get("opponent", {"type": "none"}), f"{at}.opponent"),
            self.schedule(values.get("reward_shaping"), SHAPING, f"{at}.reward_shaping", _SHAPED),
            self.schedule(values.get("reward_bonus"), BONUS, f"{at}.reward_bonus", bonus),
            self.switch(values, "clear_buffer", at, True),
        )

    # ------------------------------------------------------------------ parts of a phase

    def modes(self, environment: Values, at: str) -> tuple[tuple[str, float], ...]:
        if environment.get("mixture") is None:
            return ((self.mode(environment.get("mode", "NORMAL"), f"{at}.mode"), 1.0),)
        listed = self.weighted(environment["mixture"], f"{at}.mixture", ("mode", "weight"), "modes")
        return tuple((self.mode(one.get("mode"), f"{where}.mode"), weight) for where, one, weight in listed)

    def mode(self, name: object, at: str) -> str:
        if name not in MODES:
            self.errors.append(f"{at}={shortened(name)} is not a mode: use {', '.join(MODES)}")
            return "NORMAL"
        return str(name)

    def opponents(self, given: object, at: str) -> Mixture:
        values = self.table(given, at, _OPPONENT)
        kind = values.get("type")
        if kind not in _OPPONENTS:
            self.errors.append(f"{at}.type={shortened(kind)} is unknown: use {', '.join(_OPPONENTS)}")
            return Mixture(nobody=1.0)
        if kind != "weighted_mixture":
            return Mixture(**self.simple(values, str(kind), 1.0, at))
        shares: Values = {}
        for where, one, weight in self.weighted(values.get("opponents"), f"{at}.opponents", _OPPONENT, "opponents"):
            if one.get("type") not in _OPPONENTS or one.get("type") == "weighted_mixture":
                self.errors.append(f"{where}.type={shortened(one.get('type'))} cannot be part of a mixture")
                continue
            for name, share in self.simple(one, str(one["type"]), weight, where).items():
                shares[name] = share if isinstance(share, str) else shares.get(name, type(share)()) + share
        return Mixture(**shares)

    def simple(self, values: Values, kind: str, weight: float, at: str) -> Values:
        """Shares of a mixture that one opponent stands for."""
        strategy = values.get("strategy", "prioritised")
        if strategy not in STRATEGIES:
            self.errors.append(f"{at}.strategy={shortened(strategy)} is unknown: use {', '.join(STRATEGIES)}")
        if kind in _BOTS:
            return {_BOTS[kind]: weight}
        if kind == "run_checkpoints":
            return {"pool": weight, "strategy": "uniform"}
        if kind == "archive":
            return self.archive(values, weight, at)
        checkpoint = self.text(values, "checkpoint", at, None)
        if checkpoint is None:
            return {"pool": weight, "strategy": strategy} if "strategy" in values else {"learner": weight}
        if checkpoint == "latest":
            return {"pool": weight, "strategy": "latest"}
        path = self.folder / checkpoint
        return {"files": ((str(path if path.exists() else stored_policies().get(checkpoint, path)), weight),)}

    def archive(self, values: Values, weight: float, at: str) -> Values:
        """Shares of an archive: its baselines are the two bots, everybody else in it is of the pool."""
        shares = values.get("distribution") or _ARCHIVE
        if not isinstance(shares, Mapping) or not all(is_number(s) and s >= 0 for s in shares.values()):
            self.errors.append(f"{at}.distribution must give a share to every strategy")
            shares = _ARCHIVE
        self.check_sum(list(shares.values()), f"{at}.distribution")
        bots = weight * shares.get("baseline", 0.0) / (sum(shares.values()) or 1.0)
        return {"pool": weight - bots, "weak": bots / 2, "strong": bots / 2, "strategy": "prioritised"}

    def schedule(
        self, given: object, defaults: Mapping[str, float], at: str, names: Mapping[str, str]
    ) -> Schedule | None:
        """`names` are those of the file, and what they stand for."""
        if given is None:
            return None
        values = self.table(given, at, tuple(defaults))
        numbers = {name: self.number(values, name, at, default) or 0.0 for name, default in defaults.items()}
        for name in ("N", "K"):
            if numbers[name] < 0:
                self.errors.append(f"{at}.{name}={numbers[name]} is negative")
        start, final = ({name: numbers[word + end] for word, name in names.items()} for end in ("_START", "_FINAL"))
        return Schedule(numbers["N"], numbers["K"], start, final)

    # ------------------------------------------------------------------ checks

    def table(self, given: object, at: str, known: tuple[str, ...] | None = None) -> Values:
        if not isinstance(given, Mapping):
            self.errors.append(f"{at} must hold named values, not {shortened(given)}")
            return {}
        for key in given:
            if known is not None and key not in known:
                self.errors.append(f"{at} has an unknown key {shortened(key)}; known are {', '.join(known)}")
        return dict(given)

    def weighted(self, given: object, at: str, known: tuple[str, ...], what: str) -> list[tuple[str, Values, float]]:
        """(where it stands, values, weight) of every entry of a mixture."""
        if not isinstance(given, list) or not given:
            self.errors.append(f"{at} must be a list of {what} with weights")
            return []
        tables = [(f"{at}[{i}]", self.table(one, f"{at}[{i}]", known)) for i, one in enumerate(given)]
        listed = [(where, one, self.number(one, "weight", where, 1.0, low=0.0) or 0.0) for where, one in tables]
        self.check_sum([weight for _, _, weight in listed], at)
        return listed

    def whole(self, values: Values, name: str, at: str) -> int | None:
        value = values.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < MOST:
            self.errors.append(f"{at}.{name}={shortened(value)} must be a whole number of at least 1, below 2**63")
            return 1
        return value

    def switch(self, values: Values, name: str, at: str, default: bool) -> bool:
        value = values.get(name, default)
        if not isinstance(value, bool):
            self.errors.append(f"{at}.{name}={shortened(value)} must be true or false")
        return bool(value)

    def text(self, values: Values, name: str, at: str, default: T) -> str | T:
        value = values.get(name)
        if value is None:
            return default
        if not isinstance(value, str):
            self.errors.append(f"{at}.{name}={shortened(value)} must be text")
            return default
        return value

    def number(
        self, values: Values, name: str, at: str, default: float | None, low: float = -math.inf, high: float = math.inf
    ) -> float | None:
        value = values.get(name, default)
        if value is None:
            return default
        if not is_number(value) or not low <= value <= high:
            bounds = "" if low == -math.inf else f" of at least {low:g}"
            bounds = bounds if high == math.inf else f" from {low:g} to {high:g}"
            self.errors.append(f"{at}.{name}={shortened(value)} must be a number{bounds}")
            return default
        return float(value)

    def check_policies(self, phase: Phase, at: str) -> None:
        """Stored opponents must have been made for the rink that the phase is played on."""
        for path, _ in phase.opponents.files:
            try:
                load_fitting(path, *WIDTHS[phase.keep_mode])
            except ShoalError as error:
                self.errors.append(f"{at}: {str(error).removesuffix('.')}")

    def check_sum(self, weights: list[float], at: str) -> None:
        if not sum(weights) > 0:
            self.errors.append(f"the weights of {at} sum to {sum(weights):g}; at least one must be above 0")
