"""Names of worlds, and `make`: from a name, a class or a factory to a batch. Nothing heavy is imported before that.

Whatever is handed over becomes a `World` first (`as_world`): one of ours, an installed one (entry-point group
`shoal.worlds`), `package.module:WORLD`, or a door made on the spot for a plain kernel, environment, batch or factory.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, make_dataclass, replace
from functools import cache, partial
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Literal

from shoal.errors import ConfigError, ShoalError, unknown_name
from shoal.options import Count, NoOptions, Number, O, OpenOptions
from shoal.vector.lanes.gym_ids import full_id, import_module, is_gym_id, unknown_id
from shoal.world import BatchOptions, World, options_of, split_options
from shoal.wrappers import Wrappers, split_wrappers

if TYPE_CHECKING:
    from shoal.vector.batch import Batch
    from shoal.vector.kernel import Kernel
    from shoal.vector.single import SingleLane

GROUP = "shoal.worlds"
"""The entry-point group in which an installed package names its worlds."""
_CLASSIC = "shoal.worlds.classic.world"
_MINATAR = "shoal.worlds.minatar.world"
UNNAMED = "python:"
"""How a world is written down that was given as an object and has no name to import."""
OURS = {
    "cartpole": f"{_CLASSIC}:CARTPOLE",
    "pendulum": f"{_CLASSIC}:PENDULUM",
    "acrobot": f"{_CLASSIC}:ACROBOT",
    "mountaincar": f"{_CLASSIC}:MOUNTAINCAR",
    "mountaincar-continuous": f"{_CLASSIC}:MOUNTAINCAR_CONTINUOUS",
    "cage2": "shoal.worlds.cage2.world:WORLD",
    "connect4": "shoal.worlds.connect4.world:WORLD",
    "dvrp": "shoal.worlds.dvrp.world:WORLD",
    "hockey": "shoal.worlds.hockey.world:WORLD",
    "kg": "shoal.worlds.kg.world:WORLD",
    "minatar-breakout": f"{_MINATAR}:BREAKOUT",
    "minatar-asterix": f"{_MINATAR}:ASTERIX",
    "minatar-freeway": f"{_MINATAR}:FREEWAY",
    "minatar-seaquest": f"{_MINATAR}:SEAQUEST",
    "minatar-space-invaders": f"{_MINATAR}:SPACE_INVADERS",
    "spread": "shoal.worlds.spread.world:WORLD",
}
"""Where the worlds that come with Shoal are."""


def world_names() -> list[str]:
    """Every world that can be named: ours, then the installed ones."""
    return [*OURS, *(name for name in _installed() if name not in OURS)]


def worlds() -> dict[str, World | ShoalError]:
    """Every world by name; for an installed one that cannot be loaded, the reason."""
    loaded: dict[str, World | ShoalError] = {}
    for name in world_names():
        try:
            loaded[name] = find_world(name)  # type: ignore[assignment]
        except ShoalError as error:
            loaded[name] = error
    return loaded


def find_world(name: str) -> World | None:
    """The world called `name` (its name or its Gymnasium id, in any case), or None."""
    wanted = name.lower().replace("_", "-")
    path = OURS.get(wanted) or _installed().get(wanted)
    if path is not None:
        return _load_world(wanted, path)
    if re.fullmatch(r"[\w.-]+/[\w.-]+-v\d+", wanted):  # the form of a Gymnasium id
        for world in worlds().values():
            if isinstance(world, World) and world.gym_id.lower() == wanted:
                return world
    return None


@cache
def _installed() -> dict[str, str]:
    """Names of installed worlds and where they are, without importing them."""
    return {point.name.lower().replace("_", "-"): point.value for point in entry_points(group=GROUP)}


def _load_world(name: str, path: str) -> World:
    try:
        world = load(path)
    except ShoalError:
        raise
    except Exception as error:  # another package's module, which may fail in any way
        raise ConfigError(
            f"The world {name!r} cannot be loaded from {path}: {type(error).__name__}: {error}."
        ) from error
    if not isinstance(world, World):
        raise ConfigError(f"{path} is a {type(world).__name__}, not a shoal.World.")
    if "gymnasium" in sys.modules:
        _register(world)
    return world


def as_world(env: object) -> World:
    """The door of anything that can be made into lanes."""
    if isinstance(env, World):
        return env if env.path or env.name in world_names() else replace(env, path=_path_of(env))
    if isinstance(env, str):
        world = find_world(env)
        if world is not None:
            return world
        if env.startswith(UNNAMED):
            raise ConfigError(
                f"This was started from Python with {env.removeprefix(UNNAMED)}, which has no name to import. Pass it "
                "again (shoal.train(env, resume=...)), or put it into a module and name it package.module:Name."
            )
        if env.startswith(ZOO):
            lab = "shoal.games.lab:LAB"
            return World(env, "", env, EnvironmentOptions, partial(_make_zoo, env.removeprefix(ZOO)), lab, source=env)
        if env.partition("/")[0] in _ELSEWHERE:
            return World(env, "", env, NativeOptions, partial(_make_elsewhere, env), source=env)
        if ":" not in env:
            return replace(_door_for(_known_id(env), env), path=full_id(env), lab="shoal.training.published:LAB")
        target = env if re.search(r":[\w./-]+-v\d+$", env) else load(env)  # Gymnasium's own module:Id-v0, or an object
        return replace(target, path=env) if isinstance(target, World) else _door_for(target, env)
    name = name_of(env)
    world = _door_for(env, name)
    return world if is_at(name, env) else replace(world, path=UNNAMED + name)


def is_at(name: str, env: object) -> bool:
    """Whether another process finds `env` by importing `name`."""
    module, _, attribute = name.partition(":")
    return module != "__main__" and getattr(sys.modules.get(module), attribute, None) is env


def _path_of(world: World) -> str:
    """Where a world that is given as an object can be found again: "package.module:NAME", or nothing."""
    module = sys.modules.get(getattr(world.make, "__module__", ""))
    names = [name for name, value in vars(module).items() if value is world] if module else []
    return f"{module.__name__}:{names[0]}" if module and names else ""


def name_of(env: object) -> str:
    """How an environment that is given as an object is called in messages, folders and configurations."""
    target = getattr(env, "func", env)  # of a functools.partial
    target = target if hasattr(target, "__qualname__") else type(target)
    return f"{target.__module__}:{target.__qualname__}"


def make(env: object, num_envs: int = 1, *, statistics: bool = True, **options: Any) -> Batch:
    """A batch of `num_envs` lanes of `env`.

    Args:
        env: a world's name ("cartpole"), any Gymnasium id ("LunarLander-v3"), "package.module:Name", a `World`, a
            `Kernel`, a `Batch` or `gymnasium.Env` class, or a factory of environments.
        statistics: put `episode` into infos where one ended; off for Gymnasium's `RecordEpisodeStatistics`, which does.
        options: options of the world, and fields of `BatchOptions`, e.g. `autoreset_mode`, `copy`, `num_threads`; for a
            `gymnasium.Env` those of `EnvironmentOptions`, e.g. `backend`, `num_workers`; and fields of `Wrappers`, e.g.
            `frame_stack`, `time_limit`.
    """
    world = as_world(env)
    of_batch, rest = split_options(options)
    wrappers, of_world = split_wrappers(rest)
    batch = make_wrapped(world, num_envs, options_of(world, of_world), BatchOptions(**of_batch), wrappers)
    batch.statistics = statistics
    return batch


def make_wrapped(world: World[O], num_envs: int, options: O, batch: BatchOptions, wrappers: Wrappers) -> Batch:
    """Lanes of the world, with `wrappers` around them if there are any."""
    if not wrappers.given:
        return world.make(num_envs, options, batch)
    from shoal.vector.wrapped import WrappedBatch

    inner = world.make(num_envs, options, replace(batch, autoreset_mode="disabled", copy=False))
    try:
        return WrappedBatch(inner, wrappers, autoreset_mode=batch.autoreset_mode, copy=batch.copy)
    except ShoalError:
        inner.close()
        raise


# ---------------------------------------------------------------------- doors made on the spot


@dataclass(frozen=True)
class EnvironmentOptions:
    """How any `gymnasium.Env` is run."""

    backend: Literal["auto", "serial", "workers", "native"] = "auto"
    """In this process, on worker processes, or native: by a vector environment that the id itself brings; auto takes
    workers for more than one lane, and native for ALE's games."""
    num_workers: int | Literal["auto"] | None = None
    """Worker processes; none takes one per core, auto measures: lanes that sleep or wait can have more."""
    env_kwargs: dict[str, object] = field(default_factory=dict)
    """Arguments of the environment itself."""
    env_wrappers: tuple[str, ...] = ()
    """Put around each environment, the first innermost: package.module:Wrapper, or the name of one of Gymnasium's."""
    context: Literal["forkserver", "fork", "spawn"] = "forkserver"
    """How worker processes are started."""
    step_timeout: float | None = None
    """Seconds after which a step on a worker counts as hung."""
    on_fault: Literal["raise", "restart"] = "raise"
    """Whether a lane that crashed ends the run or begins anew."""
    tolerance: float = 0.0
    """Relative difference between compiled and original floats that is accepted, beyond the machine's last digits."""


@dataclass(frozen=True)
class NativeOptions:
    """How a vector environment is made that steps its lanes by itself."""

    env_kwargs: dict[str, object] = field(default_factory=dict)
    """Arguments of the environment itself."""


_ELSEWHERE = ("envpool", "gymnax")
"""What stands before the slash in names of environments of other libraries: envpool/Pong-v5, gymnax/CartPole-v1."""

ZOO = "pettingzoo/"
"""What stands before the name of a function that makes one of PettingZoo's, as in pettingzoo/package.module:env."""


def _door_for(target: object, name: str) -> World:
    from gymnasium.spaces import Box
    from gymnasium.vector import VectorEnv

    from shoal.vector.batch import Batch
    from shoal.vector.kernel import Kernel

    if isinstance(target, Batch):
        raise ConfigError(
            f"{name} is a batch that is already made, and a run makes its own: to train, to evaluate, to record. Pass "
            "what it was made from: a world's name, a kernel, a class, a Gymnasium id or a factory of environments."
        )
    if isinstance(target, Kernel) or (isinstance(target, type) and issubclass(target, Kernel)):
        options = _kernel_options(target) if isinstance(target, type) else NoOptions
        lab = "shoal.games.lab:LAB" if target.seats else None
        continuous = isinstance(getattr(target, "action_space", None), Box)  # as far as the class says
        make = partial(_make_kernel, target)
        return World(name, "", _first_line(target), options, make, lab, continuous=continuous, source=target)
    if isinstance(target, type) and issubclass(target, Batch):
        return World(name, "", _first_line(target), OpenOptions, partial(_make_batch, target), source=target)
    if isinstance(target, type) and issubclass(target, VectorEnv):
        return World(name, "", _first_line(target), NativeOptions, partial(_make_native, target), source=target)
    return World(name, "", _first_line(target), EnvironmentOptions, partial(_make_lanes, target), source=target)


def _first_line(target: object) -> str:
    return (target.__doc__ or "").strip().partition("\n")[0] if not isinstance(target, str) else target


def _kernel_options(kernel: type[Kernel]) -> type:
    """The parameters of a kernel as a dataclass; tables have no flag."""
    _check_init(kernel)
    columns = []
    is_declared = isinstance(kernel.params, Mapping)  # the kernel itself says where it is not
    for name, value in kernel.params.items() if is_declared else ():
        kind = _PARAMETERS.get(type(value), object)
        columns.append((name, kind, field(default_factory=partial(_same, value))))
    namespace = {"__post_init__": _tables_as_lists}
    return make_dataclass(f"{kernel.__name__}Options", columns, frozen=True, namespace=namespace)


def _check_init(kernel: type[Kernel]) -> None:
    """Refuse an `__init__` that cannot be given the parameters."""
    taken = inspect.signature(kernel).parameters
    takes_all = any(p.kind is p.VAR_KEYWORD for p in taken.values())
    if kernel.params and not takes_all and not set(kernel.params) <= taken.keys():
        code = kernel.__init__.__code__
        raise ConfigError(
            f"{kernel.__name__}.__init__ ({code.co_filename}:{code.co_firstlineno}) does not take the kernel's params. "
            "A kernel has no object per lane and needs no `__init__`: what a lane remembers belongs into `state`, "
            "constants into `params`."
        )


def _tables_as_lists(options: Any) -> None:
    """What config.json can hold; the kernel gives tables their type again."""
    import numpy as np  # takes time, which listing worlds does not need

    for f in fields(options):
        value = getattr(options, f.name)
        if isinstance(value, np.ndarray):
            object.__setattr__(options, f.name, value.tolist())


_PARAMETERS: dict[type, object] = {float: Number, int: Count, bool: bool | tuple[bool, ...]}


def _same(value: object) -> object:
    return value


def _make_kernel(kernel: Kernel | type[Kernel], num_envs: int, options: Any, batch: BatchOptions) -> Batch:
    from shoal.vector.kernel import KernelBatch

    made = kernel(**{f.name: getattr(options, f.name) for f in fields(options)}) if isinstance(kernel, type) else kernel
    return KernelBatch(made, num_envs, **batch.given())


def _make_batch(cls: type[Batch], num_envs: int, options: OpenOptions, batch: BatchOptions) -> Batch:
    return cls(num_envs, **options.values, **batch.given())


def _make_lanes(env: Any, num_envs: int, options: EnvironmentOptions, batch: BatchOptions) -> Batch:
    if batch.compiled in (True, "auto"):
        compiled = _make_compiled(env, num_envs, options, batch)
        if compiled is not None:
            return compiled
    if batch.compiled is None and options.backend == "auto":
        _say_that_it_compiles(env, options)
    given = {k: v for k, v in batch.only("autoreset_mode", "copy", "compiled").items() if k != "compiled"}
    if options.backend == "native" or (options.backend == "auto" and _brings_batches(env)):
        from shoal.vector.native.batch import NativeBatch
        from shoal.vector.native.sources import EntryPoint

        return NativeBatch(EntryPoint(env, options.env_kwargs), num_envs, **given)
    if options.backend == "serial" or (options.backend == "auto" and num_envs == 1):
        from shoal.vector.serial import SerialBatch

        return SerialBatch(env, num_envs, env_kwargs=options.env_kwargs, env_wrappers=options.env_wrappers, **given)
    from shoal.vector.workers import WorkerBatch

    of_workers = {name: value for name, value in asdict(options).items() if name not in ("backend", "tolerance")}
    return WorkerBatch(env, num_envs, **of_workers, **given)


def _make_compiled(env: Any, num_envs: int, options: EnvironmentOptions, batch: BatchOptions) -> Batch | None:
    """A `gymnasium.Env` as compiled lanes; with "auto" nothing and a sentence where that cannot be had."""
    from shoal.port.again import Further, PortedBatch, Task
    from shoal.port.ported import port
    from shoal.port.refusal import PortError
    from shoal.vector.lanes.making import EnvMaker

    if options.backend != "auto":
        raise ConfigError(
            f"compiled={batch.compiled!r} is a way of its own to run lanes. Leave backend={options.backend!r} out."
        )
    maker = EnvMaker(env, dict(options.env_kwargs))
    try:
        ported = port(maker, options.tolerance)
    except PortError as error:
        if batch.compiled == "auto":
            print(f"not compiled, on worker processes instead: {error}", file=sys.stderr)
            return None
        raise
    made = PortedBatch(ported.kernel(), num_envs, **batch.given())
    made.further = Further(Task(maker, ported, first_seed=1_000_000))
    return made


def _say_that_it_compiles(env: Any, options: EnvironmentOptions) -> None:
    """Once, to people at a terminal: this environment was compiled before, and was faster by so much."""
    from shoal.port.known import factor_of

    factor = factor_of(env, options.env_kwargs) if sys.stderr.isatty() and not options.env_wrappers else None
    if factor is not None and factor >= 2:
        print(
            f"Compiled as it is, this environment made {factor:,.0f} times the steps per CPU-second: "
            "--compiled on a command line, compiled=True in Python.",
            file=sys.stderr,
        )


def _brings_batches(env: object) -> bool:
    """Whether the vector environment behind an id is better than any batch of single ones: that of ALE steps its lanes
    on threads of its own, and makes of the screen what agents look at."""
    return isinstance(env, str) and env.startswith("ALE/")


def _make_native(cls: Any, num_envs: int, options: NativeOptions, batch: BatchOptions) -> Batch:
    from shoal.vector.native.batch import NativeBatch
    from shoal.vector.native.sources import Factory

    return NativeBatch(Factory(cls, options.env_kwargs), num_envs, **batch.only("autoreset_mode", "copy"))


def _make_elsewhere(name: str, num_envs: int, options: NativeOptions, batch: BatchOptions) -> Batch:
    library, _, env = name.partition("/")
    given = batch.only("autoreset_mode", "copy")
    if library == "gymnax":
        from shoal.vector.native.gymnax import GymnaxBatch

        return GymnaxBatch(env, num_envs, options.env_kwargs, **given)
    from shoal.vector.native.batch import NativeBatch
    from shoal.vector.native.sources import EnvPool

    return NativeBatch(EnvPool(env, options.env_kwargs), num_envs, **given)


def _make_zoo(env: str, num_envs: int, options: EnvironmentOptions, batch: BatchOptions) -> Batch:
    seat_batch = load("shoal.bridges.pettingzoo:seat_batch")  # by its name: bridges stand above this floor
    how = {f.name: getattr(options, f.name) for f in fields(options) if f.name not in ("env_kwargs", "tolerance")}
    return seat_batch(partial(load(env), **options.env_kwargs), num_envs, **how, **batch.only("autoreset_mode", "copy"))


def _known_id(name: str) -> str:
    import gymnasium

    if is_gym_id(name):
        return name
    raise unknown_id(name, [*world_names(), *gymnasium.registry], "`shoal envs --all`")


def load(path: str) -> Any:
    """The object at "package.module:Name"; the current folder counts as a place to import from."""
    module_name, _, attribute = path.partition(":")
    module = import_module(module_name, path)
    if not hasattr(module, attribute):
        names = [name for name in vars(module) if not name.startswith("_")]
        raise unknown_name("name", attribute, names, f"`dir({module_name})`", f"in {module_name}")
    return getattr(module, attribute)


# ---------------------------------------------------------------------- Gymnasium's registry


def register_in_gymnasium() -> None:
    """Make our worlds known to `gymnasium.make` and `gymnasium.make_vec`; installed ones are, once they are loaded."""
    for name, path in OURS.items():
        _load_world(name, path)


def _register(world: World) -> None:
    import gymnasium

    if world.gym_id not in gymnasium.registry:
        gymnasium.register(
            world.gym_id,
            entry_point="shoal.registry:make_single",
            vector_entry_point="shoal.registry:make",
            kwargs={"env": world.name},
            disable_env_checker=True,
            order_enforce=False,
        )


def make_single(env: object, render_mode: str | None = None, **options: Any) -> SingleLane:
    """One lane of `env` as an ordinary `gymnasium.Env`."""
    from shoal.vector.single import SingleLane

    return SingleLane(make(env, 1, **{**options, "autoreset_mode": "disabled"}), render_mode)
