"""Small things to say about pieces of a syntax tree, for what rewrites them."""

from __future__ import annotations

import ast
from typing import Any


def call(name: str, *arguments: ast.expr) -> ast.Call:
    made = ast.Call(ast.Name(f"_k_{name}", ast.Load()), list(arguments), [])
    return ast.copy_location(made, arguments[0]) if arguments else made


def copied(node: ast.expr) -> ast.expr:
    """The same expression as something to read."""
    if isinstance(node, ast.Attribute | ast.Subscript | ast.Name):
        fields = {key: value for key, value in ast.iter_fields(node) if key != "ctx"}
        return ast.copy_location(type(node)(**fields, ctx=ast.Load()), node)
    return node


def is_simple(node: ast.expr) -> bool:
    if isinstance(node, ast.Tuple):
        return all(map(is_simple, node.elts))
    return isinstance(node, ast.Name | ast.Constant)


def is_plain_test(node: ast.expr) -> bool:
    """Whether this is true or false, and computed in no time and without anything that could go wrong."""
    if isinstance(node, ast.BoolOp):
        return all(map(is_plain_test, node.values))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return is_plain_test(node.operand)
    if not isinstance(node, ast.Compare) or any(isinstance(op, ast.In | ast.NotIn) for op in node.ops):
        return False
    return all(map(_is_plain_number, [node.left, *node.comparators]))


def _is_plain_number(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        is_simple = isinstance(node.op, ast.Add | ast.Sub | ast.Mult)
        return is_simple and _is_plain_number(node.left) and _is_plain_number(node.right)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.USub) and _is_plain_number(node.operand)
    return isinstance(node, ast.Name | ast.Constant) or (
        isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    )


def is_nonzero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value != 0


def has_slice(index: ast.expr) -> bool:
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return any(
        isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value is Ellipsis) for part in parts
    )


def elements(target: ast.expr) -> list[ast.expr]:
    return list(target.elts) if isinstance(target, ast.Tuple) else [target]


def as_list(statements: Any) -> list[ast.stmt]:
    return statements if isinstance(statements, list) else [statements]
