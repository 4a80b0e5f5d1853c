"""`Kernel`: what an author writes. Three scalar functions over one lane's record; Shoal makes the batch."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from shoal.errors import ConfigError, KernelError, unknown_name
from shoal.options import Range
from shoal.vector.kernel.declared import declared
from shoal.vector.kernel.forms import leaf_spaces
from shoal.vector.seats import SeatSpace, common, seated

SEAT_FUNCTIONS = ("pay", "turn", "present")
"""What only a kernel with seats may have."""


class Kernel:
    """One environment, written for one lane as plain scalar Python.

    ```python
    class Walk(Kernel):
        \"\"\"Walk to the end of a corridor.\"\"\"
        observation_space = gym.spaces.Box(0, 10, (1,), np.float32)
        action_space = gym.spaces.Discrete(2)
        state = record(pos=i32, t=i32)
        params = {"length": 10, "max_steps": 50}

        def reset(s, p, rng):
            s.pos, s.t = rng.integers(p.length), 0

        def step(s, action, p, rng):
            s.pos = max(0, s.pos + 2 * action - 1)
            s.t += 1
            return -1.0, s.pos >= p.length, s.t >= p.max_steps   # reward, terminated, truncated

        def observe(s, p, out):
            out[0] = s.pos
    ```

    `s` is the lane's record; what `reset` leaves alone survives it. `p` holds the constants and read-only tables of
    `params`. `rng` has `uniform(low, high)`, `integers(n)`, `normal()`, `choice(weights)`. `action` is a number for
    Discrete and scalar Box spaces, otherwise the lane's row. `out` is the lane's row of the observation; for a Dict
    space it has one attribute per key (`out.position[0] = ...`), and a space of shape () is written as `out[0]`.

    `out` starts at zero. docs/kernels.md has everything, with eleven examples.

    Optional: `mask(s, p, out)` writes which actions are allowed (`out[a] = True`), and `inform(s, p, out)` with
    `info = record(...)` writes named infos of the step (`out.name = ...`).

    With `seats = 2` (or any number) several act in a lane. The spaces are those of one seat, or lists with one for each
    (rows then have room for the widest); `action`, and `out` of `observe` and `mask`, have a row for each. `step`
    returns the reward that all seats share; `pay(s, p, out)` writes what each is paid besides. Where they play in turn,
    `turn(s, p)` returns the seat whose action counts; where seats may leave before the others, `present(s, p, out)`
    writes who is still there. A kernel that can play seats itself
    names its `bots` and has a field `seat=i8[seats]`, which `reset` reads: 0 for whoever acts from outside, k for the
    k-th bot.

    `metadata` becomes the batch's, e.g. `{"renderer": "package.module:NAME"}` (see `shoal.vector.rendering`).

    All numbers inside are float64, int64 or bool; `f32` and the like are storage formats. Helper functions are
    plain functions, found wherever they are.
    """

    observation_space: SeatSpace
    action_space: SeatSpace
    state: np.dtype
    info: np.dtype | None = None
    params: ClassVar[Mapping[str, Any]] = {}
    metadata: ClassVar[Mapping[str, Any]] = {}
    survives: ClassVar[tuple[str, ...]] = ()
    seats: ClassVar[int] = 0
    bots: ClassVar[tuple[str, ...]] = ()

    def __init__(self, **params: Any) -> None:
        """Override values of the class's `params`; each keeps the type (and an array its dimensions) of its default.

        A `Range` is drawn from anew for every episode; an array with one more dimension [B, ...] is one value per lane.
        """
        defaults = type(self).params
        self._check_parameters(defaults)
        for name in params:
            if name not in defaults:
                raise unknown_name(f"parameter of {self.name}", name, defaults, f"`{self.name}.params`")
        self.of_lanes = {name: value for name, value in params.items() if is_per_lane(value, defaults[name])}
        """Parameters of which each lane has its own, as they were given: a `Range`, or an array [B, ...]."""
        shared = {name: value for name, value in params.items() if name not in self.of_lanes}
        self.values = {name: like(name, shared.get(name, default), default) for name, default in defaults.items()}
        self._check_declaration()

    @property
    def name(self) -> str:
        """The class's name: how messages and caches call it."""
        return type(self).__name__

    @property
    def lane_observation_space(self) -> gym.Space:
        """What a lane shows: `observation_space`, of every seat."""
        return seated(self.observation_space, self.seats)

    @property
    def seat_action_space(self) -> gym.Space:
        """A space that has room for the actions of every seat."""
        return common(self.action_space)

    @property
    def lane_action_space(self) -> gym.Space:
        """What a lane takes: `action_space`, of every seat."""
        return seated(self.action_space, self.seats)

    def function(self, name: str) -> Callable | None:
        """The author's function `name` as a plain function of the class, or None."""
        if name in SEAT_FUNCTIONS and not self.seats:
            return None
        for cls in type(self).__mro__:
            if cls is not Kernel and name in vars(cls):
                member = vars(cls)[name]
                return member.__func__ if isinstance(member, staticmethod) else member
        return None

    def seeded_fields(self, seeds: list[int]) -> Mapping[str, np.ndarray]:
        """Fields [B] that lanes seeded with these seeds begin with, for kernels that keep random numbers of their own.

        The seeds are those that lanes of a `gymnasium.Env` would be given.
        """
        return {}

    @property
    def masks_actions(self) -> bool:
        """Whether lanes deliver a mask: their own, or one that says whose actions are ignored."""
        is_choice = isinstance(self.seat_action_space, gym.spaces.Discrete | gym.spaces.MultiDiscrete)
        differ = self.seat_action_space is not self.action_space
        return self.function("mask") is not None or (is_choice and (differ or bool(self.seat_infos)))

    @property
    def seat_infos(self) -> list[tuple]:
        """Fields of the infos that say whose turn it is and who is still there, as of a record."""
        fields: dict[str, tuple] = {"turn": ("turn", np.int64), "present": ("present", np.bool_, (self.seats,))}
        return [field for name, field in fields.items() if self.function(name) is not None]

    @property
    def told(self) -> np.dtype | None:
        """The record of everything that a lane tells: the author's `info`, and what there is to say about seats."""
        own = [] if self.info is None else [(name, self.info[name]) for name in self.info.names or ()]
        return np.dtype([*own, *self.seat_infos], align=True) if self.seat_infos else self.info

    def param_record(self, count: int = 1) -> np.ndarray:
        """The parameters as a record, repeated [count]."""
        values = self.values or {"unused": np.zeros((), np.int8)}
        packed = np.zeros(
            count, np.dtype([(name, value.dtype, value.shape) for name, value in values.items()], align=True)
        )
        for name, value in self.values.items():
            packed[name][:] = value
        return packed

    def _check_declaration(self) -> None:
        for attribute in ("observation_space", "action_space", "state"):
            if not hasattr(self, attribute):
                raise KernelError(f"{self._at(attribute)} is missing. A kernel needs spaces, state, and functions.")
            if attribute != "state":
                self._check_space(attribute)
        for function in ("reset", "step", "observe"):
            if self.function(function) is None:
                raise KernelError(f"{self._at(function)} is missing. A kernel needs reset, step and observe.")
        if isinstance(self.seats, bool) or not isinstance(self.seats, int) or self.seats < 0:
            raise KernelError(f"{self._at('seats')} is {self.seats!r}. It must be a whole number of at least 1.")
        if self.bots and ("seat" not in (self.state.names or ()) or self.state["seat"].shape != (self.seats,)):
            raise KernelError(
                f"{self.name} has bots, so its state needs a field seat=i8[{self.seats}]: who plays where."
            )
        if len(set(self.bots)) < len(self.bots):
            raise KernelError(f"{self.name} has two bots of the same name among {', '.join(self.bots)}.")
        for name in ("turn", "present"):
            if self.seats and self.info is not None and name in (self.info.names or ()):
                raise KernelError(
                    f"{self.name} has an info {name!r}, which lanes with seats have of their own. Rename it."
                )
        if (self.info is None) != (self.function("inform") is None):
            there = self._at("inform" if self.info is None else "info")
            raise KernelError(f"{there}: a kernel has both `info = record(...)` and `inform(s, p, out)`, or neither.")
        for attribute in ("state", "info"):
            given = getattr(self, attribute)
            if (attribute == "state" or given is not None) and not is_record(given):
                raise KernelError(f"{self._at(attribute)} is {given!r}. Declare it as record(name=type, ...).")
        fields = self.state.names or ()
        if not isinstance(self.survives, tuple | list) or not set(self.survives) <= set(fields):
            raise KernelError(
                f"{self._at('survives')} is {self.survives!r}; it must be a tuple of fields of the state, "
                f"e.g. ({next(iter(fields))!r},)."
            )
        if not isinstance(self.metadata, Mapping):
            raise KernelError(f"{self._at('metadata')} is {self.metadata!r}. It must be a dict.")

    def _at(self, attribute: str) -> str:
        return declared(type(self), attribute)

    def _check_space(self, attribute: str) -> None:
        space = getattr(self, attribute)
        each = space if self.seats and isinstance(space, list | tuple) and space else (space,)
        if not all(isinstance(one, gym.Space) for one in each):
            raise KernelError(
                f"{self._at(attribute)} is {space!r}, not a space. Use gymnasium.spaces, e.g. "
                "Box(0, 1, (3,), np.float32) or Discrete(4)."
            )
        try:
            for one in each:
                leaf_spaces(one)
            if each is space:
                seated(space, self.seats)
        except (ConfigError, KernelError) as error:
            raise KernelError(f"{self._at(attribute)}: {error}") from None

    def _check_parameters(self, params: object) -> None:
        if not isinstance(params, Mapping):
            raise KernelError(f"{self._at('params')} is {params!r}. It must be a dict of names and values.")
        for name, default in params.items():
            if not isinstance(name, str) or not name.isidentifier():
                raise KernelError(f"{self._at('params')}: {name!r} is not a name that `p.{name}` could use. Rename it.")
            if keyword.iskeyword(name) or hasattr(np.record, name):
                raise KernelError(
                    f"{self._at('params')}: {name!r} would hide a name of NumPy's records. Choose another name."
                )
            try:
                like(name, default, default)
            except KernelError as error:
                raise KernelError(f"{self._at('params')}: {error}") from None


def is_record(declared: object) -> bool:
    """Whether this is a dtype of numbers by name."""
    if not isinstance(declared, np.dtype) or not declared.names:
        return False
    return all(declared[name].base.kind in "biuf" for name in declared.names)


def is_per_lane(value: Any, default: Any) -> bool:
    """Whether a parameter is given for each lane: a range, or one more dimension than its default has."""
    return isinstance(value, Range) or np.ndim(value) == np.ndim(default) + 1


def like(name: str, value: Any, default: Any, more: int = 0) -> np.ndarray:
    """`value` in the type of `default`, so that `gravity=10` does not become another compiled kernel.

    `more` is how many more dimensions it has than its default: one, for a value per lane.
    """
    if isinstance(default, str):
        raise KernelError(
            f"Parameter {name}={default!r} is a string; kernels work with numbers. "
            "Use one, or a member of an enum.IntEnum."
        )
    try:
        wanted = np.asarray(default)
    except ValueError:  # lists of different lengths
        raise KernelError(f"Parameter {name}={default!r} is not an array: its rows differ in length.") from None
    if wanted.dtype.kind not in "biuf":
        raise KernelError(f"Parameter {name}={default!r} must be a number or an array of numbers.")
    array = np.asarray(value)
    if array.dtype.kind not in "biuf" or array.ndim != wanted.ndim + more:
        raise ConfigError(f"Parameter {name}={value!r} must be like its default {default!r}.")
    if array.dtype.kind == "f" and wanted.dtype.kind in "biu" and not np.array_equal(array, np.round(array)):
        raise ConfigError(f"Parameter {name}={value!r} must be a whole number like its default {default!r}.")
    return array.astype(wanted.dtype)
