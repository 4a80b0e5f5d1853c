"""Options are frozen dataclasses: checks, config.json, flags, help and tables in the docs fall out of one definition.

A field's type says what it may be, its default what it is, the string below it what it means. Values come from Python,
from a file or as words of a command line; `build` checks them all alike. Only the standard library is imported here.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import itertools
import json
import math
import re
import textwrap
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

from shoal.errors import ConfigError, nearest, unknown_name
from shoal.reading import shortened

O = TypeVar("O")  # noqa: E741 — as in `World[O]`
Values = dict[str, Any]
"""Settings by name, nested as config.json is: what JSON can hold, and whatever a caller in Python hands over."""


@dataclass(frozen=True)
class Flag:
    """How a field looks on the command line, where that is not just its name: `Annotated[str, Flag("FILE")]`."""

    metavar: str | None = None
    """What stands for its value in the help."""
    positional: bool = False
    """It is given without a flag."""
    aliases: tuple[str, ...] = ()
    """Other flags that mean the same."""
    words: tuple[str, ...] = ()
    """Words that are accepted although the type does not include them, e.g. auto for a number."""
    hidden: bool = False
    """It has no flag."""


@dataclass(frozen=True)
class NoOptions:
    """Nothing can be set."""


@dataclass(frozen=True)
class OpenOptions:
    """Options that only their owner can check, e.g. keyword arguments of a user's class."""

    values: Values = field(default_factory=dict)


class Range(str):
    """Numbers from a lowest to a highest, written "8..12", from which every episode of a lane draws its own."""

    def __new__(cls, text: str) -> Range:
        parts = re.fullmatch(rf"\s*({_NUMBER})\s*\.\.\s*({_NUMBER})\s*", text)
        if parts is None or float(parts[1]) > float(parts[2]):
            raise ConfigError(f"{text!r} is not a range. Write the lowest and the highest number, e.g. 8..12.")
        return super().__new__(cls, f"{parts[1]}..{parts[2]}")

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest number."""
        low, _, high = self.partition("..")
        return float(low), float(high)


class Duration(str):
    """A span of time, written "90s", "10m" or "2h"."""

    def __new__(cls, text: str) -> Duration:
        parts = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smh])\s*", text)
        if parts is None or float(parts[1]) == 0:
            raise ConfigError(f"{text!r} is not a span of time. Write seconds, minutes or hours: 90s, 10m or 2h.")
        return super().__new__(cls, f"{parts[1]}{parts[2]}")

    @property
    def seconds(self) -> float:
        """How long it is."""
        return float(self[:-1]) * {"s": 1, "m": 60, "h": 3600}[self[-1]]


_NUMBER = r"[+-]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?"
Number = float | Range | tuple[float, ...]
"""A parameter of lanes: one number for all, a range from which each episode draws, or one number per lane."""
Count = int | Range | tuple[int, ...]
"""The same for whole numbers."""


# ---------------------------------------------------------------------- values to options, and back


def build(cls: type[O], values: Mapping[str, object], where: str, listed_by: str, prefix: str = "") -> O:
    """`cls` from values whose names and types are checked.

    `where` ends the sentence about a name that does not exist ("of connect4", "in config.json"), `listed_by` says what
    shows them all; `prefix` stands before every name in messages.
    """
    if not isinstance(values, Mapping):
        what = f"{prefix.removesuffix('.')} " if prefix else ""
        raise ConfigError(f"The options {what}{where} must be a table, not {shortened(values)}.")
    if cls is OpenOptions:
        return typing.cast(O, OpenOptions(dict(values)))
    hints = hints_of(cls)
    defaults = {f.name: default_of(f) for f in dataclasses.fields(cls)}  # type: ignore[arg-type]
    for name in values:
        if name not in hints:
            raise unknown_name("option", f"{prefix}{name}", [prefix + known for known in hints], listed_by, where)
    fitted = {name: fit(value, hints[name], prefix + name) for name, value in values.items()}
    for name in hints:
        if name in fitted:
            _check_size(fitted[name], defaults[name], prefix + name)
        elif defaults[name] is dataclasses.MISSING:
            raise ConfigError(f"{prefix}{name} is missing{where and ' ' + where}.")
    return cls(**fitted)


def as_values(options: object) -> Values:
    """Every field of a dataclass by name, nested ones as tables: what `build` takes."""
    if isinstance(options, OpenOptions):
        return dict(options.values)
    return {
        f.name: as_values(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else value
        for f in dataclasses.fields(options)  # type: ignore[arg-type]
        for value in (getattr(options, f.name),)
    }


def hints_of(cls: type) -> dict[str, Any]:
    """The type of every field, with what `Annotated` adds."""
    hints = typing.get_type_hints(cls, include_extras=True)
    return {f.name: hints[f.name] for f in dataclasses.fields(cls) if f.init}


def default_of(f: dataclasses.Field) -> Any:
    """What a field is unless it is set; `dataclasses.MISSING` if it must be."""
    return f.default_factory() if f.default_factory is not dataclasses.MISSING else f.default


def flag_of(hint: object) -> Flag:
    """What `Annotated` says about the flag of a field, or the usual."""
    marks = getattr(hint, "__metadata__", ())
    return next((mark for mark in marks if isinstance(mark, Flag)), Flag())


@functools.cache
def docs_of(cls: type) -> dict[str, str]:
    """What stands below each field in the source (or in its metadata under "help"), as one line each."""
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if not dataclasses.is_dataclass(base) or "__annotations__" not in vars(base):
            continue
        try:
            (tree,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        except (OSError, TypeError, SyntaxError, ValueError):  # made by a program, so there is no source
            continue
        body = typing.cast(ast.ClassDef, tree).body
        for line, below in itertools.pairwise(body):
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and isinstance(below, ast.Expr):
                text = below.value.value if isinstance(below.value, ast.Constant) else None
                if isinstance(text, str):
                    docs[line.target.id] = " ".join(text.split())
    of_fields = {f.name: f.metadata["help"] for f in dataclasses.fields(cls) if "help" in f.metadata}
    return {**docs, **of_fields}


# ---------------------------------------------------------------------- one value


def fit(value: object, hint: object, name: str) -> Any:
    """`value` as `hint` wants it: JSON has no tuples, and writes 1 for 1.0. A `ConfigError` says what it takes."""
    try:
        return _fitted(value, hint)
    except _Misfit:
        pass
    choices = [choice for member in _members(hint) if get_origin(member) is Literal for choice in get_args(member)]
    meant = nearest(value, map(str, choices)) if isinstance(value, str) else None
    hint_line = f" Did you mean {meant!r}?" if meant else ""
    raise ConfigError(f"Invalid value for {name}: {shortened(value)} is not {describe(hint)}.{hint_line}")


def _check_size(value: object, default: object, name: str) -> None:
    """`ConfigError` for what is too large, NaN or infinite, except where a field is infinite unless it is set."""
    for each in value if isinstance(value, list | tuple) else (value,):
        if isinstance(each, float) and not math.isfinite(each) and each != default:
            raise ConfigError(f"Invalid value for {name}: {each} is not a finite number.")
        if isinstance(each, int) and abs(each) >= 2**64:
            raise ConfigError(f"Invalid value for {name}: {shortened(each)} is too large.")


def read_text(text: str, hint: object, name: str) -> Any:
    """A word of the command line as `hint` wants it: JSON where that fits, otherwise the word itself."""
    if text in flag_of(hint).words:
        return text
    if bool in _members(hint) and text.lower() in ("true", "false"):
        text = text.lower()
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = text
    if parsed is None and type(None) not in _members(hint):
        parsed = text
    # a number or a list is meant as one wherever the field takes them, also where it takes text besides
    for candidate in (text, parsed) if isinstance(parsed, str) else (parsed, text):
        try:
            return _fitted(candidate, hint)
        except _Misfit:
            continue
    if text.lower() == "none" and type(None) in _members(hint):
        return None
    return fit(text, hint, name)


def describe(hint: object) -> str:
    """In words what a field takes."""
    members = [member for member in _members(hint) if member is not type(None)]
    *others, last = dict.fromkeys(_describe_one(member) for member in members)
    words = f"{', '.join(others)} or {last}" if others else last
    return f"{words}, or none" if type(None) in _members(hint) and len(members) > 1 else words


class _Misfit(Exception):
    """The value is not of this type."""


_NAMES: dict[object, str] = {
    int: "a whole number", float: "a number", bool: "true or false", str: "text", Path: "a path", dict: "a table",
    list: "a list", tuple: "a list", Enum: "a member of an enum", Range: "a range such as 8..12",
    Duration: "a span of time such as 10m",
}  # fmt: skip


def _members(hint: object) -> tuple[object, ...]:
    """The alternatives of a union, or the type itself, without what `Annotated` adds."""
    while hasattr(hint, "__metadata__"):
        hint = hint.__origin__  # type: ignore[attr-defined]
    return get_args(hint) if get_origin(hint) in (typing.Union, types.UnionType) else (hint,)


def _describe_one(member: Any) -> str:
    origin, arguments = get_origin(member), get_args(member)
    if origin is Literal:
        return ("one of " if len(arguments) > 1 else "") + ", ".join(map(repr, arguments))
    if origin in (tuple, list) and arguments:
        return f"a list whose items are {describe(arguments[0])}"
    kind = origin or member
    return _NAMES.get(kind, f"a {getattr(kind, '__name__', kind)}")


def _fitted(value: Any, hint: object) -> Any:
    # a list stays a list where a field takes both lists and tuples
    for member in sorted(_members(hint), key=lambda member: get_origin(member) is not type(value)):
        try:
            return _fitted_to_one(value, member)
        except _Misfit:
            continue
    raise _Misfit


def _fitted_to_one(value: Any, member: Any) -> Any:
    origin, arguments = get_origin(member), get_args(member)
    if member in (object, Any) or isinstance(member, TypeVar):
        return value
    if origin is Literal:
        for choice in arguments:
            if type(value) is type(choice) and _folded(value) == _folded(choice):
                return choice
        raise _Misfit
    if (origin or member) in (tuple, list) and getattr(value, "ndim", 0) == 1:
        value = value.tolist()  # a NumPy array where a list is wanted
    if origin is tuple or member is tuple:
        if not isinstance(value, list | tuple):
            raise _Misfit
        return tuple(_fitted(item, arguments[0]) for item in value) if arguments else tuple(value)
    if origin is list:
        if not isinstance(value, list | tuple):
            raise _Misfit
        if arguments[0] is Any or all(type(item) is arguments[0] for item in value):
            return list(value)  # a replay has a hundred thousand numbers
        return [_fitted(item, arguments[0]) for item in value]
    if origin is not None and issubclass(origin, Mapping):
        return _fitted_table(value, arguments)
    if member is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise _Misfit from None
    if member is Path and isinstance(value, str):
        return Path(value)
    if member is Range and isinstance(value, str) and ".." in value:
        return Range(value)
    if member is Duration and isinstance(value, str) and re.search(r"\d\s*[a-z]", value):
        return Duration(value)
    if member is type(None) and value is None:
        return None
    numpys = getattr(value, "item", None)  # a NumPy scalar where a number is wanted
    if member in (int, float, bool) and numpys is not None and getattr(value, "ndim", 1) == 0:
        return _fitted_to_one(numpys(), member)
    if isinstance(member, type) and isinstance(value, member) and not (member is int and isinstance(value, bool)):
        return value
    raise _Misfit


def _folded(choice: object) -> object:
    """A word in any spelling is the same: without_mask and WITHOUT-MASK."""
    return choice.lower().replace("_", "-") if isinstance(choice, str) else choice


def _fitted_table(value: Any, arguments: tuple[object, ...]) -> dict[Any, Any]:
    """JSON has no numbers as keys."""
    if not isinstance(value, Mapping):
        raise _Misfit
    if not arguments:
        return dict(value)
    of_key, of_value = arguments
    try:
        return {
            (int(key) if of_key is int and isinstance(key, str) else _fitted(key, of_key)): _fitted(item, of_value)
            for key, item in value.items()
        }
    except ValueError:
        raise _Misfit from None
