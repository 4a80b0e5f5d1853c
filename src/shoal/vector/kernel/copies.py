"""Copies that are written as loops over all cells, `for r ...: for c ...: out[2, r, c] = s.board[r, c]`.

Compiled, loops within loops move a few bytes at a time; as one statement they move as many as a register holds.
"""

from __future__ import annotations

import ast

from shoal.vector.kernel.kinds import Cells, Scope


def whole_copy(loop: ast.For, scope: Scope) -> list[ast.stmt] | None:
    """`a[...] = b[...]` and the last values of the loops' variables, if that is what these loops do."""
    names: list[str] = []
    sizes: list[int] = []
    inner: ast.stmt = loop
    while isinstance(inner, ast.For):
        size = _turns(inner, scope)
        if size is None or not isinstance(inner.target, ast.Name) or len(inner.body) != 1 or inner.orelse:
            return None
        names.append(inner.target.id)
        sizes.append(size)
        inner = inner.body[0]
    if len(set(names)) < len(names) or not isinstance(inner, ast.Assign) or len(inner.targets) != 1:
        return None
    to, source = (_without(side, names, sizes, scope) for side in (inner.targets[0], inner.value))
    if to is None or source is None or _cuts_off(to, source, scope):
        return None
    target = to if isinstance(to, ast.Subscript) else ast.Subscript(to, ast.Slice(), ast.Load())
    target.ctx = ast.Store()
    last: list[ast.stmt] = [
        ast.Assign([ast.Name(name, ast.Store())], ast.Constant(size - 1))
        for name, size in zip(names, sizes, strict=True)
    ]
    made = [ast.Assign([target], source), *last]
    return [ast.fix_missing_locations(ast.copy_location(statement, inner)) for statement in made]


def _cuts_off(to: ast.expr, source: ast.expr, scope: Scope) -> bool:
    """Whether fractions become whole numbers, which goes by way of 64 bits where each is stored by itself."""
    kinds = [cells.dtype.kind for cells in map(scope.kind, (to, source)) if isinstance(cells, Cells) and cells.dtype]
    return len(kinds) < 2 or (kinds[1] == "f" and kinds[0] != "f")


def _turns(loop: ast.For, scope: Scope) -> int | None:
    """How often `for k in range(n)` goes round, if n is a constant above 0."""
    if not scope.calls_builtin(loop.iter, "range") or len(loop.iter.args) != 1:  # type: ignore[attr-defined]
        return None
    count = scope.interval(loop.iter.args[0])  # type: ignore[attr-defined]
    return count[0] if count is not None and count[0] == count[1] > 0 else None


def _without(side: ast.expr, names: list[str], sizes: list[int], scope: Scope) -> ast.expr | None:
    """`a[2]` for `a[2, r, c]`: an array whose last axes are walked from end to end by `names` and by nothing else."""
    cells = scope.kind(side.value) if isinstance(side, ast.Subscript) else None
    if not isinstance(side, ast.Subscript) or not isinstance(cells, Cells) or cells.of or cells.dtype is None:
        return None
    parts = side.slice.elts if isinstance(side.slice, ast.Tuple) else [side.slice]
    before, walked = parts[: -len(names)], parts[-len(names) :]
    if len(parts) != len(cells.shape) or list(cells.shape[-len(names) :]) != sizes:
        return None
    if [part.id if isinstance(part, ast.Name) else None for part in walked] != names:
        return None
    others = {node.id for part in (side.value, *before) for node in ast.walk(part) if isinstance(node, ast.Name)}
    if others & set(names) or not all(isinstance(part, ast.Constant | ast.Name) for part in before):
        return None
    if not before:
        return side.value
    return ast.Subscript(side.value, ast.Tuple(before, ast.Load()) if len(before) > 1 else before[0], ast.Load())
