"""Questions about the statements of an environment: what depends on an order, what leaves, what is not None."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from typing import Any

from shoal.port.frames import loaded_names
from shoal.port.refusal import Cannot


def depends_on_order(loop: ast.For, function: ast.AST) -> bool:
    """Whether the turns of a loop cannot change places: it leaves early, draws, fills a list or keeps something."""
    inside = [n for statement in loop.body for n in ast.walk(statement)]
    for node in inside:
        if isinstance(node, ast.Break | ast.Return):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            drawn = isinstance(node.func.value, ast.Attribute) and "random" in node.func.value.attr
            if drawn or node.func.attr in ("append", "insert", "extend", "appendleft", "pop", "popleft"):
                return True
    stores: dict[str, list[tuple[ast.expr, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.NamedExpr]]] = {}
    for node in inside:
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.NamedExpr):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for leaf in target.elts if isinstance(target, ast.Tuple | ast.List) else [target]:
                    place = leaf.value if isinstance(leaf, ast.Subscript) else leaf
                    stores.setdefault(ast.unparse(place), []).append((leaf, node))
    own = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
    changing = own | {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return any(_keeps(place, found, inside, loop, function, changing) for place, found in stores.items())


Store = tuple[Any, Any]
"""A place that is written to, and the statement that does so."""


def _keeps(
    place: str,
    stores: list[Store],
    inside: list[ast.AST],
    loop: ast.For,
    function: ast.AST,
    changing: set[str],
) -> bool:
    """Whether what a place holds behind a loop depends on the order of the turns."""
    written = [leaf.value if isinstance(leaf, ast.Subscript) else leaf for leaf, _ in stores]
    reads = [n for n in inside if isinstance(n, ast.expr) and n not in written and ast.unparse(n) == place]
    values = {ast.dump(node.value) for _, node in stores if node.value is not None}
    if isinstance(stores[0][0], ast.Name) and not isinstance(stores[0][1], ast.AugAssign):
        begun = min((leaf.lineno, leaf.col_offset) for leaf, _ in stores)
        uses = loaded_names(function)[place] - loaded_names(loop)[place]
        if not uses and all((n.end_lineno or 0, n.end_col_offset or 0) > begun for n in reads):
            return False  # every turn sets it first, and nobody reads it behind the loop
    if reads:
        return True
    if all(isinstance(node, ast.AugAssign) for _, node in stores):
        kinds = {type(node.op) for _, node in stores}  # additions may change places, and so on
        return len(kinds) > 1 and kinds != {ast.Add, ast.Sub}
    inner = [n for _, node in stores if node.value is not None for n in ast.walk(node.value)]
    varies = any(isinstance(n, ast.Call) or (isinstance(n, ast.Name) and n.id in changing) for n in inner)
    if len(values) == 1 and not varies and not any(isinstance(node, ast.AugAssign) for _, node in stores):
        return False  # all turns write the same
    names = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
    return not (len(stores) == 1 and _is_own_place(stores[0][0], names))


def _is_own_place(leaf: ast.expr, names: set[str]) -> bool:
    """Whether every member of a set has an item of its own here: `a[r, c]` for all of `r` and `c`."""
    if not isinstance(leaf, ast.Subscript):
        return False
    parts = leaf.slice.elts if isinstance(leaf.slice, ast.Tuple) else [leaf.slice]
    return names <= {part.id for part in parts if isinstance(part, ast.Name)}


def nodes_of_turns(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Nodes that a loop may come to before another turn: what leaves it in the end is none of them."""
    if body and isinstance(body[-1], ast.Return | ast.Break | ast.Raise):
        return
    for statement in body:
        if isinstance(statement, ast.If):
            yield from ast.walk(statement.test)
            yield from nodes_of_turns(statement.body)
            yield from nodes_of_turns(statement.orelse)
        else:
            yield from ast.walk(statement)


def changes_something(function: ast.AST) -> bool:
    """Whether a function draws, sets an attribute or an item, or calls a method that may."""
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = ast.unparse(node.func.value)
            if "random" in owner or "rng" in owner or node.func.attr in ("append", "pop", "remove", "add", "popleft"):
                return True
    return False


def names_there(test: ast.expr, outcome: bool) -> set[str]:
    """Names that are not None where a test came out this way."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return names_there(test.operand, not outcome)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) == outcome:
        return set().union(*(names_there(part, outcome) for part in test.values))
    if isinstance(test, ast.Name):
        return {test.id} if outcome else set()
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.left, ast.Name):
        is_none = isinstance(test.comparators[0], ast.Constant) and test.comparators[0].value is None
        wanted = ast.IsNot | ast.NotEq if outcome else ast.Is | ast.Eq
        return {test.left.id} if is_none and isinstance(test.ops[0], wanted) else set()
    return set()


def looks_up(statement: ast.stmt, lookup: str) -> bool:
    """Whether a statement contains this item of something."""
    return any(isinstance(n, ast.Subscript) and ast.unparse(n) == lookup for n in ast.walk(statement))


def for_each_class(statement: ast.stmt, lookup: str, count: int) -> tuple[ast.stmt, ast.expr]:
    """A statement that looks up one of several objects of different classes, written for each, and by what it does."""
    found = next((n for n in ast.walk(statement) if isinstance(n, ast.Subscript) and ast.unparse(n) == lookup), None)
    calls = found is not None and any(isinstance(n, ast.Call) for n in ast.walk(found.slice))
    if found is None or calls or not isinstance(statement, ast.Assign | ast.AugAssign | ast.Expr | ast.Return):
        raise Cannot(
            "chooses by a number among objects of several classes",
            "Choose in a statement of its own, x = items[k], with the number in a name.",
        )
    rest = [_Fixed(lookup, count - 1).visit(copy.deepcopy(statement))]
    for k in reversed(range(count - 1)):
        places = ast.Tuple([ast.Constant(k), ast.Constant(k - count)], ast.Load())
        written = _Fixed(lookup, k).visit(copy.deepcopy(statement))
        choice = ast.If(ast.Compare(found.slice, [ast.In()], [places]), [written], rest)
        choice.both_ways = True  # type: ignore[attr-defined]
        rest = [ast.fix_missing_locations(ast.copy_location(choice, statement))]
    return rest[0], found.slice


class _Fixed(ast.NodeTransformer):
    """Puts a number in place of what an item is looked up by."""

    def __init__(self, lookup: str, k: int) -> None:
        self.lookup, self.k = lookup, k

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if ast.unparse(node) == self.lookup:
            return ast.copy_location(ast.Subscript(node.value, ast.Constant(self.k), node.ctx), node)
        return self.generic_visit(node)
