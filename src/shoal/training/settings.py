"""From presets, files and arguments to one frozen configuration, and back to JSON that repeats the run.

Later sources win: defaults of the dataclasses, then the world's preset, then a config file, then what the world's
shorthands stand for, then what was given. A name nobody knows is refused with the nearest one that exists.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shoal.errors import ConfigError, ShoalError, naming, unknown_name
from shoal.options import NoOptions, OpenOptions, Values, as_values, build, fit, hints_of
from shoal.reading import parse_json, parse_toml, shortened
from shoal.registry import as_world, worlds
from shoal.training.config import ALGOS, TrainConfig, find_algo
from shoal.training.lab import Lab, lab_of
from shoal.world import World
from shoal.wrappers import Wrappers

SHORTHANDS = "shorthands"
"""Where settings in a world's own counting wait to be translated."""
_OLD_NAMES = {
    ("algo", "compiled"): ("algo", "fast"),
    ("env", "num_threads"): ("num_threads",),
    ("env", "compiled"): ("compiled",),
    ("env", "device"): ("env", "engine_device"),
}
"""Names of earlier versions, for files that were written by them."""


def resolve_config(
    world: World | str,
    given: Mapping[str, Any],
    from_file: Values | None = None,
    preset: str | None = None,
    source: str = "",
) -> TrainConfig[Any, Any]:
    """The configuration of a run. `given` and the file are nested as config.json is; `algo` may be just a name.

    `source` is what the file is called in messages.
    """
    world = as_world(world)
    lab = lab_of(world)
    from_file = check_tables(with_algo_table(from_file or {}), source)
    given = check_tables(with_algo_table(given), "")
    algo = given["algo"].get("name") or from_file["algo"].get("name") or "ppo"
    if from_file["algo"].get("name", algo) != algo:
        from_file = {**from_file, "algo": {}}
    given = {**given, "world": world.reference, "algo": {**given["algo"], "name": algo}}
    base = merge(_preset(world, lab, algo, preset), from_file)
    values = merge(merge(base, translated(world, lab, given, base)), given)
    return config_from(merge(ppo_defaults(values), values), world, source)


LANES, ROLLOUT, SHORTEST, UPDATES = 8, 2_048, 32, 16
LR_WITH_MEMORY = 1e-3
"""Few minibatches, of whole lanes, must be enough to learn what is worth remembering."""


def ppo_defaults(values: Mapping[str, Any]) -> Values:
    """What PPO has where neither a person nor a preset says it: few lanes, a long way each; with a memory its rate.

    A rollout has `ROLLOUT` steps of all lanes, fewer where the run would otherwise have less than `UPDATES` rollouts,
    but at least `SHORTEST` of each lane. Lanes begin their episodes together, so that short rollouts would show
    all of them at the same point of their way. A memory is unrolled step by step, which wants many lanes.
    """

    def whole(name: str, default: int) -> int:
        value = values.get(name, default)
        return value if isinstance(value, int) and value > 0 else default  # what cannot be is refused later

    algo, num_envs = values.get("algo", {}), whole("num_envs", LANES * whole("runners", 1))
    if algo.get("name") != "ppo":
        return {}
    if algo.get("memory", "none") != "none":
        return {"algo": {"lr": LR_WITH_MEMORY}}
    rollout = min(ROLLOUT, whole("total_steps", TrainConfig.total_steps) // UPDATES)
    steps = 1 << max(0, (rollout // num_envs).bit_length() - 1)  # a power of two can be cut into parts
    return {"num_envs": num_envs, "algo": {"num_steps": max(SHORTEST, steps)}}


def plan_config(
    world: Any, settings: Values, file: str | Path | None = None, preset: str | None = None
) -> tuple[World, TrainConfig[Any, Any]]:
    """The world and the configuration of a new run: `world` is whatever `shoal.make` takes, or the file names it."""
    named = as_world(world) if world is not None else None
    from_file = {} if file is None else read_settings(file, named)
    if named is None and "world" not in from_file:
        where = "" if file is None else f" {file} does not say which either."
        raise ConfigError(
            f"No world was named. Say which, e.g. `shoal train cartpole`; `shoal envs` lists them.{where}"
        )
    source = "" if file is None else str(file)
    chosen = named or world_in(from_file, source)
    return chosen, resolve_config(chosen, sorted_settings(chosen, settings), from_file, preset, source)


def translated(world: World, lab: Lab, asked: Values, base: Values) -> Values:
    """What follows from `asked`, whose shorthands are taken out, where `base` holds otherwise."""
    values = asked.pop(SHORTHANDS, {})
    if lab.shorthands is None:
        return {}
    options = build(lab.shorthands.options, values, f"of {world.name}", f"`shoal train {world.name} --help`")
    return lab.shorthands.translate(options, asked, base)


def config_from(values: Mapping[str, Any], world: World | None = None, source: str = "") -> TrainConfig[Any, Any]:
    """The `TrainConfig` that nested values describe; `source` is the file that they come from.

    `ConfigError` for a name or a value that does not fit.
    """
    values = check_tables(modernised(values), source)
    world = world_in(values, source) if world is None else world
    help_ = f"`shoal train {world.name} --help`"
    where = f"in {source}" if source else f"of {world.name}"
    table = dict(values.pop("algo", {}))
    extra, of_lab = values.pop("extra", {}), lab_of(world).options
    with naming(source):
        if extra and of_lab is NoOptions:
            raise ConfigError(f"{world.name} has no training options of its own. Leave {', '.join(sorted(extra))} out.")
        parts = {
            "algo": build(find_algo(table.pop("name", "ppo")).config_class(), table, where, help_, "algo."),
            "env": build(world.options, values.pop("env", {}), where, help_),
            "extra": build(of_lab, extra, where, help_),
            "wrappers": build(Wrappers, values.pop("wrappers", {}), where, help_),
        }
        return build(TrainConfig, {**values, "world": values.get("world", world.reference), **parts}, where, help_)


def world_in(values: Mapping[str, Any], source: str) -> World:
    """The world that settings from a file name."""
    with naming(source):
        return as_world(fit(values.get("world"), str, "world"))


def check_tables(values: Values, source: str) -> Values:
    """`values` if those that must be tables are; what is in them is checked where their options are built."""
    with naming(source):
        for name in ("algo", "env", "extra", "wrappers"):
            if not isinstance(values.get(name, {}), Mapping):
                raise ConfigError(f"Invalid value for {name}: {shortened(values[name])} is not a table.")
        find_algo(fit(values.get("algo", {}).get("name", "ppo"), str, "algo.name"))
    return values


def config_values(config: TrainConfig) -> Values:
    """What config.json holds: every field, with the agent's name among the agent's fields."""
    values = as_values(config)
    values["algo"] = {"name": config.algo.name, **values["algo"]}
    try:
        return json.loads(json.dumps(values, default=_as_text))
    except TypeError as error:
        raise ConfigError(
            f"The configuration cannot be written down, so the run could not be repeated: {error}. Name such things by "
            "their path or import path."
        ) from error


MAY_CHANGE = ("total_steps", "ray_address")
"""What may be given anew when a run is resumed."""


def refuse_changes(folder: Path, saved: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """`ConfigError` where what is `wanted` differs from what the run or experiment in `folder` was started with."""
    for name, old, new in differences(saved, wanted):
        if name not in MAY_CHANGE:
            raise ConfigError(
                f"{folder} was started with {name}={old!r}, not {new!r}, and a resumed run continues as it was. "
                f"Leave {name} out, or start anew with --config {folder / 'config.json'}."
            )


def _as_text(value: object) -> str:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"it holds a {type(value).__name__}")


def sorted_settings(world: World, settings: Mapping[str, Any]) -> Values:
    """Settings by name alone, as flags have them, put where config.json has them."""
    lab, nested = lab_of(world), dict[str, Any]()
    places = [(TrainConfig, ()), (lab.options, ("extra",)), (world.options, ("env",)), (Wrappers, ("wrappers",))]
    if lab.shorthands is not None:
        places.insert(1, (lab.shorthands.options, (SHORTHANDS,)))
    for name, value in settings.items():
        if name == SHORTHANDS:  # they are sorted already
            nested = merge(nested, {name: value})
            continue
        place = next((path for cls, path in places if name in hints_of(cls)), None)
        if place is None and world.options is OpenOptions:
            place = ("env",)
        if place is None:
            known = [known for cls, _ in places for known in hints_of(cls)] + _agents_settings(settings.get("algo"))
            listed_by = f"`shoal train {world.name} --help`"
            raise unknown_name("setting", name, [*known, *ARGUMENTS], listed_by, f"of {world.name}")
        nested = merge(nested, {name: value} if not place else {place[0]: {name: value}})
    return nested


ARGUMENTS = (
    "config", "hooks", "network", "preset", "processes", "quiet", "resume", "run_name", "runs_dir", "seeds", "track",
    "trust",
)  # fmt: skip
"""What `shoal.train` takes besides settings."""


def _agents_settings(algo: object) -> list[str]:
    """Names of the settings of the agent that `algo` (its name, or a table) asks for, as flags have them."""
    name = algo.get("name") if isinstance(algo, Mapping) else algo
    chosen = ALGOS.get(str(name), ALGOS["ppo"])
    return [f"algo.{field}" for field in hints_of(chosen.config_class())]


def _preset(world: World, lab: Lab, algo: str, name: str | None = None) -> Values:
    """What the world's preset says: the one named, or else the one for the agent."""
    if name is not None and name not in lab.presets:
        raise unknown_name("preset", name, lab.presets, f"`shoal train {world.name} --help`", f"of {world.name}")
    chosen = lab.presets.get(name or algo)
    return {} if chosen is None else dict(chosen.settings)


# ---------------------------------------------------------------------- files


def read_settings(path: str | Path, world: World | None = None) -> Values:
    """The settings in a JSON or TOML file; a file with a curriculum is put into settings by the world's lab."""
    values = read_config(path)
    if "curriculum" not in values:
        return values
    if world is None and "world" in values:
        world = world_in(values, str(path))
    candidates = [each for each in worlds().values() if not isinstance(each, ShoalError)] if world is None else [world]
    readers = (reader for each in candidates if (reader := lab_of(each).read_curriculum) is not None)
    reader = next(readers, None)
    if reader is None:
        raise ConfigError(f"{path}: no curricula can be read for {world.name if world else 'any world'}.")
    return reader(values, Path(path))


def read_config(path: str | Path) -> Values:
    """A JSON or TOML file of nested values."""
    path = Path(path)
    try:
        content = path.read_bytes()
        values = parse_toml(content) if path.suffix == ".toml" else parse_json(content)
    except OSError as error:
        raise ConfigError(f"The config file {path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        kind = "TOML" if path.suffix == ".toml" else "JSON"
        raise ConfigError(f"The config file {path} is not valid {kind}: {error}.") from error
    if not isinstance(values, dict):
        raise ConfigError(f"The config file {path} must hold named values, not {shortened(values)}.")
    return values


def modernised(values: Mapping[str, Any]) -> Values:
    """`values` with the names of earlier versions replaced by those of today."""
    modern = {key: dict(value) if isinstance(value, Mapping) else value for key, value in values.items()}
    for (table, old), new in _OLD_NAMES.items():
        if isinstance(modern.get(table), dict) and old in modern[table]:
            value = modern[table].pop(old)
            (modern[new[0]] if len(new) > 1 else modern).setdefault(new[-1], value)
    own_network = modern.pop("network", None)  # once beside the agent's, which named standard ones alone
    return modern if own_network is None else merge(with_algo_table(modern), {"algo": {"network": own_network}})


# ---------------------------------------------------------------------- nested values


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> Values:
    """`over` on top of `base`, nested tables merged key by key."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        merged[key] = merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def differences(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any, Any]]:
    """(dotted field, old value, new value) wherever two nested values differ."""
    changes = []
    for key in sorted({*old, *new}):
        a, b = old.get(key), new.get(key)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            changes += differences(a, b, f"{prefix}{key}.")
        elif a != b:
            changes.append((f"{prefix}{key}", a, b))
    return changes


def with_algo_table(values: Mapping[str, Any]) -> Values:
    """`algo="ppo"` is short for `algo={"name": "ppo"}`."""
    algo = values.get("algo", {})
    if dataclasses.is_dataclass(algo) and not isinstance(algo, type):
        algo = {"name": algo.name, **dataclasses.asdict(algo)}  # type: ignore[attr-defined]
    return {**values, "algo": {"name": algo} if isinstance(algo, str) else algo}
