"""Curriculum files: phases of training in the field names of the original system, checked as a whole.

`read` turns the parsed file into phases or raises one `ConfigError` that lists everything wrong with it.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.errors import ConfigError
from shoal.worlds.hockey.constants import MODE_NAMES
from shoal.worlds.hockey.pool import Mixture, load_files

Values = Mapping[str, Any]
_OPPONENTS = ("none", "basic_weak", "basic_strong", "self_play", "weighted_mixture", "archive", "run_checkpoints")
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
_MIXTURE_OF = {"pfsp": "pool", "random": "pool", "skill": "pool", "baseline": "bots"}


@dataclass(frozen=True)
class Schedule:
    """Numbers that are held for `hold` finished episodes of a phase, then move linearly over `over` more."""

    hold: float
    over: float
    start: dict[str, float]
    final: dict[str, float]

    def at(self, episodes: float) -> dict[str, float]:
        """The numbers after so many episodes."""
        share = min(
            max((episodes - self.hold) / self.over if self.over > 0 else float(episodes >= self.hold), 0.0), 1.0
        )
        return {name: value + (self.final[name] - value) * share for name, value in self.start.items()}


@dataclass(frozen=True)
class Phase:
    """One phase. It ends after so many finished episodes or environment steps, or at a share of recent games won."""

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


def load(curriculum: Any) -> tuple[Values, str, Path]:
    """(content, name, folder) of a curriculum that is given as its content or as the name of a JSON or TOML file."""
    if isinstance(curriculum, Mapping):
        return curriculum, "the curriculum", Path()
    path = Path(str(curriculum))
    try:
        text = path.read_text()
        return (tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)), str(path), path.parent
    except OSError as error:
        raise ConfigError(f"The curriculum {path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise ConfigError(f"The curriculum {path} is no valid {path.suffix[1:].upper()}: {error}.") from error


def endless_phase(name: str, opponents: Mixture) -> Phase:
    """A phase of the whole game that ends with the run."""
    return Phase(name, None, None, None, (("NORMAL", 1.0),), True, opponents, None, None, clear_buffer=False)


def read(values: Values, source: str, folder: Path = Path()) -> list[Phase]:
    """The phases of `values["curriculum"]`; paths in it may be relative to `folder`."""
    phases, errors = examine(values, folder)
    refuse(errors, source)
    return phases


def examine(values: Values, folder: Path) -> tuple[list[Phase], list[str]]:
    """As `read`, but errors are returned; if there are any, the phases are not to be used."""
    found = _Reader(folder)
    return found.phases(values.get("curriculum")), found.errors


def refuse(errors: list[str], source: str) -> None:
    """`ConfigError` that lists all errors, if there are any."""
    if errors:
        raise ConfigError(f"{source} has {len(errors)} error(s): " + "; ".join(errors) + ".")


class _Reader:
    """Goes through a whole file and gathers what is wrong with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.errors: list[str] = []

    def phases(self, curriculum: Any) -> list[Phase]:
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

    def phase(self, values: Any, at: str) -> Phase:
        values = self.table(values, at, _PHASE)
        lengths = {name: self.whole(values, name, at) for name in ("episodes", "steps")}
        win_rate = self.number(values, "win_rate", at, None, low=0.0, high=1.0)
        if all(values.get(name) is None for name in ("episodes", "steps", "win_rate")):
            self.errors.append(f"{at} needs episodes, steps or win_rate to know when it ends")
        environment = self.table(values.get("environment", {}), f"{at}.environment", ("mode", "mixture", "keep_mode"))
        bonus = self.schedule(values.get("reward_bonus"), BONUS, f"{at}.reward_bonus", ("WIN_BONUS", "WIN_DISCOUNT"))
        clear = values.get("clear_buffer", True)
        if not isinstance(clear, bool):
            self.errors.append(f"{at}.clear_buffer must be true or false")
        return Phase(
            str(values.get("name", at)),
            lengths["episodes"],
            lengths["steps"],
            win_rate,
            self.modes(environment, f"{at}.environment"),
            bool(environment.get("keep_mode", True)),
            self.opponents(values.get("opponent", {"type": "none"}), f"{at}.opponent"),
            self.schedule(
                values.get("reward_shaping"), SHAPING, f"{at}.reward_shaping",
                ("CLOSENESS", "TOUCH", "DIRECTION", "OUTCOME"),
            ),
            bonus,
            bool(clear),
        )  # fmt: skip

    # ------------------------------------------------------------------ parts of a phase

    def modes(self, environment: Values, at: str) -> tuple[tuple[str, float], ...]:
        mixture = environment.get("mixture")
        if mixture is None:
            return ((self.mode(environment.get("mode", "NORMAL"), f"{at}.mode"), 1.0),)
        if not isinstance(mixture, list) or not mixture:
            self.errors.append(f"{at}.mixture must be a list of modes with weights")
            return (("NORMAL", 1.0),)
        modes = []
        for i, one in enumerate(mixture):
            one = self.table(one, f"{at}.mixture[{i}]", ("mode", "weight"))
            weight = self.number(one, "weight", f"{at}.mixture[{i}]", 1.0, low=0.0)
            modes.append((self.mode(one.get("mode"), f"{at}.mixture[{i}].mode"), weight or 0.0))
        self.check_sum([weight for _, weight in modes], f"{at}.mixture")
        return tuple(modes)

    def mode(self, name: Any, at: str) -> str:
        if name not in MODE_NAMES:
            self.errors.append(f"{at}={name!r} is no mode: use {', '.join(MODE_NAMES)}")
            return "NORMAL"
        return str(name)

    def opponents(self, values: Any, at: str) -> Mixture:
        values = self.table(values, at, _OPPONENT)
        kind = values.get("type")
        if kind not in _OPPONENTS:
            self.errors.append(f"{at}.type={kind!r} is unknown: use {', '.join(_OPPONENTS)}")
            return Mixture(nobody=1.0)
        if kind != "weighted_mixture":
            return Mixture(**self.simple(values, str(kind), 1.0, at))
        listed = values.get("opponents")
        if not isinstance(listed, list) or not listed:
            self.errors.append(f"{at}.opponents must be a list of opponents with weights")
            return Mixture(nobody=1.0)
        shares: dict[str, Any] = {}
        weights = []
        for i, one in enumerate(listed):
            one = self.table(one, f"{at}.opponents[{i}]", _OPPONENT)
            weight = self.number(one, "weight", f"{at}.opponents[{i}]", 1.0, low=0.0) or 0.0
            weights.append(weight)
            if one.get("type") not in _OPPONENTS or one.get("type") == "weighted_mixture":
                self.errors.append(f"{at}.opponents[{i}].type={one.get('type')!r} cannot be part of a mixture")
                continue
            for name, share in self.simple(one, str(one["type"]), weight, f"{at}.opponents[{i}]").items():
                shares[name] = share if isinstance(share, str) else shares.get(name, type(share)()) + share
        self.check_sum(weights, f"{at}.opponents")
        return Mixture(**shares)

    def simple(self, values: Values, kind: str, weight: float, at: str) -> dict[str, Any]:
        """Shares of a mixture that one opponent stands for."""
        strategy = values.get("strategy", "prioritised")
        if strategy not in ("latest", "uniform", "prioritised"):
            self.errors.append(f"{at}.strategy={strategy!r} is unknown: use latest, uniform or prioritised")
        if kind in ("none", "basic_weak", "basic_strong"):
            return {{"none": "nobody", "basic_weak": "weak", "basic_strong": "strong"}[kind]: weight}
        if kind == "run_checkpoints":
            return {"pool": weight, "strategy": "uniform"}
        if kind == "archive":
            return self.archive(values, weight, at)
        checkpoint = values.get("checkpoint")
        if checkpoint is None:
            return {"pool": weight, "strategy": strategy} if "strategy" in values else {"learner": weight}
        if checkpoint == "latest":
            return {"pool": weight, "strategy": "latest"}
        return {"files": ((str(self.folder / str(checkpoint)), weight),)}

    def archive(self, values: Values, weight: float, at: str) -> dict[str, Any]:
        default = {"pfsp": 0.5, "random": 0.3, "baseline": 0.2}
        shares = values.get("distribution") or default
        if not isinstance(shares, Mapping) or not all(isinstance(s, int | float) and s >= 0 for s in shares.values()):
            self.errors.append(f"{at}.distribution must give a share to every strategy")
            shares = default
        self.check_sum(list(shares.values()), f"{at}.distribution")
        total = sum(shares.values()) or 1.0
        bots = weight * sum(s for name, s in shares.items() if _MIXTURE_OF.get(name, "pool") == "bots") / total
        return {"pool": weight - bots, "weak": bots / 2, "strong": bots / 2, "strategy": "prioritised"}

    def schedule(self, values: Any, defaults: dict[str, Any], at: str, names: tuple[str, ...]) -> Schedule | None:
        if values is None:
            return None
        values = self.table(values, at, tuple(defaults))
        numbers = {name: self.number(values, name, at, default) for name, default in defaults.items()}
        for name in ("N", "K"):
            if (numbers[name] or 0) < 0:
                self.errors.append(f"{at}.{name}={numbers[name]} is negative")
        start = {name.lower(): float(numbers[f"{name}_START"] or 0.0) for name in names}
        final = {name.lower(): float(numbers[f"{name}_FINAL"] or 0.0) for name in names}
        return Schedule(float(numbers["N"] or 0), float(numbers["K"] or 0), start, final)

    # ------------------------------------------------------------------ checks

    def table(self, values: Any, at: str, known: tuple[str, ...]) -> Values:
        if not isinstance(values, Mapping):
            self.errors.append(f"{at} must hold named values, not {type(values).__name__}")
            return {}
        for key in values:
            if key not in known:
                self.errors.append(f"{at} has an unknown key {key!r}; known are {', '.join(known)}")
        return values

    def whole(self, values: Values, name: str, at: str) -> int | None:
        value = values.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            self.errors.append(f"{at}.{name}={value!r} must be a whole number of at least 1")
            return 1
        return value

    def number(
        self, values: Values, name: str, at: str, default: float | None, low: float | None = None,
        high: float | None = None,
    ) -> float | None:  # fmt: skip
        value = values.get(name, default)
        if value is None:
            return default
        wrong = isinstance(value, bool) or not isinstance(value, int | float)
        if wrong or (low is not None and value < low) or (high is not None and value > high):
            bounds = "" if low is None else f" of at least {low:g}" if high is None else f" from {low:g} to {high:g}"
            self.errors.append(f"{at}.{name}={value!r} must be a number{bounds}")
            return default
        return float(value)

    def check_policies(self, phase: Phase, at: str) -> None:
        """Stored opponents must have been made for the rink that the phase is played on."""
        widths = (18, 4) if phase.keep_mode else (16, 3)
        for path, _ in phase.opponents.files:
            try:
                load_files([path], *widths)
            except ConfigError as error:
                self.errors.append(f"{at}: {str(error).removesuffix('.')}")

    def check_sum(self, weights: list[float], at: str) -> None:
        if not sum(weights) > 0:
            self.errors.append(f"the weights of {at} sum to {sum(weights):g}; at least one must be above 0")
