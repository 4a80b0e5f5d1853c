"""Names of worlds, and `make`: from a name, a class or a factory to a batch. Nothing is imported until it is made."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.errors import ConfigError, unknown_name

if TYPE_CHECKING:
    from shoal.vector.batch import Batch


RLLIBS_RUNNER = "ray.rllib.env.single_agent_env_runner"


@dataclass(frozen=True)
class World:
    """One entry of the registry."""

    name: str
    """What `shoal.make` and the command line call it."""
    gym_id: str
    """What `gymnasium.make` and `gymnasium.make_vec` call it."""
    entry: str
    """`module:attribute`: a `Kernel` class, or a function `(num_envs, **options) -> Batch`."""
    summary: str
    """One line for `shoal envs`."""


_CLASSIC = "shoal.worlds.classic"

WORLDS = {
    world.name: world
    for world in (
        World("cartpole", "shoal/CartPole-v1", f"{_CLASSIC}.cartpole:CartPole", "balance a pole on a cart"),
        World(
            "pendulum", "shoal/Pendulum-v1", f"{_CLASSIC}.pendulum:Pendulum", "swing a pendulum up, continuous torque"
        ),
        World("acrobot", "shoal/Acrobot-v1", f"{_CLASSIC}.acrobot:Acrobot", "swing a two-link arm above the bar"),
        World(
            "mountaincar", "shoal/MountainCar-v0", f"{_CLASSIC}.mountaincar:MountainCar", "rock a car out of a valley"
        ),
        World(
            "mountaincar-continuous",
            "shoal/MountainCarContinuous-v0",
            f"{_CLASSIC}.mountaincar:MountainCarContinuous",
            "the same with a continuous engine",
        ),
        World("cage2", "shoal/CAGE2-v0", "shoal.worlds.cage2.world:make_cage2", "defend a network, CAGE Challenge 2"),
        World(
            "dvrp", "shoal/DVRP-v0", "shoal.worlds.dvrp.config:make", "negotiate time windows for a dial-a-ride fleet"
        ),
        World("hockey", "shoal/Hockey-v0", "shoal.worlds.hockey.batch:hockey", "two-player laser hockey against bots"),
        World("kg", "shoal/KG-v0", "shoal.worlds.kg.world:make_kg", "prove queries over a knowledge graph"),
    )
}


def find_world(name: str) -> World | None:
    """The world called `name` (its short name or its Gymnasium id, in any case), or None."""
    wanted = name.lower().replace("_", "-")
    for world in WORLDS.values():
        if wanted in (world.name, world.gym_id.lower()):
            return world
    return None


def make(env: Any, num_envs: int = 1, *, backend: str = "auto", **options: Any) -> Batch:
    """A batch of `num_envs` lanes of `env`.

    Args:
        env: a world's name ("cartpole"), any Gymnasium id ("LunarLander-v3"), "package.module:Name", a `Kernel`, a
            `Batch` or `gymnasium.Env` class, or a factory of environments.
        backend: "auto"; or "serial" / "workers" to say how a `gymnasium.Env` is run.
        options: what the world or the backend takes, e.g. `autoreset_mode`, `copy`, `num_threads`, `num_workers`.
    """
    if backend not in ("auto", "serial", "workers"):
        raise ConfigError(f"backend={backend!r} is unknown. Use 'auto', 'serial' or 'workers'.")
    entry = resolve(env) if isinstance(env, str) else env
    if RLLIBS_RUNNER in sys.modules:
        _refuse_same_step_under_rllib(options)
    from shoal.vector.kernel import Kernel, KernelBatch

    if isinstance(entry, Kernel) or (isinstance(entry, type) and issubclass(entry, Kernel)):
        return _make_kernel(entry, num_envs, KernelBatch, options)
    from shoal.vector.batch import Batch

    if (isinstance(env, str) and find_world(env) is not None) or (isinstance(entry, type) and issubclass(entry, Batch)):
        return entry(num_envs, **options)
    return _make_from_env(entry, num_envs, backend, options)


def _refuse_same_step_under_rllib(options: dict[str, Any]) -> None:
    """RLlib never looks at the autoreset mode, and takes the step after an end for the reset: with our default every
    last observation would be wrong and a step of every episode lost, without a word. So its runner is not served."""
    frame = sys._getframe(2)
    while frame is not None:
        caller = frame.f_globals.get("__name__")
        if caller == "shoal.bridges.rllib.envs":
            return  # which knows what it does
        if caller == RLLIBS_RUNNER:
            break
        frame = frame.f_back  # type: ignore[assignment]
    else:
        return
    mode = str(getattr(options.get("autoreset_mode", "same_step"), "value", options.get("autoreset_mode", "same_step")))
    if mode.replace("_", "").lower() != "nextstep":
        raise ConfigError(
            "RLlib would corrupt every end of an episode of lanes that begin anew within the same step. "
            "Use shoal.bridges.rllib.ppo_config, or make the lanes with autoreset_mode='next_step'."
        )


def resolve(name: str) -> Any:
    """What a name stands for: a world's entry, the object at "package.module:Name", or a Gymnasium id as it is."""
    world = find_world(name)
    if world is not None:
        return load(world.entry)
    if ":" in name:
        return load(name)
    import gymnasium

    if name in gymnasium.registry:
        return name
    known = [*WORLDS, *gymnasium.registry]
    raise unknown_name("environment", name, known, "`shoal envs`")


def load(path: str) -> Any:
    """The object at "package.module:Name"; the current folder counts as a place to import from."""
    module_name, _, attribute = path.partition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))  # last: a queue.py lying there must not stand in for Python's own
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and module_name.startswith(error.name):
            raise ConfigError(f"There is no module {module_name!r} to load {path!r} from. Is it on the path?") from None
        raise
    if not hasattr(module, attribute):
        names = [name for name in vars(module) if not name.startswith("_")]
        raise unknown_name(f"name in {module_name}", attribute, names, f"`dir({module_name})`")
    return getattr(module, attribute)


def _make_kernel(kernel: Any, num_envs: int, batch: Any, options: dict[str, Any]) -> Batch:
    """Split options into those of the batch and those of the kernel's parameters."""
    own = {"lanes", "compiled", "num_threads", "autoreset_mode", "copy"}
    of_batch = {name: value for name, value in options.items() if name in own}
    params = {name: value for name, value in options.items() if name not in own}
    if isinstance(kernel, type):
        kernel = kernel(**params)
    elif params:
        raise ConfigError(f"Give {sorted(params)} to the kernel itself: it is already made.")
    return batch(kernel, num_envs, **of_batch)


def _make_from_env(env: Any, num_envs: int, backend: str, options: dict[str, Any]) -> Batch:
    if backend == "serial" or (backend == "auto" and num_envs == 1):
        from shoal.vector.serial import SerialBatch

        return SerialBatch(env, num_envs, **options)
    from shoal.vector.workers import WorkerBatch

    return WorkerBatch(env, num_envs, **options)


# ---------------------------------------------------------------------- Gymnasium's registry


def register_in_gymnasium() -> None:
    """Make every world known to `gymnasium.make` and `gymnasium.make_vec`."""
    import gymnasium

    for world in WORLDS.values():
        if world.gym_id not in gymnasium.registry:
            gymnasium.register(
                world.gym_id,
                entry_point="shoal.vector.single:SingleLane",
                vector_entry_point="shoal.registry:make",
                kwargs={"env": world.name},
                disable_env_checker=True,
                order_enforce=False,
            )
