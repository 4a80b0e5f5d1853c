"""Attributes that change their type: an array after `reset`, a tuple after `step`.

Both share their columns, and one more says which it is. The functions are written once for each, so that inside every
version the type is known. Where the versions say the same, there is one.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shoal.port.joining import join, layout_of
from shoal.port.layouts import Columns, Exported, Index, Layout
from shoal.port.refusal import Cannot
from shoal.port.values import Value

if TYPE_CHECKING:
    from shoal.port.code import Code


@dataclass(frozen=True)
class VarL(Layout):
    """One of several layouts."""

    options: tuple[Layout, ...]

    def columns(self, name: str, dims: tuple[int, ...] = ()) -> Columns:
        found: Columns = {f"{name}_is": (np.dtype(np.int8), dims)}
        for option in self.options:
            for column, (dtype, shape) in option.columns(name, dims).items():
                if column in found:
                    if found[column][1] != shape:
                        raise Cannot("changes its shape", "Keep one shape in each attribute.")
                    dtype = np.result_type(dtype, found[column][0])
                found[column] = (dtype, shape)
        return found

    def read(self, name: str, index: Index = ()) -> Value:
        raise Cannot("has not always the same type, and is kept inside a list", "Give it one type.")

    def load(self, code: Code, base: str) -> Value:
        """The value where its type is known."""
        if base not in code.variants:
            raise Cannot(
                f"reads {base.removeprefix('s.')!r}, whose type here depends on the way taken",
                "Give it one type in all branches.",
            )
        return self.options[code.variants[base]].read(base)

    def store(self, code: Code, base: str, value: Value) -> int:
        """Write the value; which of the types it has."""
        wanted = layout_of(value)
        for k, option in enumerate(self.options):
            try:
                fits = join(option, wanted) == option
            except Cannot:
                continue
            if fits:
                code.write(option, base, value)
                code.emit(f"{base}_is = {k}")
                return k
        raise Cannot("is given a type that it never had while it was watched", "Give it one type everywhere.")

    def export(self, x: object, name: str) -> Exported:
        from shoal.port.watch import layout_from

        seen = layout_from(x)
        for k, option in enumerate(self.options):
            try:
                fits = join(option, seen) == option
            except Cannot:
                continue
            if fits:
                return {f"{name}_is": np.int8(k), **option.export(x, name)}
        raise Cannot("has a type that was not seen before")


def says_the_same(lines: list[str], others: list[str]) -> bool:
    """Whether two versions of a function differ in the names of their variables at most."""
    return len(lines) == len(others) and _with_numbers(lines) == _with_numbers(others)


def _with_numbers(lines: list[str]) -> str:
    """Code whose variables are named by the order in which they are first met."""
    tree = ast.parse("\n".join(lines))
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    stored = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    order: dict[str, int] = {}
    for node in names:
        if node.id in stored:
            node.id = f"_{order.setdefault(node.id, len(order))}"
    return ast.dump(tree)
