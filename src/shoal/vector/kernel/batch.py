"""`KernelBatch`: a kernel's lanes stepped by one compiled loop, on threads where that pays."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numba
import numpy as np
from gymnasium.vector import AutoresetMode

from shoal.errors import ConfigError, KernelError, KernelWarning, StateError
from shoal.jit.rng import seed_words
from shoal.seeding import Seeds, lane_keys, lane_seeds
from shoal.trees import Tree
from shoal.vector.batch import Array, Drawn, Info, State, Step, episode_over
from shoal.vector.crew import Crew
from shoal.vector.kernel import driver
from shoal.vector.kernel.attributes import KernelAttributes
from shoal.vector.kernel.compiler import explain, load_compiled, load_uncompiled, moment_of
from shoal.vector.kernel.dry_run import LANES, dry_run
from shoal.vector.kernel.faults import KernelFault
from shoal.vector.kernel.forms import pack_actions, packed_space
from shoal.vector.kernel.kernel import Kernel
from shoal.vector.kernel.lane import Columns, bytes_of, suits_columns
from shoal.vector.kernel.outputs import Outputs, arrays_of, as_given, free_set, moved, table_of
from shoal.vector.kernel.params import LaneParams
from shoal.vector.kernel.reach import where
from shoal.vector.kernel.seats import check_bots
from shoal.vector.spaces import raise_action_outside

_MODES = {
    AutoresetMode.SAME_STEP: driver.SAME_STEP,
    AutoresetMode.NEXT_STEP: driver.NEXT_STEP,
    AutoresetMode.DISABLED: driver.DISABLED,
}


class KernelBatch(KernelAttributes):
    """Lanes of one `Kernel`.

    Args:
        kernel: a `Kernel` instance or class.
        lanes: values for fields of the state record, one for all lanes or [B], written before the first reset;
            a kernel whose `reset` leaves these fields alone has per-lane settings.
        compiled: False runs the same source as ordinary Python, for breakpoints; trajectories are the same.
        checked: test every index, division, shift and store; a fault names line, lane, step and numbers.
        num_threads: an int, or "auto": as many as the process may use, and only while they are faster than one.
    """

    state_is_data = True

    def __init__(
        self,
        kernel: Kernel | type[Kernel],
        num_envs: int,
        *,
        lanes: Mapping[str, object] | None = None,
        compiled: bool = True,
        checked: bool = False,
        num_threads: int | str = "auto",
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
        copy: bool = True,
    ) -> None:
        self.kernel = kernel if isinstance(kernel, Kernel) else kernel()
        super().__init__(
            num_envs,
            self.kernel.observation_space,
            self.kernel.action_space,
            autoreset_mode=autoreset_mode,
            has_action_mask=self.kernel.masks_actions,
            copy=copy,
            metadata=dict(self.kernel.metadata),
            seats=self.kernel.seats,
        )
        self._mode, self._compiled, self._checked = _MODES[self.autoreset_mode], compiled, checked
        self._row_space = packed_space(self.single_action_space)  # of actions as the loop takes them
        self._low, self._high = driver.action_bounds(self._row_space)
        self._action_shape, self._action_dtype = self.action_space.shape, self.action_space.dtype
        in_columns = compiled and suits_columns(self.kernel.state)
        self._state: Any = (Columns if in_columns else np.zeros)(self.num_envs, self.kernel.state)
        self._book = Columns(self.num_envs, driver.book_of(self.num_seats))
        self._own = self._make_outputs()
        self._buffers = self._own.step
        self._sets: list[Outputs] = []  # what callers are given instead of copies
        self._crew = Crew(num_threads if compiled else 1, self.num_envs)
        self.params = LaneParams(self.kernel, self.num_envs, compiled)
        self._guards = [driver.guard_rows(self.single_observation_space) for _ in range(self._crew.size)]
        self.set_lanes(**(lanes or {}))
        self._load(in_columns)

    # ------------------------------------------------------------------ per-lane settings

    @property
    def lane_state(self) -> Any:
        """The records of all lanes, [B]: `lane_state["x"]` is the memory itself, to look at and to set up situations.

        An array of records, or `Columns`, which can be used like one.
        """
        return self._state

    def set_lanes(self, **fields: object) -> None:
        """Write fields of the state record, one value for all lanes or [B] values."""
        for name, value in fields.items():
            if name not in (self.kernel.state.names or ()):
                raise ConfigError(f"{self.kernel.name} has no state field {name!r}; it has {self.kernel.state.names}.")
            if name == "seat" and self.kernel.bots:
                check_bots(self.kernel, np.asarray(value))
            try:
                self._state[name] = value
            except ValueError as error:
                shape = [self.num_envs, *self._state[name].shape[1:]]
                raise ConfigError(
                    f"s.{name} of {self.kernel.name} cannot be {value!r}: {error}. Give one value for all lanes, or an "
                    f"array {shape}."
                ) from None

    def set_params(self, **values: object) -> None:
        """New values of parameters, between steps: one for all lanes, [B] of them, or a `Range` to draw from.

        A range counts from the next episode of a lane on. The first time that a parameter becomes one per lane, or is
        drawn, the lanes are compiled for it.
        """
        if self.params.set(values):
            self._sets.clear()
            self._load(isinstance(self._state, Columns))

    def drawn(self) -> dict[str, Drawn]:
        """Parameters with a range."""
        bounds = zip(self.params.drawn, self.params.ranges.tolist(), strict=True)
        return {name: Drawn(low, high, self.params[name].copy()) for name, (low, high) in bounds}

    # ------------------------------------------------------------------ the contract

    def reset(self, *, seed: Seeds = None, options: Mapping[str, object] | None = None) -> tuple[Tree, Info]:
        """As the contract says; what the caller is given instead of a copy is written as a whole."""
        outputs = free_set(self._sets, self._bound_outputs) if self.copy else None
        if outputs is None:
            return super().reset(seed=seed, options=options)
        return as_given(outputs.step.obs), self.reset_into(outputs.step, seed=seed, options=options)

    def step(self, actions: Array) -> tuple[Tree, Array, Array, Array, Info]:
        """As the contract says."""
        outputs = free_set(self._sets, self._bound_outputs) if self.copy and self.statistics else None
        if outputs is None:
            return super().step(actions)
        out = outputs.step
        info = self.step_into(actions, out)
        return as_given(out.obs), out.reward, out.terminated, out.truncated, info

    def _reset_lanes(self, out: Step, seed: Seeds, mask: np.ndarray | None, options: dict[str, object]) -> Info:
        outputs = self._outputs_of(out)
        if out is not outputs.step:
            self._checked_buffers(out)
        which = np.ones(self.num_envs, np.bool_) if mask is None else mask
        shown = which if outputs is self._own else np.ones(self.num_envs, np.bool_)
        to_seed = self._lanes_to_seed(seed, which)
        if to_seed.any():
            self._book["words"][to_seed] = seed_words(lane_keys(seed, self.num_envs))[to_seed]
            if type(self.kernel).seeded_fields is not Kernel.seeded_fields:
                for name, values in self.kernel.seeded_fields(lane_seeds(seed, self.num_envs)).items():
                    self._state[name][to_seed] = values[to_seed]
        written = (*arrays_of(out.obs), *self._guards[0], *map(self._view, outputs.infos[:1]))
        before = self._get_state() if self._checked else None
        try:
            code = self._begin(
                which, shown, time.perf_counter(), *self._lane_arrays, *written, *arrays_of((out.action_mask,))
            )
        except Exception as error:
            raise self._tell(error, before, lambda twin: twin.reset(options={"reset_mask": which})) from error
        if code < 0:
            self._raise_fault(code, None)
        return outputs.info(out, ended=False)

    def _step_lanes(self, action: Array, out: Step) -> Info:
        given = action
        if (  # most actions are right as they are, and a small batch feels every microsecond
            type(action) is not np.ndarray
            or action.dtype is not self._action_dtype
            or action.shape != self._action_shape
            or not action.flags.c_contiguous
        ):
            action = pack_actions(action, self.single_action_space, self.num_envs)
        outputs = self._outputs_of(out)
        run, fixed = self._run, outputs.tables if out is outputs.step else self._bound_to(out, outputs)
        before = self._get_state() if self._checked else None
        now = time.perf_counter()
        try:
            if self._crew.alone:
                ended = run(action, now, False, 0, self.num_envs, *fixed[0])
            else:
                ended = self._crew.step(
                    lambda chunk, lo, hi, checked: run(action, now, checked, lo, hi, *fixed[chunk]),
                    lambda: self._check(
                        self._book["ended"], action, self._low, self._high, self._mode, 0, self.num_envs
                    ),
                )
        except Exception as error:  # raised by the author's functions
            raise self._tell(error, before, lambda twin: twin.step(given)) from error
        if ended < 0:
            self._raise_fault(ended, action)
        return outputs.info(out, ended > 0)

    def _get_state(self) -> State:
        book = self._book.copy()
        book["began"] = 0.0  # a clock reading means nothing in another process
        return {"lanes": bytes_of(self._state), "book": book.view(np.uint8), **self.params.get_state()}

    def _set_state(self, state: State) -> None:
        for name, target in (("lanes", self._state), ("book", self._book)):
            stored = np.asarray(state.get(name, ()))
            if stored.size != target.nbytes:
                raise StateError(
                    f"This state has {stored.size} bytes in {name!r}; {self.num_envs} lanes of {self.kernel.name} "
                    f"have {target.nbytes}. Use a state of the same world, version and num_envs."
                )
        self._state[:] = np.array(state["lanes"], np.uint8).view(self._state.dtype)
        self._book[:] = np.array(state["book"], np.uint8).view(driver.book_of(self.num_seats))
        self._book["began"] = time.perf_counter()
        self.params.set_state(state)

    def close_extras(self, **kwargs: object) -> None:
        """End the threads, if the batch was ever made."""
        crew: Crew | None = vars(self).get("_crew")
        if crew is not None:
            crew.close()

    # ------------------------------------------------------------------ buffers and loading

    def _make_outputs(self) -> Outputs:
        return Outputs(self.empty_step(), self.kernel.told, self._mode, self.num_seats)

    def _bound_outputs(self) -> Outputs:
        outputs = self._make_outputs()
        self._bind(outputs)
        return outputs

    def _bind(self, outputs: Outputs) -> None:
        given = self._given(outputs, outputs.step)
        outputs.tables = [(table_of(each),) for each in given] if self._compiled else given

    def _bound_to(self, out: Step, outputs: Outputs) -> list[tuple]:
        """What `outputs.tables` would be with the buffers of `out`."""
        theirs = self._checked_buffers(out)
        if not self._compiled:
            return self._given(outputs, out)
        return [(moved(table, theirs),) for (table,) in outputs.tables]

    def _given(self, outputs: Outputs, out: Step) -> list[tuple]:
        """For each thread, the arguments of `run` that stay the same as long as it writes to `out`."""
        arguments = self._arguments(outputs, out)
        return [(*guards, *arguments) for guards in self._guards]

    def _outputs_of(self, out: Step) -> Outputs:
        """The set that `out` belongs to; our own for buffers of the caller's."""
        for outputs in self._sets:
            if out is outputs.step:
                return outputs
        return self._own

    def _arguments(self, outputs: Outputs, out: Step) -> tuple:
        """The arguments of `run` that stay the same as long as it writes to `out`, and infos to `outputs`."""
        how = (self._low, self._high, self._mode, self._view(outputs.episode), outputs.done)
        theirs = (*arrays_of(out.obs), out.reward, out.terminated, out.truncated, *arrays_of(out.final_obs))
        return (*self._lane_arrays, *how, *map(self._view, outputs.infos), *theirs, *arrays_of((out.action_mask,)))

    def _checked_buffers(self, out: Step) -> tuple[np.ndarray, ...]:
        """The arrays of `out`. Compiled code trusts its arguments, so foreign ones are compared with our own first."""
        arrays = arrays_of(out)
        for ours, theirs in zip(self._own.arrays, arrays, strict=True):
            if theirs.shape != ours.shape or theirs.dtype != ours.dtype or not theirs.flags.carray:
                raise ConfigError(
                    f"step_into() got a buffer of shape {theirs.shape} and type {theirs.dtype}; it needs a "
                    f"writable, C-contiguous {ours.shape} of {ours.dtype}. Take the buffers from empty_step()."
                )
        return arrays

    def _view(self, records: np.ndarray) -> np.ndarray:
        """Records as `run` takes them: uncompiled, `s.x` needs a recarray."""
        return records if self._compiled else records.view(np.recarray)

    def _load(self, in_columns: bool) -> None:
        state = self._state.arrays.values() if in_columns else (self._view(self._state),)
        self._lane_arrays = (*state, *self._book.arrays.values(), *self.params.arrays)
        if not self._compiled:
            module, self._files = load_uncompiled(self.kernel, self.params, self._checked)
            self._run = module.run
        else:
            signatures, fixed = self._signatures()
            module, self._files = load_compiled(
                self.kernel, self.params, signatures, fixed, self._checked, in_columns, self._try_out
            )
            # straight to the machine code: the types are checked here, once, and not by Numba at every call
            self._run = module.run_bound.overloads[signatures["run_bound"]].entry_point
        self._begin, self._check = module.begin, module.check
        self._bind(self._own)

    def _signatures(self) -> tuple[dict[str, tuple], tuple]:
        """Numba's types of the arguments of the compiled functions, and of what `run` takes from a table.

        They are read off our own buffers.
        """
        own, guards = self._own, self._guards[0]
        out = own.step
        action = np.zeros((self.num_envs, *self._row_space.shape), self._row_space.dtype)  # type: ignore[misc]
        outputs = (*arrays_of(out.obs), *guards, *own.infos[:1], *arrays_of((out.action_mask,)))
        begin = (own.done, own.done, 0.0, *self._lane_arrays, *outputs)
        check = (self._book["ended"], action, self._low, self._high, 0, 0, 0)
        fixed = (*guards, *self._arguments(own, out))
        calls = {"begin": begin, "check": check, "run_bound": (action, 0.0, False, 0, 0, table_of(fixed))}
        signatures = {name: tuple(map(numba.typeof, arguments)) for name, arguments in calls.items()}
        return signatures, tuple(map(numba.typeof, fixed))

    def _try_out(self) -> None:
        for note in dry_run(self.kernel, self._state[:LANES]):
            warnings.warn(note, KernelWarning, stacklevel=2)

    def _tell(self, error: Exception, before: State | None, repeat: Callable[[KernelBatch], object]) -> Exception:
        """What an exception out of the author's functions means, in their words.

        Compiled code knows the kind of fault only; a checked batch has kept the state `before` and can repeat the call
        as Python, which knows the numbers.
        """
        if before is not None and isinstance(error, KernelFault) and self._compiled:
            twin = KernelBatch(
                self.kernel, self.num_envs, compiled=False, checked=True, autoreset_mode=self.autoreset_mode
            )
            twin.set_state(before)
            try:
                repeat(twin)
            except KernelError as told:
                return told
        return explain(error, self.kernel, self._files, moment_of(error, self._book["length"]))

    def _raise_fault(self, code: int, action: np.ndarray | None) -> None:
        kind, lane = divmod(-code - 1, driver.FAULT_STRIDE)
        if kind == driver.BAD_ACTION:
            assert action is not None
            raise_action_outside(lane, action[lane], self._row_space)
        if kind == driver.NOT_RESET:
            raise episode_over(lane)
        if kind == driver.BAD_TURN:
            raise KernelError(
                f"{where(self.kernel.function('turn'))} names a seat that is not there, in lane {lane}. "  # type: ignore[arg-type]
                f"It must return the number, from 0 to {self.num_seats - 1}, of a seat that is present."
            )
        function, what = {
            driver.NAN_REWARD: ("step", "returned a reward that is NaN"),
            driver.NAN_OBS: ("observe", "wrote an observation that is NaN"),
            driver.OUTSIDE: ("observe", f"wrote outside its observation, {self.single_observation_space}"),
        }[kind]
        raise KernelError(
            f"{where(self.kernel.function(function))} {what}, in lane {lane}. "  # type: ignore[arg-type]
            "KernelBatch(..., compiled=False) runs the same lane under a debugger."
        )
