"""Parts of a kernel's declaration as text, and what the writer must know beforehand."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

import gymnasium as gym
import numpy as np
from numpy.typing import DTypeLike

from shoal.port.code import type_name
from shoal.port.layouts import DictL, Layout, ListL, MaybeL, ObjL, SeqL
from shoal.port.refusal import Cannot
from shoal.port.values import literal
from shoal.port.watch import Watched

LINE = 110
"""How long lines of source may be."""


class _Initial:
    """The environment as it was made."""

    def __init__(self, watched: Watched) -> None:
        self.__dict__.update(watched.initial)


def _helpers(layout: Layout | None) -> Iterator[ObjL]:
    """Layouts of helper objects anywhere inside."""
    if isinstance(layout, ObjL):
        yield layout
        for item in layout.attributes.values():
            yield from _helpers(item)
    elif isinstance(layout, MaybeL):
        yield from _helpers(layout.inner)
    elif isinstance(layout, ListL):
        yield from _helpers(layout.item)
    elif isinstance(layout, SeqL):
        for item in layout.items:
            yield from _helpers(item)
    elif isinstance(layout, DictL):
        for _, item in layout.items:
            yield from _helpers(item)


def _is_set_first(column: str, lines: list[str]) -> bool:
    """Whether the first line that mentions a field sets it, whatever way is taken."""
    pattern = re.compile(rf"\bs\.{column}\b")
    for line in lines:
        if pattern.search(line):
            bare = line.strip()
            whole = bare.startswith(f"s.{column} =") and not pattern.search(bare.partition("=")[2]) and line == bare
            element = bare.startswith(f"s.{column}[") and not pattern.search(bare.partition(" = ")[2])
            return whole or element
    return False


def _field(dtype: np.dtype, shape: tuple[int, ...]) -> str:
    return type_name(dtype) + (f"[{', '.join(map(str, shape))}]" if shape else "")


def _filled(line: str) -> list[str]:
    """A declaration of the class on lines of a readable length."""
    head = re.match(r"    \w+ = [\w.]*[({]", line)
    if head is None or len(line) <= LINE:
        return [line]
    rows = textwrap.wrap(line[head.end() : -1], LINE - 8, break_long_words=False, break_on_hyphens=False)
    return [head[0], *["        " + row for row in rows], "    " + line[-1]]


def _inform_lines(infos: dict[str, tuple[np.dtype, tuple[int, ...]]]) -> list[str]:
    lines = []
    for key, (_, shape) in infos.items():
        if not shape:
            lines.append(f"out.{key} = s.info_{key}")
            continue
        names = [f"i{k}" for k in range(len(shape))]
        inner = [f"out.{key}[{', '.join(names)}] = s.info_{key}[{', '.join(names)}]"]
        for index, n in reversed(list(zip(names, shape, strict=True))):
            inner = [f"for {index} in range({n}):", *["    " + line for line in inner]]
        lines += inner
    return lines


def space_text(space: gym.Space) -> str:
    """A space as source."""
    if isinstance(space, gym.spaces.Discrete):
        return f"gym.spaces.Discrete({int(space.n)}, start={int(space.start)})"
    if isinstance(space, gym.spaces.MultiDiscrete):
        return f"gym.spaces.MultiDiscrete(np.array({space.nvec.tolist()}), dtype=np.{np.dtype(space.dtype)})"
    if isinstance(space, gym.spaces.MultiBinary):
        return f"gym.spaces.MultiBinary({space.n!r})"
    if isinstance(space, gym.spaces.Dict):
        return f"gym.spaces.Dict({{{', '.join(f'{key!r}: {space_text(sub)}' for key, sub in space.items())}}})"
    if isinstance(space, gym.spaces.Tuple):
        return f"gym.spaces.Tuple(({''.join(space_text(sub) + ', ' for sub in space.spaces)}))"
    if isinstance(space, gym.spaces.Box):
        return (
            f"gym.spaces.Box({_bound(space.low)}, {_bound(space.high)}, {space.shape}, np.{_dtype_name(space.dtype)})"
        )
    raise Cannot(
        f"has a space of type {type(space).__name__}", "Use Box, Discrete, MultiDiscrete, MultiBinary, Dict or Tuple."
    )


def _dtype_name(dtype: DTypeLike | None) -> str:
    name = str(np.dtype(dtype))
    return "bool_" if name == "bool" else name


def _bound(array: np.ndarray) -> str:
    array = array.astype(np.int8) if array.dtype == np.bool_ else array  # a Box takes no bools as bounds
    first = array.reshape(-1)[0]
    if (array == first).all():
        return literal(first).replace("math.inf", "np.inf")
    return f"np.array({_nested(array)}, np.{_dtype_name(array.dtype)})"


def _nested(array: np.ndarray) -> str:
    if array.ndim == 0:
        return literal(array[()]).replace("math.inf", "np.inf")
    return f"[{', '.join(_nested(part) for part in array)}]"
