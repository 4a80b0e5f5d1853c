"""Truth values, choices and comparisons."""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
import types
from functools import partial
from typing import Any

import numpy as np

from shoal.port.expressions import COMPARISONS, Expressions, is_array, negated, plain, text_of
from shoal.port.frames import can_change, not_one_list, same_value
from shoal.port.joining import join, reference_of
from shoal.port.layouts import NumL, same
from shoal.port.refusal import Cannot, Restart
from shoal.port.values import (
    NP_BOOL,
    PY_BOOL,
    Bound,
    Const,
    DictV,
    Either,
    Fam,
    Generator,
    Kind,
    Local,
    Lst,
    Maybe,
    Num,
    Obj,
    Opaque,
    Seq,
    Value,
    as_float,
    as_truth,
    as_whole,
    is_number,
    rounded,
)

REALISED = (np.ndarray, tuple, list, dict, set, frozenset)
SEQUENCES = (tuple, list, set, frozenset)


class Truths(Expressions):
    """How conditions are followed."""

    def truth(self, value: Value) -> Const | Num:
        """A constant, or a bool of kernel code."""
        value = self.simple(value)
        if isinstance(value, Either):
            value = self.number(value)
        if isinstance(value, Const):
            try:
                return Const(bool(value.value))
            except ValueError as error:
                raise Cannot(f"asks whether an array is true: {error}", "Use .any() or .all().") from None
        if isinstance(value, Num):
            return value if value.kind.is_bool else Num(as_truth(value), PY_BOOL)
        if isinstance(value, Seq):
            return Const(bool(value.items))
        if isinstance(value, DictV):
            return Const(bool(value.items))
        if isinstance(value, Lst):
            return Num(f"({value.length} != 0)", PY_BOOL)
        if isinstance(value, Maybe):
            inner = self.truth(value.value)
            text = (
                ""
                if isinstance(inner, Const) and inner.value
                else f" and {inner.expr}"
                if isinstance(inner, Num)
                else " and False"
            )
            return Num(f"(not {value.none}{text})", PY_BOOL)
        if isinstance(value, Fam):
            return Num(f"{self.table(np.array([bool(x) for x in value.options]))}[{value.index}]", PY_BOOL)
        if isinstance(value, Obj | Generator | Bound | Local):
            return Const(True)
        if is_array(value):
            if all(n == 1 for n in self.shape(value)):
                return self.truth(self.number(value))
            raise Cannot("asks whether an array is true", "Use .any() or .all().")
        raise Cannot(f"asks whether {self.name_of(value)} is true")

    def simple(self, value: Value) -> Value:
        """Families of numbers, tuples and arrays as what they stand for; others as they are."""
        if isinstance(value, Fam):
            if len(value.options) == 1:
                return Const(value.options[0])
            numbers = all(is_number(x) and not isinstance(x, enum.Enum) for x in value.options)
            if one_of_dicts(value):
                return value
            if numbers or all(isinstance(x, REALISED) for x in value.options):
                return self.realise(value)
        return value

    def test(self, node: ast.expr) -> Const | Num:
        """Whether an expression is true, where nothing else about it matters."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.test(node.operand)
            return Const(not inner.value) if isinstance(inner, Const) else Num(f"(not {inner.expr})", PY_BOOL)
        if not isinstance(node, ast.BoolOp):
            return self.truth(self.value(node))
        is_and = isinstance(node.op, ast.And)
        result = self.test(node.values[0])
        for part in node.values[1:]:
            if isinstance(result, Const):
                if bool(result.value) != is_and:
                    return result
                result = self.test(part)
                continue
            with self.block() as lines:
                other = self.test(part)
            both = self.join_tests(is_and, (result, result), (other, other), lines)
            result = both if isinstance(both, Const | Num) else self.truth(both)
        return result

    def see_BoolOp(self, node: ast.BoolOp) -> Value:
        is_and = isinstance(node.op, ast.And)
        value = self.value(node.values[0])
        for k in range(1, len(node.values)):
            test = self.truth(value)
            if isinstance(test, Const):
                if bool(test.value) != is_and:
                    return value
                value = self.value(node.values[k])
                continue
            value = self.hold(value) if not (isinstance(value, Num) and value.kind.is_bool) else value
            test = self.truth(value)
            with self.block() as lines:
                other = self.value(node.values[k])
                other_test = self.truth(other)
            value = self.join_tests(is_and, (value, test), (other, other_test), lines)
        return value

    def join_tests(self, is_and: bool, first: tuple, second: tuple, lines: list[str]) -> Value:
        (value, test), (other, other_test) = first, second
        if isinstance(other_test, Const) and isinstance(other, Const) and isinstance(other.value, bool | np.bool_):
            if bool(other_test.value) == is_and:
                return Num(test.expr, PY_BOOL)
            return Const(not is_and) if not lines else Num("True" if not is_and else "False", PY_BOOL)
        both_bools = all(isinstance(v, Num) and v.kind.is_bool for v in (value, other))
        word = "and" if is_and else "or"
        if both_bools and not lines:
            kind = PY_BOOL if value.kind.weak and other.kind.weak else NP_BOOL
            return Num(f"({test.expr} {word} {other_test.expr})", kind)
        if both_bools:
            name = self.unique("both" if is_and else "either")
            self.emit(f"{name} = {test.expr}")
            self.emit_block(f"if {name}:" if is_and else f"if not {name}:", [*lines, f"{name} = {text_of(other_test)}"])
            return Num(name, PY_BOOL)
        return self.choose(test.expr if is_and else f"(not {test.expr})", (lines, other), ([], value))

    def see_IfExp(self, node: ast.IfExp) -> Value:
        test = self.test(node.test)
        if isinstance(test, Const):
            return self.value(node.body if test.value else node.orelse)
        test = self.hold(test)
        with self.block() as then:
            first = self.known_there(node.test, node.body, True)
        with self.block() as other:
            second = self.known_there(node.test, node.orelse, False)
        return self.choose(test.expr, (then, first), (other, second))

    def known_there(self, test: ast.expr, part: ast.expr, outcome: bool) -> Value:
        """The value of one way of a choice; not None if that is what the choice was about."""
        value = self.value(part)
        asked = ast.unparse(part)
        there = (asked, f"{asked} is not None") if outcome else (f"{asked} is None", f"not {asked}")
        repeats = not any(isinstance(n, ast.Call) for n in ast.walk(part))
        return value.value if isinstance(value, Maybe) and repeats and ast.unparse(test) in there else value

    def choose(self, test: str, first: tuple, second: tuple) -> Value:
        """One value or the other; each with the lines that compute it."""
        (then, a), (other, b) = first, second
        a, b = self.simple(a), self.simple(b)
        if can_change(a) and can_change(b) and not same_value(a, b) and not_one_list(a, b):
            self.decisions.split.add(self.statement)
            raise Restart
        layout = join(reference_of(a), reference_of(b))
        numbers = isinstance(a, Num | Const) and isinstance(b, Num | Const)
        if numbers and isinstance(layout, NumL) and not then and not other:
            x, y = self.number(a), self.number(b)
            kind = layout.kind
            texts = [as_float(n) if kind.is_float else as_whole(n) if kind.is_whole else n.expr for n in (x, y)]
            return Num(f"({texts[0]} if {test} else {texts[1]})", kind)
        base = self.unique("choice")
        for lines, value in ((then, a), (other, b)):
            with self.block() as tail:
                self.write(layout, base, value)
            lines += tail
        self.emit_block(f"if {test}:", then)
        self.emit_block("else:", other)
        return layout.read(base)

    # ------------------------------------------------------------------ comparisons

    def see_Compare(self, node: ast.Compare) -> Value:
        asked = [isinstance(op, ast.In | ast.NotIn) for op in node.ops]
        parts = [_members(part) if of else part for of, part in zip(asked, node.comparators, strict=True)]
        values = self.values([node.left, *parts])
        if len(node.ops) > 1:
            values = [self.hold(v) for v in values]
        tests = [self.compare(op, a, b) for op, a, b in zip(node.ops, values, values[1:], strict=False)]
        result = tests[0]
        for part in tests[1:]:
            if isinstance(result, Const):
                result = part if result.value else result
            elif isinstance(part, Const):
                result = result if part.value else part
            else:
                result = Num(f"({result.expr} and {part.expr})", PY_BOOL)  # type: ignore[attr-defined]
        return result

    def compare(self, op: ast.cmpop, left: Value, right: Value) -> Value:
        if isinstance(op, ast.In | ast.NotIn):
            found = self.contains(right, left)
            return negated(found) if isinstance(op, ast.NotIn) else found
        if isinstance(op, ast.Is | ast.IsNot):
            found = self.identical(left, right)
            return negated(found) if isinstance(op, ast.IsNot) else found
        left, right = self.simple(left), self.simple(right)
        if isinstance(left, Const) and isinstance(right, Const):
            return Const(COMPARISONS[type(op)][1](left.value, right.value))
        if isinstance(left, Either) or isinstance(right, Either):
            return self.compare_either(op, left, right)
        if isinstance(op, ast.Eq | ast.NotEq):
            found = self.equal(left, right)
            if found is not None:
                return negated(found) if isinstance(op, ast.NotEq) else found
        texts = [_texts(v) for v in (left, right)]
        if all(texts):
            function = COMPARISONS[type(op)][1]
            table = self.table(np.array([[function(x, y) for y in texts[1]] for x in texts[0]]))
            at = [v.index if isinstance(v, Fam) else "0" for v in (left, right)]
            return Num(f"{table}[{at[0]}, {at[1]}]", PY_BOOL)
        if is_array(left) or is_array(right):
            return self.elementwise(lambda a, b: self.compare_numbers(op, a, b), [left, right])
        if isinstance(left, Obj) and not isinstance(op, ast.Eq | ast.NotEq):
            return self.compare_objects(op, left, right)
        if isinstance(left, Seq) or isinstance(right, Seq):
            first, second = (right, left) if isinstance(op, ast.Gt | ast.LtE) else (left, right)
            before = self.ordered(first, second)
            return before if isinstance(op, ast.Lt | ast.Gt) else negated(before)
        if isinstance(op, ast.LtE | ast.GtE) and any(isinstance(v, Lst) and v.is_set for v in (left, right)):
            part, whole = (left, right) if isinstance(op, ast.LtE) else (right, left)
            listed = part if isinstance(part, Lst) else self.make_set([part], {})
            items = listed if isinstance(listed, Lst) else Seq(self.items(listed))
            return (
                self.list_issubset(items, whole)
                if isinstance(items, Lst)
                else self.all_of([self.contains(whole, item) for item in items.items])
            )
        if isinstance(left, Lst) or isinstance(right, Lst):
            raise Cannot("compares lists of varying length by order", "Compare their items in a loop.")
        return self.compare_numbers(op, self.number(left), self.number(right))

    def ordered(self, a: Value, b: Value) -> Value:
        """Whether `a` stands before `b`: numbers by size, tuples by the first numbers that differ."""
        if any(isinstance(v, Lst) and v.is_map for v in (a, b)):
            raise Cannot("compares dicts whose keys vary", "Compare their items in a loop.")
        sequences = [isinstance(v, Seq) or (isinstance(v, Const) and isinstance(v.value, tuple | list)) for v in (a, b)]
        if not any(sequences):
            return self.compare(ast.Lt(), a, b)
        rows = list(zip(self.items(a), self.items(b), strict=False))
        result: Value = Const(len(self.items(a)) < len(self.items(b)))
        for x, y in reversed(rows):
            less, equal = self.truth(self.ordered(x, y)), self.truth(self.compare(ast.Eq(), x, y))
            result = self.any_of([less, self.all_of([equal, result])])
        return result

    def compare_either(self, op: ast.cmpop, left: Value, right: Value) -> Value:
        """The comparison for both types that a number can have."""
        test, first, second = self.for_both_types(partial(self.compare, op), left, right)
        return self.choose(test, ([], second), ([], first))

    def compare_numbers(self, op: ast.cmpop, a: Num, b: Num) -> Num:
        kind = PY_BOOL if a.kind.weak and b.kind.weak else NP_BOOL
        x, y = a.expr, b.expr
        floats = {k.dtype for k in (a.kind, b.kind) if k.is_float}
        if (a.kind.weak != b.kind.weak) and np.dtype(np.float32) in floats:  # NumPy rounds the weak one first
            x = rounded(x, Kind(np.dtype(np.float32))) if a.kind.weak else x
            y = rounded(y, Kind(np.dtype(np.float32))) if b.kind.weak else y
        x, y = (as_whole(n) if n.kind.is_bool and not m.kind.is_bool else t for t, n, m in ((x, a, b), (y, b, a)))
        return Num(f"({x} {COMPARISONS[type(op)][0]} {y})", kind)

    def equal(self, a: Value, b: Value) -> Value | None:
        """`a == b` for what is not numbers or arrays; None for those."""
        for side in (a, b):
            if isinstance(side, Opaque):
                raise Cannot(f"compares something that {side.why}")
        if isinstance(b, Fam) and not isinstance(a, Fam | Maybe):
            a, b = b, a
        if isinstance(a, Fam) and not isinstance(b, Maybe):
            return self.equal_family(a, b)
        if isinstance(a, Maybe) or isinstance(b, Maybe):
            maybe, other = (a, b) if isinstance(a, Maybe) else (b, a)
            if isinstance(other, Const) and other.value is None:
                return Num(maybe.none, PY_BOOL)  # type: ignore[attr-defined]
            inner = self.compare(ast.Eq(), maybe.value, other.value if isinstance(other, Maybe) else other)  # type: ignore[attr-defined]
            return Num(f"(not {maybe.none} and {text_of(inner)})", PY_BOOL)  # type: ignore[attr-defined]
        sequences = [isinstance(v, Seq) or (isinstance(v, Const) and isinstance(v.value, SEQUENCES)) for v in (a, b)]
        if all(sequences):
            x, y = self.items(a), self.items(b)
            if len(x) != len(y):
                return Const(False)
            return self.all_of([self.compare(ast.Eq(), p, q) for p, q in zip(x, y, strict=True)])
        if (isinstance(a, Lst) and (sequences[1] or isinstance(b, Lst))) or (isinstance(b, Lst) and sequences[0]):
            return self.equal_lists(a, b)
        numbers = [isinstance(v, Num) or (isinstance(v, Const) and is_number(v.value)) for v in (a, b)]
        if all(numbers) or is_array(a) or is_array(b):
            return None
        if isinstance(a, Const) or isinstance(b, Const):  # a number and a string are never equal
            return Const(False)
        if isinstance(a, Obj) and isinstance(b, Obj):
            return self.equal_objects(a, b)
        return None

    def equal_objects(self, a: Obj, b: Obj) -> Value:
        cls = type(a.layout.example)
        written = inspect.getattr_static(cls, "__eq__")
        if dataclasses.is_dataclass(cls) and type(b.layout.example) is cls and "__eq__" in vars(cls):
            fields = [f.name for f in dataclasses.fields(cls) if f.compare]
            return self.all_of([self.compare(ast.Eq(), self.attribute(a, n), self.attribute(b, n)) for n in fields])
        if isinstance(written, types.FunctionType):
            return self.call_function(written, [a, b], {}, owner=cls)
        return self.identical(a, b)

    def compare_objects(self, op: ast.cmpop, a: Obj, b: Value) -> Value:
        """`a < b` as somebody's class defines it."""
        cls = type(a.layout.example)
        name = {ast.Lt: "__lt__", ast.LtE: "__le__", ast.Gt: "__gt__", ast.GtE: "__ge__"}[type(op)]
        if dataclasses.is_dataclass(cls) and cls.__dataclass_params__.order and isinstance(b, Obj):  # type: ignore[attr-defined]
            fields = [f.name for f in dataclasses.fields(cls) if f.compare]
            keys = [Seq([self.attribute(x, n) for n in fields]) for x in (a, b)]
            return self.compare(op, *keys)
        method = inspect.getattr_static(cls, name, None)
        if isinstance(method, types.FunctionType):
            return self.call_function(method, [a, b], {}, owner=cls)
        turned = inspect.getattr_static(cls, {"__lt__": "__gt__", "__gt__": "__lt__"}.get(name, ""), None)
        if isinstance(turned, types.FunctionType) and isinstance(b, Obj):
            return self.call_function(turned, [b, a], {}, owner=cls)
        raise Cannot("compares objects by order", "Compare their numbers.")

    def equal_family(self, a: Fam, b: Value) -> Value:
        if isinstance(b, Num) and all(is_number(x) for x in a.options):
            return self.compare_numbers(ast.Eq(), self.number(a), b)
        if isinstance(b, Const):
            matches = [
                k for k, x in enumerate(a.options) if same(x, b.value) or (plain(x) and plain(b.value) and x == b.value)
            ]
            if not matches:
                return Const(False)
            if len(matches) == len(a.options):
                return Const(True)
            if len(matches) == 1:
                return Num(f"({a.index} == {matches[0]})", PY_BOOL)
            table = np.isin(np.arange(len(a.options)), matches)
            return Num(f"{self.table(table)}[{a.index}]", PY_BOOL)
        if isinstance(b, Fam):
            union: list[Any] = []
            for x in [*a.options, *b.options]:
                if not any(same(x, y) for y in union):
                    union.append(x)
            numbers = [
                np.array([next(k for k, y in enumerate(union) if same(x, y)) for x in f.options]) for f in (a, b)
            ]
            return Num(f"({self.table(numbers[0])}[{a.index}] == {self.table(numbers[1])}[{b.index}])", PY_BOOL)
        return Const(False)

    def all_of(self, parts: list[Value]) -> Value:
        texts = []
        for part in parts:
            test = self.truth(part)
            if isinstance(test, Const):
                if not test.value:
                    return Const(False)
                continue
            texts.append(test.expr)
        if not texts:
            return Const(True)
        return Num(f"({' and '.join(texts)})" if len(texts) > 1 else texts[0], PY_BOOL)

    def identical(self, a: Value, b: Value) -> Value:
        if isinstance(a, Const) and isinstance(b, Const):
            return Const(a.value is b.value or (isinstance(a.value, enum.Enum | bool) and a.value == b.value))
        for x, y in ((a, b), (b, a)):
            if isinstance(x, Opaque) and x.why.startswith("is None or"):
                raise Cannot(f"compares something that {x.why}")
            if isinstance(y, Const) and y.value is None:
                return (
                    Num(x.none, PY_BOOL)
                    if isinstance(x, Maybe)
                    else self.equal_family(x, y)
                    if isinstance(x, Fam)
                    else Const(False)
                )
            if isinstance(y, Const) and isinstance(y.value, bool) and isinstance(x, Num):
                return self.compare(ast.Eq(), x, y) if x.kind.is_bool and x.kind.weak else Const(False)
            if isinstance(x, Fam):
                return self.equal_family(x, y)
        if isinstance(a, Maybe) or isinstance(b, Maybe):
            return self.identical_if_any(a, b)
        if isinstance(a, Obj) and isinstance(b, Obj):
            if a.base != b.base:
                self.must_not_share(a, b)
            if a.base == b.base and len(a.index) == len(b.index):
                tests = [f"{x} == {y}" for x, y in zip(a.index, b.index, strict=True) if x != y]
                return Num(f"({' and '.join(tests)})", PY_BOOL) if tests else Const(True)
            return Const(False)
        raise Cannot("asks whether two things are the same object", "Compare with ==.")

    def identical_if_any(self, a: Value, b: Value) -> Value:
        """As `identical`, of two things of which either may be None."""
        nothing: list[Value] = [Num(v.none, PY_BOOL) if isinstance(v, Maybe) else Const(False) for v in (a, b)]
        inner = self.truth(self.identical(*(v.value if isinstance(v, Maybe) else v for v in (a, b))))
        something: list[Value] = [negated(test) for test in nothing]
        return self.any_of([self.all_of(nothing), self.all_of([*something, inner])])


def one_of_dicts(value: Value) -> bool:
    """Whether this is one of some constant dicts whose keys are not the same."""
    options = value.options if isinstance(value, Fam) else []
    keys = [list(x) for x in options if isinstance(x, dict)]
    return len(keys) == len(options) and any(known != keys[0] for known in keys)


def _members(part: ast.expr) -> ast.expr:
    """What `x in {a, b}` looks through: nobody asks there whether some members are equal."""
    return ast.copy_location(ast.Tuple(part.elts, ast.Load()), part) if isinstance(part, ast.Set) else part


def _texts(value: Value) -> list[str]:
    """The strings that a value may be; none if it may be anything else."""
    found = value.options if isinstance(value, Fam) else [value.value] if isinstance(value, Const) else []
    return found if all(isinstance(x, str) for x in found) else []
