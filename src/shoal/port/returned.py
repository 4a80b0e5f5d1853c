"""What goes into `step` and comes out of it: actions, observations and infos, in fields of the lane."""

from __future__ import annotations

import keyword
from dataclasses import replace

import gymnasium as gym
import numpy as np

from shoal.port.joining import layout_of
from shoal.port.layouts import ArrL, Columns, NumL
from shoal.port.legacy_draws import LegacyDraws
from shoal.port.refusal import Cannot, Restart
from shoal.port.values import INT, Cells, Const, DictV, Kind, Mem, Num, Opaque, Seq, Value

Infos = dict[str, NumL | ArrL]
"""The infos that are kept, and how."""


class Returned(LegacyDraws):
    """How actions are read, and what is returned is kept."""

    columns: dict[str, tuple[np.dtype, tuple[int, ...]]]

    def action(self, space: gym.Space, expr: str) -> Value:
        if isinstance(space, gym.spaces.Discrete):
            self.stable.add(expr)
            if int(space.start) >= 0:
                self.natural.add(expr)
            return Num(expr, Kind(INT))
        if isinstance(space, gym.spaces.Dict):
            return DictV({key: self.action(sub, f"{expr}.{key}") for key, sub in space.items()}, -1)
        if isinstance(space, gym.spaces.Tuple):
            return Seq([self.action(sub, f"{expr}[{k}]") for k, sub in enumerate(space.spaces)])
        if space.shape == ():
            return Num(expr, Kind(np.dtype(space.dtype)))
        shape, dtype = space.shape, np.dtype(space.dtype)
        if shape is None or dtype.kind not in "biuf":
            raise Cannot(f"takes actions of {space}", "Use Box, Discrete, MultiDiscrete or MultiBinary.")
        size = int(np.prod(shape))
        if size > 16 or ("action",) in self.decisions.memory:
            return Mem(expr, shape, dtype, [(k, "0", 1) for k in range(len(shape))], False)
        exprs = [f"{expr}[{', '.join(map(str, at))}]" for at in np.ndindex(shape)]
        self.stable |= set(exprs)
        return Cells(shape, dtype, exprs, False, ("action",))

    # ------------------------------------------------------------------ what is returned

    def write_obs(self, space: gym.Space, name: str, value: Value) -> None:
        value = self.simple(value)
        if isinstance(space, gym.spaces.Dict):
            given = value.items if isinstance(value, DictV) else {k: Const(v) for k, v in value.value.items()}  # type: ignore[attr-defined]
            for key, sub in space.items():
                self.write_obs(sub, f"{name}_{key}", given[key])
            return
        if isinstance(space, gym.spaces.Tuple):
            for k, (sub, part) in enumerate(zip(space.spaces, self.items(value), strict=True)):
                self.write_obs(sub, f"{name}_{k}", part)
            return
        layout = self.obs_layout(space, name)
        if isinstance(layout, NumL):
            number = (
                self.cast(self.number(value), layout.kind.dtype)
                if not isinstance(space, gym.spaces.Discrete)
                else self.number(value)
            )
            self.write(layout, f"s.{name}", Num(number.expr, layout.kind))
        else:
            self.write(layout, f"s.{name}", self.array(value, layout.dtype))
        self.columns |= layout.columns(name)

    def obs_layout(self, space: gym.Space, name: str) -> NumL | ArrL:
        if isinstance(space, gym.spaces.Discrete):
            return NumL(Kind(INT))
        if not isinstance(space, gym.spaces.Box | gym.spaces.MultiDiscrete | gym.spaces.MultiBinary):
            raise Cannot(
                f"observes a {type(space).__name__}", "Use Box, Discrete, MultiDiscrete, MultiBinary, Dict or Tuple."
            )
        dtype, shape = np.dtype(space.dtype), space.shape
        return ArrL(shape, dtype, int(np.prod(shape)) > 16) if shape else NumL(Kind(dtype))

    def observe_lines(self, space: gym.Space, name: str, out: str) -> list[str]:
        if isinstance(space, gym.spaces.Dict):
            return [
                line for key, sub in space.items() for line in self.observe_lines(sub, f"{name}_{key}", f"{out}.{key}")
            ]
        if isinstance(space, gym.spaces.Tuple):
            return [
                line
                for k, sub in enumerate(space.spaces)
                for line in self.observe_lines(sub, f"{name}_{k}", f"{out}[{k}]")
            ]
        layout = self.obs_layout(space, name)
        if isinstance(layout, NumL):
            return [f"{out}[0] = s.{name}"]
        if not layout.memory:
            return [f"{out}[{', '.join(map(str, at))}] = s.{name}_{k}" for k, at in enumerate(np.ndindex(layout.shape))]
        indices = [f"i{k}" for k in range(len(layout.shape))]
        lines = [f"{out}[{', '.join(indices)}] = s.{name}[{', '.join(indices)}]"]
        for index, n in reversed(list(zip(indices, layout.shape, strict=True))):
            lines = [f"for {index} in range({n}):", *["    " + line for line in lines]]
        return lines

    def keep_info(self, info: Value) -> Infos:
        """Numbers and arrays of the info dict go into fields; what they are."""
        if isinstance(info, Const) and isinstance(info.value, dict):
            info = DictV({k: Const(v) for k, v in info.value.items()})
        if not isinstance(info, DictV):
            self.note("infos are left out: their keys are not the same in all branches")
            return {}
        kept: Infos = {}
        for key, value in info.items.items():
            value = self.simple(value)
            layout = layout_of(value)
            usable = (
                isinstance(key, str)
                and key.isidentifier()
                and not keyword.iskeyword(key)
                and not hasattr(np.record, key)
            )
            if isinstance(value, Seq) and all(isinstance(layout_of(i), NumL) for i in value.items) and value.items:
                value = self.array(value)
                layout = layout_of(value)
            storable = usable and isinstance(layout, NumL | ArrL) and not isinstance(value, Opaque)
            if not storable or key in self.decisions.left_out:
                self.decisions.left_out.add(key)
                self.note(f"the info {key!r} is left out: it is not a number or an array of fixed shape")
                continue
            if isinstance(layout, ArrL):
                layout = replace(layout, memory=True)
            assert isinstance(layout, NumL | ArrL)
            self.write(layout, f"s.info_{key}", value)
            kept[key] = layout
        return kept

    def no_infos(self, infos: Columns) -> list[str]:
        """Lines that set infos which a function does not give to zero."""
        with self.block() as lines:
            for key, (dtype, shape) in infos.items():
                self.note(f"the info {key!r} is 0 where the original does not give it")
                self.store_array(field_named(f"s.info_{key}", dtype, shape), Const(dtype.type(0)))
        return lines

    def info_columns(self, reset: Infos, step: Infos) -> Columns:
        if self.decisions.left_out & {*reset, *step}:  # what one function cannot tell, the other would leave behind
            raise Restart
        found: Columns = {}
        for key in {**reset, **step}:
            layouts = [part[key] for part in (reset, step) if key in part]
            shapes = {layout.shape if isinstance(layout, ArrL) else () for layout in layouts}
            if len(shapes) > 1:
                raise Cannot(f"gives the info {key!r} in several shapes", "Give it one shape.")
            dtype = np.result_type(
                *[layout.dtype if isinstance(layout, ArrL) else layout.kind.dtype for layout in layouts]
            )
            found[key] = (dtype, shapes.pop())
            self.columns[f"info_{key}"] = found[key]
        return found


def field_named(name: str, dtype: np.dtype, shape: tuple[int, ...]) -> Num | Mem:
    """A field as a place to write to."""
    if not shape:
        return Num(name, Kind(dtype))
    return Mem(name, shape, dtype, [(k, "0", 1) for k in range(len(shape))])
