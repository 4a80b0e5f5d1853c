"""Gymnasium ids: finding one, and importing the package that registers it.

Gymnasium knows an id only after somebody has imported its package. The packages that many people use are imported when
one of their ids is asked for; any other is named, as `package:Id-v0` or by `--import package`.
"""

from __future__ import annotations

import contextlib
import importlib
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from shoal.errors import ConfigError, UnknownName, unknown_name

if TYPE_CHECKING:  # naming things must not load Gymnasium
    from gymnasium.envs.registration import EnvSpec


class Package(NamedTuple):
    """A package that registers environments."""

    ids: str
    """What its ids begin with, a regular expression."""
    module: str
    pip: str


PACKAGES = (
    Package(r"ALE/", "ale_py", "ale-py"),
    Package(r"(MiniGrid|BabyAI)-", "minigrid", "minigrid"),
    Package(
        r"(highway|merge|roundabout|parking|intersection|racetrack|exit|two-way|u-turn|lane-keeping)-",
        "highway_env",
        "highway-env",
    ),
    Package(r"(Fetch|Hand|Adroit|FrankaKitchen|(Ant|Point)Maze)", "gymnasium_robotics", "gymnasium-robotics"),
    Package(r"MiniWorld-", "miniworld", "miniworld"),
    Package(r"Meta-World/", "metaworld", "metaworld"),
    Package(r"(dm_control|bsuite|OpenSpiel)/", "shimmy", "shimmy"),
    Package(r"PyFlyt/", "PyFlyt.gym_envs", "PyFlyt"),
    Package(r"FlappyBird-", "flappy_bird_gymnasium", "flappy-bird-gymnasium"),
)
_registered_by: dict[str, str] = {}  # ids, and the module that somebody asked to import for them


def find_spec(env_id: str) -> EnvSpec:
    """The registered spec of a Gymnasium id ("CartPole-v1", "my_module:MyEnv-v0"), or `UnknownName`."""
    import gymnasium as gym

    module, _, name = env_id.rpartition(":")
    if module:
        import_module(module, env_id)
    elif not is_gym_id(name):
        raise unknown_id(name, gym.registry, "`shoal envs --all`")
    try:
        spec = gym.spec(name)
    except gym.error.Error:
        spec = None
    if spec is None:
        raise unknown_id(env_id, gym.registry, "`shoal envs --all`")
    return spec


def is_gym_id(name: str) -> bool:
    """Whether Gymnasium knows `name`, once the well-known package that it would come from is imported."""
    import gymnasium as gym

    if name not in gym.registry:
        for package in PACKAGES:
            if re.match(package.ids, name) and re.search(r"-v\d+$", name):
                _import_known(package, name)
    return name in gym.registry


def unknown_id(name: str, known: Iterable[str], listed_by: str) -> UnknownName:
    """`UnknownName` that also says what to do if a package is yet to register `name`."""
    error = unknown_name("environment", name, known, listed_by)
    if re.search(r"-v\d+$", name):
        error.args = (f"{error} If a package of yours registers it, name that: --import PACKAGE, or PACKAGE:{name}.",)
    return error


def register_from(module: str) -> None:
    """Import `module`, and remember which ids it registers, so that a run can write down where they come from."""
    import gymnasium as gym

    before = {*gym.registry}
    import_module(module, f"--import {module}")
    _registered_by.update(dict.fromkeys({*gym.registry} - before, module))


def full_id(name: str) -> str:
    """`name` as another process finds it: with the module that was imported for it, if there was one."""
    return f"{_registered_by[name]}:{name}" if name in _registered_by else name


def import_module(module: str, wanted: str) -> ModuleType:
    """Import a module that `wanted` names; the current folder counts as a place to import from."""
    if not all(part.isidentifier() for part in module.split(".")):
        raise ConfigError(f"{wanted!r} does not name an environment: before the colon there must be a module.")
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))  # last: a queue.py lying there must not stand in for Python's own
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if not (error.name and module.startswith(error.name)):
            raise
        known = next((package for package in PACKAGES if package.module == module), None)
        if known is not None:
            raise _not_installed(known, wanted) from None
        raise ConfigError(f"There is no module {module!r} to load {wanted!r} from. Is it on the path?") from None


def _import_known(package: Package, name: str) -> None:
    try:
        importlib.import_module(package.module)
    except ModuleNotFoundError as error:
        if error.name and package.module.startswith(error.name):
            raise _not_installed(package, name) from None
        raise ConfigError(
            f"{name!r} comes from the package {package.pip}, which needs another that is not installed: {error.name}."
        ) from error


def _not_installed(package: Package, wanted: str) -> ConfigError:
    return ConfigError(
        f"{wanted!r} comes from the package {package.pip}, which is not installed: pip install {package.pip}."
    )


def import_packages(text: str | None) -> None:
    """Import the well-known packages that are installed: all of them, or those that `text` may mean."""
    for package in PACKAGES:
        if text is None or text.lower() in f"{package.pip} {package.module} {package.ids}".lower():
            with contextlib.suppress(ImportError):
                importlib.import_module(package.module)
