"""From a watched environment to the source of a kernel: `reset`, `step`, `observe` and `inform` as text."""

from __future__ import annotations

import ast
import inspect
import keyword
import textwrap
from dataclasses import dataclass, replace
from typing import Any

import gymnasium as gym
import numpy as np

from shoal.port import mt, pcg
from shoal.port.code import Decisions
from shoal.port.declarations import (
    _field,
    _helpers,
    _inform_lines,
    _Initial,
    _is_set_first,
    _Rebound,
    space_text,
)
from shoal.port.draws import Draws
from shoal.port.joining import layout_of
from shoal.port.layouts import ArrL, DictL, ListL, MaybeL, NumL, ObjL, SeqL, tidy
from shoal.port.refusal import Cannot, Obstacle, Refused, Restart
from shoal.port.values import INT, Cells, Const, DictV, Kind, Mem, Num, Obj, Opaque, Seq, Value, as_float, literal
from shoal.port.variants import VarL
from shoal.port.watch import Watched

STREAMS = {"pcg": pcg.FIELDS, "mt": mt.FIELDS}
MOST_ATTEMPTS = 400
LINE = 110


@dataclass
class Source:
    """A translated environment."""

    name: str
    text: str
    tables: dict[str, np.ndarray]
    layout: ObjL
    limit: int | None
    streams: dict[str, str]
    """`pcg` and `mt`, if numbers are drawn from them, and where the environment keeps that generator."""
    renewed: bool
    """Whether every `reset` makes a new generator: only those with a seed can be compared."""
    notes: list[str]
    inexact: list[str]
    reached: list[str]
    files: list[str]
    space: gym.Space
    infos: list[str]
    in_columns: bool


def translate(watched: Watched, name: str) -> Source:
    """The kernel of a watched environment; `Refused` where something stands in the way."""
    decisions = Decisions()
    for _ in range(MOST_ATTEMPTS):
        try:
            return Writer(watched, decisions).source(name)
        except Restart:
            continue
    raise Refused(
        Obstacle(
            inspect.getsourcefile(type(watched.env)) or "?",
            0,
            name,
            "the class",
            "does not settle on types for its variables",
            "Give every variable and attribute one type.",
        )
    )


class Writer(Draws):
    """One attempt at translating, with what was decided by those before."""

    def __init__(self, watched: Watched, decisions: Decisions) -> None:
        super().__init__(decisions)
        self.watched = watched
        self.layout = self._settled(watched.layout, "")
        self.helpers = list(_helpers(self.layout))
        self.rebound = _Rebound(watched.env, self.helpers)
        self.reached: dict[str, None] = {}
        self.streams: dict[str, str] = {}
        self.renewed = False
        self.variants: dict[str, int] = {}
        self.used |= set(self.layout.columns("")) | set(pcg.FIELDS) | set(mt.FIELDS)
        self.columns: dict[str, tuple[np.dtype, tuple[int, ...]]] = {}
        self.loops = []

    def _settled(self, layout: Any, name: str) -> Any:
        """The layout of an attribute after what attempts have found out."""
        decided = self.decisions.layouts.get(("attribute", name))
        layout = decided if decided is not None else layout
        if isinstance(layout, ObjL):
            stem = f"{name}_" if name else ""
            return ObjL(
                {a: self._settled(item, stem + tidy(a)) for a, item in layout.attributes.items()}, layout.example
            )
        if isinstance(layout, ArrL):
            return replace(layout, memory=layout.memory or name in self.decisions.columns_in_memory)
        if isinstance(layout, MaybeL):
            return MaybeL(self._settled(layout.inner, name))
        if isinstance(layout, SeqL):
            return replace(
                layout, items=tuple(self._settled(item, f"{name}_{k}") for k, item in enumerate(layout.items))
            )
        if isinstance(layout, DictL):
            return DictL(tuple((key, self._settled(item, f"{name}_{k}")) for k, (key, item) in enumerate(layout.items)))
        if isinstance(layout, VarL):
            return VarL(tuple(self._settled(option, name) for option in layout.options))
        if isinstance(layout, ListL):
            item = self.decisions.layouts.get(("items", name), layout.item)
            grows = decided is None and not (layout.fixed or layout.drops)
            return replace(layout, item=item, cap=max(4 * layout.cap, 16) if grows else layout.cap)
        return layout

    # ------------------------------------------------------------------ the functions

    def source(self, name: str) -> Source:
        env = Obj(self.layout, "s.")
        reset, reset_info = self.function("reset", env, self.reset_once)
        step, step_info = self.function("step", env, self.step_once)
        infos = self.info_columns(reset_info, step_info)
        observe = self.observe_lines(self.watched.env.observation_space, "obs", "out")
        self.columns |= self.layout.columns("")
        if self.watched.limit is not None:
            self.columns["elapsed_steps"] = (np.dtype(np.int32), ())
            reset.append("s.elapsed_steps = 0")
        reset[:0] = [f"{stream}.seed_if_new(s, rng)" for stream in self.streams]
        reset = self.first_values(reset) + reset
        text = self.module(name, reset, step, observe, infos)
        files = sorted({key.rpartition("(")[2].rstrip(")") for key in self.reached})
        return Source(
            name, text, self.tables, self.layout, self.watched.limit, self.streams, self.renewed, list(self.notes), list(self.inexact),
            list(self.reached), files, self.watched.env.observation_space, list(infos),
            all(not shape for _, shape in self.columns.values()),
        )  # fmt: skip

    def function(self, name: str, env: Obj, once: Any) -> tuple[list[str], Any]:
        """The lines of `reset` or `step`: one version for each combination of types that attributes can have."""
        self.lines, self.depth = [], 0
        changing = [f"s.{tidy(a)}" for a, item in self.layout.attributes.items() if isinstance(item, VarL)]
        if not changing or name == "reset":
            self.variants = {}
            info = once(env)
            return self.lines, info
        base, info = changing[0], None
        if len(changing) > 1:
            raise Cannot("several attributes change their types", "Give each attribute one type.")
        count = len(self.layout.attributes[self._name_of(base)].options)
        for k in range(count):
            self.variants = {base: k}
            with self.block(dynamic=False) as lines:
                info = once(env)
            self.emit_block(
                f"if {base}_is == {k}:" if k < count - 1 else f"else:  # {base}_is == {k}", lines
            ) if count > 1 else self.lines.extend(lines)
        return self.lines, info

    def _name_of(self, base: str) -> str:
        return next(a for a in self.layout.attributes if f"s.{tidy(a)}" == base)

    def enter_method(self, name: str, env: Obj, arguments: list[Value], named: dict[str, Value]) -> Value:
        cls = type(self.watched.env)
        owner = next(c for c in cls.__mro__ if name in vars(c))
        self.frame = None  # type: ignore[assignment]
        self.site = (name, 0, 0)
        try:
            return self.call_function(vars(owner)[name], [env, *arguments], named, owner=owner)
        except Cannot as cannot:
            function = vars(owner)[name]
            raise Refused(
                Obstacle(
                    inspect.getsourcefile(function) or "?",
                    function.__code__.co_firstlineno,
                    name,
                    f"def {name}",
                    cannot.reason,
                    cannot.instead,
                )
            ) from None

    def reset_once(self, env: Obj) -> Any:
        parameters = inspect.signature(type(self.watched.env).reset).parameters
        named: dict[str, Value] = {k: Const(None) for k in ("seed", "options") if k in parameters}
        result = self.enter_method("reset", env, [], named)
        return self.guarded("reset", lambda: self.finish_reset(result))

    def finish_reset(self, result: Value) -> Any:
        obs, info = self.items(result, 2)
        self.write_obs(self.watched.env.observation_space, "obs", obs)
        return self.keep_info(info)

    def step_once(self, env: Obj) -> Any:
        action = self.action(self.watched.env.action_space, "action")
        result = self.enter_method("step", env, [action], {})
        return self.guarded("step", lambda: self.finish_step(result))

    def finish_step(self, result: Value) -> Any:
        obs, reward, terminated, truncated, info = self.items(result, 5)
        self.write_obs(self.watched.env.observation_space, "obs", obs)
        kept = self.keep_info(info)
        number = self.number(self.simple(reward))
        texts = []
        for flag in (terminated, truncated):
            test = self.truth(flag)
            texts.append(str(bool(test.value)) if isinstance(test, Const) else test.expr)
        if self.watched.limit is not None:
            self.emit("s.elapsed_steps += 1")
            over = f"s.elapsed_steps >= {self.watched.limit}"
            texts[1] = over if texts[1] == "False" else f"{texts[1]} or {over}"
        reward_text = as_float(number)
        self.emit(f"return {reward_text}, {texts[0]}, {texts[1]}")
        return kept

    def guarded(self, name: str, action: Any) -> Any:
        try:
            return action()
        except Cannot as cannot:
            function = getattr(type(self.watched.env), name)
            last = max(
                (
                    n.lineno
                    for n in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function))))
                    if isinstance(n, ast.Return)
                ),
                default=1,
            )
            line = function.__code__.co_firstlineno + last - 1
            raise Refused(
                Obstacle(
                    inspect.getsourcefile(function) or "?",
                    line,
                    function.__qualname__,
                    f"what {name} returns",
                    cannot.reason,
                    cannot.instead,
                )
            ) from None

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

    def obs_layout(self, space: gym.Space, name: str) -> Any:
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

    def keep_info(self, info: Value) -> dict[str, Any]:
        """Numbers and arrays of the info dict go into fields; what they are."""
        if isinstance(info, Const) and isinstance(info.value, dict):
            info = DictV({k: Const(v) for k, v in info.value.items()})
        if not isinstance(info, DictV):
            self.note("infos are left out: their keys are not the same in all branches")
            return {}
        kept: dict[str, Any] = {}
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
            if not usable or not isinstance(layout, NumL | ArrL) or isinstance(value, Opaque):
                self.note(f"the info {key!r} is left out: it is not a number or an array of fixed shape")
                continue
            if isinstance(layout, ArrL):
                layout = replace(layout, memory=True)
            self.write(layout, f"s.info_{key}", value)
            kept[key] = layout
        return kept

    def info_columns(self, reset: Any, step: Any) -> dict[str, tuple[np.dtype, tuple[int, ...]]]:
        found: dict[str, tuple[np.dtype, tuple[int, ...]]] = {}
        for key in {**(reset or {}), **(step or {})}:
            layouts = [part[key] for part in (reset, step) if part and key in part]
            shapes = {layout.shape if isinstance(layout, ArrL) else () for layout in layouts}
            if len(shapes) > 1:
                raise Cannot(f"gives the info {key!r} in several shapes", "Give it one shape.")
            dtype = np.result_type(
                *[layout.dtype if isinstance(layout, ArrL) else layout.kind.dtype for layout in layouts]
            )
            found[key] = (dtype, shapes.pop())
            self.columns[f"info_{key}"] = found[key]
        return found

    def first_values(self, reset: list[str]) -> list[str]:
        """Fields that `reset` does not set begin as the constructor left them."""
        try:
            values = self.layout.export(_Initial(self.watched), "")
        except Exception:  # attributes that the constructor left unset
            values = {}
            for attribute, item in self.layout.attributes.items():
                try:
                    values |= item.export(self.watched.initial.get(attribute), tidy(attribute))
                except Exception:
                    continue
        lines = []
        for column, (dtype, shape) in self.layout.columns("").items():
            if (
                _is_set_first(column, reset)
                or column not in values
                or np.asarray(values[column]).dtype.kind not in "biuf"
            ):
                continue
            value = np.asarray(values[column]).astype(dtype)
            if not value.any():
                continue
            if not shape:
                lines.append(f"    s.{column} = {literal(value[()])}")
            else:
                lines.append(
                    f"    s.{column}[:] = {self.table(value, 'first')}" if value.ndim == 1 else f"    s.{column}[:] = 0"
                )
        if not lines:
            return []
        self.columns["started"] = (np.dtype(np.bool_), ())
        return ["if not s.started:  # as the constructor leaves it", "    s.started = True", *lines]

    # ------------------------------------------------------------------ the text

    def module(self, name: str, reset: list[str], step: list[str], observe: list[str], infos: dict[str, Any]) -> str:
        env = self.watched.env
        columns = dict(self.columns)
        for stream in self.streams:
            columns |= {key: (field.dtype, field.shape) for key, field in STREAMS[stream].items()}
        if not columns:
            columns["unused"] = (np.dtype(np.int8), ())
        body = [
            f"class {name}(PortedKernel):",
            f'    """{type(env).__qualname__} of {type(env).__module__}, as a kernel."""',
            "",
            f"    observation_space = {space_text(env.observation_space)}",
            f"    action_space = {space_text(env.action_space)}",
            f"    state = record({', '.join(f'{c}={_field(*kind)}' for c, kind in columns.items())})",
            f"    survives = {tuple(columns)!r}",
        ]
        if self.tables:
            body.append(f"    params = {{{', '.join(f'{key!r}: TABLES[{key!r}]' for key in self.tables)}}}")
        if infos:
            body.append(f"    info = record({', '.join(f'{key}={_field(*kind)}' for key, kind in infos.items())})")
        parts = {"reset(s, p, rng)": reset, "step(s, action, p, rng)": step, "observe(s, p, out)": observe}
        if infos:
            parts["inform(s, p, out)"] = _inform_lines(infos)
        for signature, lines in parts.items():
            body += ["", f"    def {signature}:", *["        " + line for line in lines or ["pass"]]]
        kinds = [f"{key} = {text}" for key, text in self.records.items()]
        text = "\n".join([*kinds, "", "", *body]) + "\n"
        return ast.unparse(ast.parse(text))
