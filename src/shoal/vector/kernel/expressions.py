"""Expressions of an author's function, rewritten: numbers that are read, operators, calls (see `rewrite.py`)."""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from shoal.vector.kernel import checks, numbers
from shoal.vector.kernel.build import Build
from shoal.vector.kernel.kinds import Cells, Scope
from shoal.vector.kernel.syntax import call, copied, has_slice, is_nonzero, is_plain_test


class Expressions(ast.NodeTransformer):
    """Rewrites what one function reads and computes."""

    def __init__(
        self, build: Build, scope: Scope, modules: dict[str, Any], site: tuple[str, int], is_step: bool
    ) -> None:
        """`modules` are the modules that the function names; `site` its qualified name and first line."""
        self._build = build
        self._scope = scope
        self._modules = modules
        self._site = site
        self._is_step = is_step
        self._temporaries = 0
        self.looks: dict[str, Callable] = {}
        """Tests in code that is not checked, by the names that stand for them in the tree."""

    # ------------------------------------------------------------------ what is read

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if type(node.value) is int and node.value > numbers.HIGHEST:
            return ast.copy_location(ast.Constant(numbers.wrap(node.value)), node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        is_module = isinstance(node.value, ast.Name) and node.value.id in self._modules
        node.value = self._visit_base(node.value)
        return node if is_module or not isinstance(node.ctx, ast.Load) else call("widen", node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        inner = self._visit_element(node)
        return call("widen", inner) if isinstance(node.ctx, ast.Load) else inner

    def _visit_element(self, node: ast.Subscript) -> ast.expr:
        is_safe = self._scope.is_inside(node.value, node.slice) or has_slice(node.slice)
        if isinstance(node.slice, ast.Constant) and not isinstance(self._scope.kind(node.value), Cells):
            is_safe = True  # a part of a tuple, which may be of several types: its index must stay a constant
        node.value = self._visit_base(node.value)
        node.slice = self._visit_index(node.slice)
        if not is_safe and isinstance(node.ctx, ast.Load) and (self._build.checked or self._build.compiled):
            # a wild index would end the whole program, without a word
            look = "at" if self._build.checked else self._look("inside", node)
            node.slice = call(look, copied(node.value), node.slice)
        return node

    def _look(self, what: str, node: ast.expr) -> str:
        """The name of a test that tells where it stands."""
        function, first = self._site
        line = node.lineno - first
        self.looks.setdefault(f"_k_{what}_{line}", checks.TESTS[what](function, line))
        return f"{what}_{line}"

    def _visit_index(self, node: ast.expr) -> ast.expr:
        """An index, of which compiled code need not ask whether it counts from the end where it is proved not to."""
        if isinstance(node, ast.Tuple):
            node.elts = list(map(self._visit_index, node.elts))
            return node
        place = self._scope.interval(node) if isinstance(node, ast.BinOp | ast.Call) and self._is_plain else None
        index = self.visit(node)
        return call("unsigned", index) if place is not None and place[0] >= 0 else index

    @property
    def _is_plain(self) -> bool:
        return self._build.compiled and not self._build.checked

    def _visit_base(self, node: ast.expr) -> ast.expr:
        """What stands before a dot or a bracket is a record, a module or an array: nothing to widen itself."""
        if isinstance(node, ast.Attribute):
            node.value = self._visit_base(node.value)
            return node
        if isinstance(node, ast.Subscript):
            return self._visit_element(node)
        return self.visit(node)

    # ------------------------------------------------------------------ operators and calls

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        divisor = self._small_division(node)
        node.left, node.right = self.visit(node.left), self.visit(node.right)
        if divisor is not None:
            name = "small_quotient" if isinstance(node.op, ast.FloorDiv) else "small_remainder"
            return ast.copy_location(call(name, node.left, *map(ast.Constant, divisor)), node)
        return self._operation(node.op, node.left, node.right, node)

    def _small_division(self, node: ast.BinOp) -> tuple[int, int] | None:
        """(n, lift) for `x // n` and `x % n` of an x that lies in 31 bits once lift, a multiple of n, is added.

        Such numbers need neither 64 bits nor a second look at the sign, by which C rounds otherwise than Python.
        """
        if not self._is_plain or not isinstance(node.op, ast.FloorDiv | ast.Mod):
            return None
        divided, by = self._scope.interval(node.left), self._scope.interval(node.right)
        if divided is None or by is None or by[0] != by[1] or by[0] < 1:
            return None
        lift = max(0, -(divided[0] // by[0]) * by[0])
        return (by[0], lift) if divided[1] + lift < 2**31 else None

    def _operation(self, op: ast.operator, left: ast.expr, right: ast.expr, at: ast.AST) -> ast.expr:
        name = type(op).__name__
        if name == "Pow" and isinstance(right, ast.Constant) and right.value in (2, 3, 0.5):
            if right.value == 0.5:  # C's pow may round otherwise, and LLVM makes this of it
                return ast.copy_location(call("sqrt", left), at)
            return ast.copy_location(call("square" if right.value == 2 else "cube", left), at)
        is_call = name in ("Pow", "LShift", "RShift")
        is_call |= not self._build.compiled and name in numbers.PYTHON_OPERATORS
        is_call |= self._build.checked and name in checks.CHECKED_OPERATORS and not is_nonzero(right)
        if is_call:
            return ast.copy_location(call(name, left, right), at)
        return ast.copy_location(ast.BinOp(left, op, right), at)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        node.operand = self.visit(node.operand)
        if isinstance(node.op, ast.Invert):
            return ast.copy_location(call("invert", node.operand), node)
        if isinstance(node.op, ast.USub) and not self._build.compiled and not isinstance(node.operand, ast.Constant):
            return ast.copy_location(call("USub", node.operand), node)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """`a < b and c < d` without a jump where nothing is lost by computing both: a loop then vectorises."""
        is_plain = self._build.compiled and all(map(is_plain_test, node.values))
        self.generic_visit(node)
        if not is_plain:
            return node
        op = ast.BitAnd() if isinstance(node.op, ast.And) else ast.BitOr()
        return functools.reduce(lambda a, b: ast.copy_location(ast.BinOp(a, op, b), node), node.values)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        is_plain = self._build.compiled and len(node.ops) > 1 and is_plain_test(node)
        self.generic_visit(node)
        if not is_plain:
            return node
        sides = [node.left, *node.comparators]
        pairs: list[ast.expr] = [
            ast.copy_location(ast.Compare(left, [op], [right]), node)
            for left, op, right in zip(sides, node.ops, sides[1:], strict=False)
        ]
        return functools.reduce(lambda a, b: ast.copy_location(ast.BinOp(a, ast.BitAnd(), b), node), pairs)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        array = self._array_method(node)
        if array is not None:
            return ast.copy_location(call(*array), node)
        name = ast.unparse(node.func)
        if name == "scratch":  # whose count Numba must see as a number
            count = self._scope.interval(node.args[1])
            node.args[1] = ast.copy_location(ast.Constant(count and count[0]), node.args[1])
            return node
        is_number = self._scope.calls_builtin(node, "int", "float", "abs", "round")
        is_power = self._scope.calls_builtin(node, "pow")
        is_pair = self._scope.calls_builtin(node, "divmod")
        is_extreme = not self._build.compiled and self._scope.calls_builtin(node, "min", "max")
        if isinstance(node.func, ast.Attribute):  # a method's name is not a number to widen
            if self._test_draw(node):
                return node
            node.func.value = self._visit_base(node.func.value)
        else:
            node.func = self.visit(node.func)
        node.args = [self.visit(argument) for argument in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "pow" and self._is_module(node.func.value, math):
            node.args = [call("float", argument) for argument in node.args]  # of whole numbers Numba's own one raises
        if is_number and len(node.args) == 1:
            return ast.copy_location(call(name, *node.args), node)
        if is_extreme and len(node.args) > 1:
            return ast.copy_location(call(name, *node.args), node)
        if is_power and len(node.args) == 2:
            return ast.copy_location(call("Pow", *node.args), node)
        if is_pair and len(node.args) == 2:
            return ast.copy_location(call("divmod", *node.args), node)
        if isinstance(node.func, ast.Attribute) and self._is_module(node.func.value, np):
            return call("widen", node)  # np.float32(x) is a rounded float64 here, as everywhere
        return node

    def _test_draw(self, node: ast.Call) -> bool:
        """Whether this draws a number by arguments that have to be tested, which is done."""
        function = node.func
        assert isinstance(function, ast.Attribute)
        tested = {("integers", 1): "count", ("integers", 2): "bounds", ("choice", 1): "weights"}.get(
            (function.attr, len(node.args))
        )
        if tested is None or node.keywords or self._is_module(function.value):
            return False
        if not self._build.checked and (tested == "weights" or self._scope.interval(node) is not None):
            return False
        if self._is_plain:
            tested = self._look(tested, node)
        read = self._visit_base if tested == "weights" else self.visit  # a row stays what it is
        test: ast.expr = call(tested, *map(read, node.args))
        node.args = [ast.Starred(test, ast.Load()) if len(node.args) == 2 else test]
        function.value = self._visit_base(function.value)
        return True

    def _array_method(self, node: ast.Call) -> tuple[str, ast.expr] | None:
        """(`array_sum`, array) for `a.sum()`, `np.sum(a)` and `sum(a)`."""
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr in numbers.ARRAY_METHODS and not node.keywords:
            is_numpy = self._is_module(function.value, np)
            if is_numpy and len(node.args) == 1:
                return f"array_{function.attr}", self._visit_base(node.args[0])
            if not is_numpy and not node.args and not self._is_module(function.value):
                return f"array_{function.attr}", self._visit_base(function.value)
        if (
            self._scope.calls_builtin(node, "sum", "min", "max", "any", "all")
            and not node.keywords
            and len(node.args) == 1
            and isinstance(node.args[0], ast.Name | ast.Attribute | ast.Subscript)
        ):
            return f"array_{function.id}", self._visit_base(node.args[0])  # type: ignore[attr-defined]
        return None

    def _is_module(self, node: ast.expr, module: Any = None) -> bool:
        """Whether `node` names a module: this one, or any."""
        named = self._modules.get(node.id) if isinstance(node, ast.Name) else None
        return named is not None and (module is None or named is module)
