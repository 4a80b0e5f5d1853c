"""From a watched environment to the source of a kernel: `reset`, `step`, `observe` and `inform` as text."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, replace

import gymnasium as gym
import numpy as np

from shoal.port import mt, pcg
from shoal.port.code import Decisions
from shoal.port.declarations import (
    _field,
    _filled,
    _helpers,
    _inform_lines,
    _Initial,
    _is_set_first,
    space_text,
)
from shoal.port.layouts import ArrL, Columns, DictL, Layout, ListL, MaybeL, ObjL, RowsL, SeqL, tidy
from shoal.port.refusal import UNSETTLED, Cannot, Obstacle, Refused, Restart
from shoal.port.returned import Infos, Returned
from shoal.port.seen_twice import Holder
from shoal.port.sharing import Homes
from shoal.port.values import Const, Obj, Value, as_float, literal
from shoal.port.variants import VarL, says_the_same
from shoal.port.watch import Watched

STREAMS = {"pcg": pcg.FIELDS, "mt": mt.FIELDS}
MOST_ATTEMPTS = 400


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
    constants: dict[str, str]
    """Constants of modules and classes that were folded into the text, by place, and their fingerprints."""
    space: gym.Space
    infos: list[str]
    in_columns: bool


def translate(watched: Watched, name: str, room: int = 1) -> Source:
    """The kernel of a watched environment, with lists `room` times as long as is likely.

    `Refused` where something stands in the way.
    """
    decisions = Decisions(room=room)
    for _ in range(MOST_ATTEMPTS):
        try:
            return Writer(watched, decisions).source(name)
        except Restart as restart:
            refused = restart.refused
    file = inspect.getsourcefile(type(watched.env)) or "?"
    raise refused or Refused(Obstacle(file, 1, name, "what step returns", UNSETTLED.reason, UNSETTLED.instead))


class Writer(Returned):
    """One attempt at translating, with what was decided by those before."""

    def __init__(self, watched: Watched, decisions: Decisions) -> None:
        super().__init__(decisions)
        self.watched = watched
        layout = self._settled(watched.layout, "")
        assert isinstance(layout, ObjL)
        self.listed = watched.listed
        self.layout: ObjL = self.with_places(layout)
        self.helpers = list(_helpers(self.layout))
        self.shares, self.changes, self.kept = frozenset(), [], {}
        self.ended_shares: frozenset[tuple[Homes, Homes]] = frozenset()
        decisions.settle_references()
        self.reached: dict[str, None] = {}
        self.constants: dict[str, str] = {}
        self.streams: dict[str, str] = {}
        self.renewed = False
        self.variants: dict[str, int] = {}
        self.used |= set(self.layout.columns("")) | set(pcg.FIELDS) | set(mt.FIELDS)
        self.columns: dict[str, tuple[np.dtype, tuple[int, ...]]] = {}
        self.loops = []

    def _settled(self, layout: Layout, name: str, decided: bool = False) -> Layout:
        """The layout of an attribute after what attempts have found out; `decided` if it is part of such a layout."""
        known = self.decisions.layouts.get(("attribute", name))
        return self._arranged(layout if known is None else known, name, decided or known is not None)

    def _arranged(self, layout: Layout, name: str, decided: bool) -> Layout:
        """A layout with its parts settled."""
        if isinstance(layout, ObjL):
            stem = f"{name}_" if name else ""
            held = {a: self._settled(i, stem + tidy(a), decided) for a, i in layout.attributes.items()}
            return ObjL(held, layout.example)
        if isinstance(layout, ArrL):
            return replace(layout, memory=layout.memory or name in self.decisions.columns_in_memory)
        if isinstance(layout, MaybeL):
            return MaybeL(self._arranged(layout.inner, name, decided))
        if isinstance(layout, SeqL):
            parts = tuple(self._settled(item, f"{name}_{k}", decided) for k, item in enumerate(layout.items))
            return replace(layout, items=parts)
        if isinstance(layout, DictL):
            if isinstance(layout, RowsL):
                rows = self._arranged(layout.rows, name, decided)
                assert isinstance(rows, ListL)
                return RowsL(tuple((key, rows.item) for key, _ in layout.items if rows.item is not None))
            items = enumerate(layout.items)
            return DictL(tuple((key, self._settled(item, f"{name}_{k}", decided)) for k, (key, item) in items))
        if isinstance(layout, VarL):
            return VarL(tuple(self._arranged(option, name, decided) for option in layout.options))
        if isinstance(layout, ListL):
            item = self.decisions.layouts.get(("items", name), layout.item)
            if item is not None:
                item = self._arranged(item, layout.base(name), decided or item is not layout.item)
            grows = not (decided or layout.fixed or layout.drops)
            return replace(layout, item=item, cap=self.decisions.most_items(layout.cap) if grows else layout.cap)
        return layout

    # ------------------------------------------------------------------ the functions

    def source(self, name: str) -> Source:
        env = Obj(self.layout, "s.")
        reset, reset_info = self.function("reset", env, self.reset_once)
        step, step_info = self.function("step", env, self.step_once)
        if not self.ended_shares <= self.decisions.shares:  # what the next call begins with
            self.decisions.shares |= self.ended_shares
            raise Restart
        infos = self.info_columns(reset_info, step_info)
        reset[:0] = self.no_infos({key: infos[key] for key in infos if key not in reset_info})
        step[:0] = self.no_infos({key: infos[key] for key in infos if key not in step_info})
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
            name, text, self.tables, self.layout, self.watched.limit, self.streams, self.renewed,
            list(self.notes), list(self.inexact),
            list(self.reached), files, self.constants, self.watched.env.observation_space, list(infos),
            all(not shape for _, shape in self.columns.values()),
        )  # fmt: skip

    def function(self, name: str, env: Obj, once: Callable[[Obj], Infos]) -> tuple[list[str], Infos]:
        """The lines of `reset` or `step`: one version for each combination of types that attributes can have."""
        self.lines, self.depth, self._computed = [], 0, {}
        self.shares, self.copying = frozenset(self.decisions.shares) | self.shares_seen(), False
        self.changes = []
        changing = {f"s.{tidy(a)}": item for a, item in self.layout.attributes.items() if isinstance(item, VarL)}
        if not changing or name == "reset":
            self.variants = {}
            info = once(env)
            self.ended_shares |= self.shares
            return self.lines, info
        if len(changing) > 1:
            raise Cannot("several attributes change their types", "Give each attribute one type.")
        ((base, item),) = changing.items()
        versions = []
        for k in range(len(item.options)):
            self.variants = {base: k}
            with self.block(dynamic=False) as lines:
                info = once(env)
            self.ended_shares |= self.shares
            versions.append(lines)
        if all(says_the_same(lines, versions[0]) for lines in versions[1:]):
            return versions[0], info
        for k, lines in enumerate(versions):
            self.emit_block(f"if {base}_is == {k}:" if k < len(versions) - 1 else f"else:  # {base}_is == {k}", lines)
        return self.lines, info

    def shares_seen(self) -> frozenset[tuple[Homes, Homes]]:
        """Places of the state that were one thing while it was watched."""

        def fields(holder: Holder) -> Homes:
            name, itself = holder
            found = frozenset(self.layout.attributes[name].columns(f"s.{tidy(name)}"))
            return found if itself else found - {f"s.{tidy(name)}_len"}

        places = {name for name, layout in self.layout.attributes.items() if self.place_of(layout) is not None}
        pairs = [(a, b) for a, b in self.watched.held_twice if not places & {a[0], b[0]}]
        return frozenset((fields(a), fields(b)) for a, b in pairs)

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

    def reset_once(self, env: Obj) -> Infos:
        parameters = inspect.signature(type(self.watched.env).reset).parameters
        named: dict[str, Value] = {k: Const(None) for k in ("seed", "options") if k in parameters}
        result = self.enter_method("reset", env, [], named)
        return self.guarded("reset", lambda: self.finish_reset(result))

    def finish_reset(self, result: Value) -> Infos:
        obs, info = self.items(result, 2)
        self.write_obs(self.watched.env.observation_space, "obs", obs)
        return self.keep_info(info)

    def step_once(self, env: Obj) -> Infos:
        action = self.action(self.watched.env.action_space, "action")
        result = self.enter_method("step", env, [action], {})
        return self.guarded("step", lambda: self.finish_step(result))

    def finish_step(self, result: Value) -> Infos:
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

    def guarded(self, name: str, action: Callable[[], Infos]) -> Infos:
        self.copying = True  # what is returned is a copy, whatever the original hands out
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

    def module(self, name: str, reset: list[str], step: list[str], observe: list[str], infos: Columns) -> str:
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
        return "\n".join(line for long in ast.unparse(ast.parse(text)).splitlines() for line in _filled(long))
