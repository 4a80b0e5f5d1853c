"""From presets, files and arguments to one frozen configuration, and back to JSON that repeats the run.

Later sources win: defaults of the dataclasses, then the world's preset, then a config file, then what was given.
A key nobody knows is refused with the nearest one that exists.
"""

from __future__ import annotations

import dataclasses
import json
import tomllib
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shoal.errors import ConfigError, unknown_name
from shoal.registry import find_world
from shoal.training.algos import find_algo
from shoal.training.beside import world_part
from shoal.training.config import TrainConfig

Values = dict[str, Any]


def resolve_config(
    world: str | None, given: Mapping[str, Any], file: str | Path | None = None, preset_name: str | None = None
) -> TrainConfig:
    """The configuration of a run. `given` and the file are nested as config.json is; `algo` may be just a name."""
    from_file = _with_algo_table(_translated(read_config(file), file)) if file is not None else {}
    given = _with_algo_table(given)
    world = world or given.get("world") or from_file.get("world")
    if not world:
        raise ConfigError("No world was named. Say which, e.g. `shoal train cartpole`; `shoal envs` lists them.")
    algo = given["algo"].get("name") or from_file.get("algo", {}).get("name") or "ppo"
    values = preset(world, algo, preset_name)
    if from_file:
        same_agent = from_file["algo"].get("name", algo) == algo
        values = merge(values, from_file if same_agent else {**from_file, "algo": {}})
    values = merge(values, {**given, "world": world, "algo": {**given["algo"], "name": algo}})
    return config_from(values, str(file) if file else "the configuration")


def config_from(values: Mapping[str, Any], source: str) -> TrainConfig:
    """The `TrainConfig` that nested values describe; `ConfigError` for a key or a value that does not fit."""
    values = dict(values)
    table = dict(values.pop("algo", {}))
    algo = build(find_algo(table.pop("name", "ppo")).config_class(), table, source, "algo.")
    return build(TrainConfig, {**values, "algo": algo}, source)


def config_values(config: TrainConfig) -> Values:
    """What config.json holds: every field, with the agent's name among the agent's fields."""
    values = json.loads(json.dumps(dataclasses.asdict(config)))
    values["algo"] = {"name": config.algo.name, **values["algo"]}
    return values


def preset(world: str, algo: str, name: str | None = None) -> Values:
    """What the world's own `presets.PRESETS[world]` says under `name`, or under the agent's name if none is given."""
    known = _presets(world)
    if name is not None and name not in known:
        raise unknown_name(f"preset of {world}", name, known, f"`shoal train {world} --help`")
    return dict(known.get(name or algo, {}))


def preset_names(world: str) -> list[str]:
    """What `--preset` can be for this world."""
    return list(_presets(world))


def _presets(world: str) -> dict[str, Values]:
    found = find_world(world)
    presets = world_part(world, "presets", "PRESETS")
    return {} if presets is None or found is None else presets.get(found.name, {})


def read_config(path: str | Path) -> Values:
    """A JSON or TOML file of nested values."""
    path = Path(path)
    try:
        text = path.read_text()
        values = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except OSError as error:
        raise ConfigError(f"The config file {path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        kind = "TOML" if path.suffix == ".toml" else "JSON"
        raise ConfigError(f"The config file {path} is no valid {kind}: {error}.") from error
    if not isinstance(values, dict):
        raise ConfigError(f"The config file {path} holds a {type(values).__name__}; it must hold named values.")
    return values


def _translated(values: Values, file: str | Path) -> Values:
    """A curriculum file as settings: its world (hockey, unless it says otherwise) knows how."""
    if "curriculum" not in values:
        return values
    world = str(values.get("world", "hockey"))
    translate = world_part(world, "curriculum_settings", "settings_from")
    if translate is None:
        raise ConfigError(f"{file}: world={world!r} has no curricula.")
    return translate(values, Path(file))


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> Values:
    """`over` on top of `base`, nested tables merged key by key."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        merged[key] = merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def differences(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any, Any]]:
    """(dotted field, old value, new value) wherever two nested values differ."""
    found = []
    for key in sorted({*old, *new}):
        a, b = old.get(key), new.get(key)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            found += differences(a, b, f"{prefix}{key}.")
        elif a != b:
            found.append((f"{prefix}{key}", a, b))
    return found


def build(cls: type, values: Mapping[str, Any], source: str, prefix: str = "") -> Any:
    """An instance of the dataclass `cls` from values whose keys and types are checked."""
    hints = typing.get_type_hints(cls)
    known = [field.name for field in dataclasses.fields(cls)]
    for key in values:
        if key not in known:
            raise unknown_name(
                f"setting in {source}", prefix + key, [prefix + name for name in known], "`shoal train --help`"
            )
    fitted = {key: _fit(value, hints[key], f"{prefix}{key}", source) for key, value in values.items()}
    try:
        return cls(**fitted)
    except ConfigError as error:
        if not Path(source).is_file():
            raise
        raise ConfigError(f"{source}: {prefix}{error}") from error


def _fit(value: Any, hint: Any, name: str, source: str) -> Any:
    """`value` as `hint` wants it: JSON has no tuples, and writes 1 for 1.0."""
    kind, options = typing.get_origin(hint) or hint, typing.get_args(hint)
    if kind in (typing.Union, types.UnionType):
        if (value is None and type(None) in options) or (dataclasses.is_dataclass(value) and type(value) in options):
            return value
        return _fit(value, next(option for option in options if option is not type(None)), name, source)
    if kind is typing.Literal:
        if value in options:
            return value
        raise unknown_name(f"choice for {name} in {source},", str(value), map(str, options), "`shoal train --help`")
    if kind is tuple and isinstance(value, list | tuple):
        return tuple(_fit(item, options[0], name, source) for item in value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind is Any or (isinstance(value, kind) and not (kind is int and isinstance(value, bool))):
        return value
    wanted = getattr(kind, "__name__", str(kind))
    raise ConfigError(f"{name}={value!r} in {source} must be of type {wanted}, not {type(value).__name__}.")


def _with_algo_table(values: Mapping[str, Any]) -> Values:
    """`algo="ppo"` is short for `algo={"name": "ppo"}`."""
    algo = values.get("algo", {})
    if dataclasses.is_dataclass(algo) and not isinstance(algo, type):
        algo = {"name": algo.name, **dataclasses.asdict(algo)}  # type: ignore[attr-defined]
    return {**values, "algo": {"name": algo} if isinstance(algo, str) else dict(algo)}
