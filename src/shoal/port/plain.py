"""`return`, `raise`, `assert`, and everything that gives names and attributes new values."""

from __future__ import annotations

import ast
import copy
import inspect
import re
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from shoal.port import plain_python
from shoal.port.attempts import Attempts
from shoal.port.frames import (
    FALLS,
    NEVER,
    Bind,
    as_column,
    as_load,
    is_about_arguments,
    is_exchange,
    is_lazy,
    set_once,
    takes_fam,
)
from shoal.port.joining import join, layout_of, reference_of, without_references
from shoal.port.layouts import ArrL, ConstL, FamL, ListL, NumL, OpaqueL, SeqL, same, tidy
from shoal.port.refusal import Cannot, Restart
from shoal.port.sharing import CHANGING, homes, referred
from shoal.port.values import (
    PY_INT,
    Cells,
    Const,
    DictV,
    Dyn,
    Fam,
    Local,
    Lst,
    Maybe,
    Mem,
    Num,
    Obj,
    Seq,
    Span,
    Value,
)

SILENCING = (np.errstate, np.printoptions, warnings.catch_warnings)
"""What changes no number for those inside."""


MOST_CASES = 12
"""Arrays of different shapes to choose from, for each of which the rest of a function is written."""


def is_ragged(family: Fam) -> bool:
    """Whether this is one of a few arrays that have not one shape."""
    arrays = all(isinstance(x, np.ndarray) and x.dtype.kind in "biuf" for x in family.options)
    return arrays and len(family.options) <= MOST_CASES and len({x.shape for x in family.options}) > 1


class PlainStatements(Attempts):
    """How plain statements are followed."""

    def do_Return(self, node: ast.Return) -> str:
        value = self.value(node.value) if node.value is not None else Const(None)
        frame = self.frame
        if len(frame.key) == 1 and isinstance(value, Seq) and isinstance(value.items[-1], DictV):
            value = Seq([*value.items[:-1], self.same_infos(value.items[-1])])
        if self.depth == frame.entry_depth and not self.loops:
            frame.result = self.hold(value)
            return NEVER
        key = ("return", frame.key)
        layout = reference_of(value)
        known = self.decisions.layouts.get(key)
        if known is None:
            known = self.decisions.layouts[key] = layout
        both = join(known, layout)
        if both != known:
            self.decisions.layouts[key] = both
            raise Restart
        if isinstance(known, OpaqueL):
            raise Cannot(f"returns what {known.why}")
        if not frame.base:
            frame.base = self.unique(f"{frame.name.rpartition('.')[2].strip('_')}_result")
        frame.layout = known
        if frame.done:
            self.begin_with_zeros(known, frame.base)
            self.emit(f"{frame.done} = True")
        self.write(known, frame.base, value)
        if self.loops:
            self.emit("break")
        return NEVER

    def same_infos(self, info: DictV) -> DictV:
        """The infos of one way through `step` or `reset`, with those that only other ways give, as zeros."""
        known = self.decisions.layouts.setdefault(("infos", self.frame.key), {})
        for key, value in info.items.items():
            if key not in known and isinstance(layout_of(self.simple(value)), NumL | ArrL):
                known[key] = layout_of(self.simple(value))
                self.decisions.layouts.pop(("return", self.frame.key), None)
                raise Restart
        filled: dict[Any, Value] = {}
        for key, layout in known.items():
            filled[key] = info.items.get(key, Const(0))
            if key not in info.items:
                self.note(f"the info {key!r} is 0 where the original does not give it")
                if isinstance(layout, ArrL):
                    filled[key] = Const(np.zeros(layout.shape, layout.dtype))
        others = {key: value for key, value in info.items.items() if key not in known}
        if others:
            self.decisions.left_out |= others.keys()
            self.note(f"infos that are not numbers or arrays are left out: {', '.join(map(repr, others))}")
        return DictV(filled, info.depth)

    def do_Raise(self, node: ast.Raise) -> str:
        self.emit("assert False")
        return NEVER

    def do_Assert(self, node: ast.Assert) -> str:
        if is_about_arguments(node.test):
            self.note("asserts about actions and spaces are left out: a batch tests its actions itself")
            return FALLS
        test = self.test(node.test)
        if isinstance(test, Num):
            self.emit(f"assert {test.expr}")
        elif not test.value:
            self.emit("assert False")
        return FALLS

    # ------------------------------------------------------------------ plain statements

    def do_Expr(self, node: ast.Expr) -> str:
        if isinstance(node.value, ast.Constant):
            return FALLS
        if isinstance(node.value, ast.Call) and self.only_tells(node.value):
            return FALLS
        function = node.value.func if isinstance(node.value, ast.Call) else None
        if isinstance(function, ast.Attribute) and function.attr in CHANGING and self.is_ignored(function.value):
            self.values(node.value.args)  # type: ignore[attr-defined]
            return FALLS
        self.value(node.value)
        return FALLS

    def is_ignored(self, node: ast.expr) -> bool:
        """Whether this is an attribute that cannot be stored: it may be changed, since nobody may look at it."""
        if not isinstance(node, ast.Attribute):
            return False
        owner = self.value(node.value)
        return isinstance(owner, Obj) and isinstance(owner.layout.attributes.get(self.mangled(node.attr)), OpaqueL)

    def do_Pass(self, node: ast.Pass) -> str:
        return FALLS

    def do_Bind(self, node: Bind) -> str:
        self.assign(node.target, node.value)
        return FALLS

    def do_Assign(self, node: ast.Assign) -> str:
        if is_lazy(node.value) and not all(isinstance(t, ast.Tuple | ast.List) for t in node.targets):
            raise Cannot("keeps a generator, which looks at its items only later", "Keep a list: [...] or list(...).")
        value = self.value(node.value)
        if isinstance(value, Fam) and is_ragged(value) and len(node.targets) == 1:
            self.decisions.split.add(self.statement)
            raise Restart
        if is_exchange(node) and not any(map(self.is_kept_place, self.items(value))):
            copies = [self.copy(item) if homes(item) else item for item in self.items(value)]
            outer, self.copying = self.copying, True
            self.assign(node.targets[0], Seq(copies))
            self.copying = outer
            return FALLS
        if len(node.targets) > 1:
            value = self.hold(value)
        for target in node.targets:
            self.assign(target, value)
        return FALLS

    def do_AnnAssign(self, node: ast.AnnAssign) -> str:
        if node.value is not None:
            self.assign(node.target, self.value(node.value))
        return FALLS

    def do_AugAssign(self, node: ast.AugAssign) -> str:
        if isinstance(node.target, ast.Subscript) and self.is_ignored(node.target.value):
            self.value(node.value)
            return FALLS
        node = self.called_once(node)
        read = ast.copy_location(as_load(node.target), node)
        old = self.value(read)
        new = self.value(node.value)
        if isinstance(old, Lst) or (isinstance(old, Seq) and old.is_list):
            self.changed(old)
        if isinstance(old, Seq) and old.is_list and isinstance(node.op, ast.Add):
            self.extend_list(old, new)
            return FALLS
        if isinstance(old, Lst) and isinstance(node.op, ast.BitOr if old.is_set else ast.Add):
            self.extend_list(old, new)
            return FALLS
        if isinstance(old, Cells | Mem) and old.shape and not isinstance(node.target, ast.Subscript):
            self.changed(old)
            self.store_array(old, self.binary(node.op, old, new))
            return FALLS
        self.assign(node.target, self.binary(node.op, old, new))
        return FALLS

    def called_once(self, node: ast.AugAssign) -> ast.AugAssign:
        """`a[f()] += 1` with what is called beforehand, since the place is looked up twice."""
        target = node.target
        if isinstance(target, ast.Name) or not any(isinstance(n, ast.Call) for n in ast.walk(target)):
            return node
        made = copy.deepcopy(node)
        for k, (part, spot) in enumerate([(made.target, "value"), (made.target, "slice")]):
            inner = getattr(part, spot, None)
            if inner is not None and any(isinstance(n, ast.Call) for n in ast.walk(inner)):
                name = f"<{spot} {k}>"
                self.frame.names[name] = self.hold(self.index(inner) if spot == "slice" else self.value(inner))
                setattr(part, spot, ast.copy_location(ast.Name(name, ast.Load()), inner))
        return made

    def do_FunctionDef(self, node: ast.FunctionDef) -> str:
        self.frame.names[node.name] = Local(node, self.frame)
        return FALLS

    def do_Import(self, node: ast.Import) -> str:
        for alias in node.names:
            module = __import__(alias.name)
            self.frame.names[alias.asname or alias.name.partition(".")[0]] = Const(module)
        return FALLS

    def do_With(self, node: ast.With) -> str:
        for item in node.items:
            call = item.context_expr
            maker = self.value(call.func) if isinstance(call, ast.Call) else Const(None)
            raising = isinstance(call, ast.Call) and any(
                isinstance(k.value, ast.Constant) and k.value.value in ("raise", "error") for k in call.keywords
            )
            if not isinstance(maker, Const) or maker.value not in SILENCING or raising or item.optional_vars:
                raise Cannot(
                    "is a `with` statement, which is not translated",
                    "Do without it here (files are read in __init__), or keep compiled=False; np.errstate, "
                    "np.printoptions and warnings.catch_warnings are understood.",
                )
        return self.execute(node.body)

    def do_Delete(self, node: ast.Delete) -> str:
        for target in node.targets:
            if isinstance(target, ast.Name):
                continue
            if not isinstance(target, ast.Subscript):
                raise Cannot("deletes an attribute", "Set it to None instead.")
            owner = self.value(target.value)
            if isinstance(target.slice, ast.Slice):
                self.delete_slice(self.simple(owner), self.index(target.slice))
            else:
                self.method(owner, "pop", [self.value(target.slice)], {})
        return FALLS

    def delete_slice(self, owner: Value, part: Value) -> None:
        """`del items[a:b]`."""
        self.changed(owner)
        if isinstance(owner, Seq) and owner.is_list:
            self.make_list_bounded(owner)
        if isinstance(part, Const):
            part = Span([Const(part.value.start), Const(part.value.stop), Const(part.value.step)])
        assert isinstance(part, Span)
        if not isinstance(owner, Lst) or owner.is_set:
            raise Cannot(f"deletes a part of {self.name_of(owner)}", "Keep a list.")
        self.must_grow(owner)
        first, count, step = self.span_of(part, owner.length)
        if step != 1:
            raise Cannot("deletes every so many items", "Loop over them.")
        self.written_out(plain_python.delete_part, owner, *[Num(self.temporary(n), PY_INT) for n in (first, count)])

    def do_Global(self, node: ast.Global) -> str:
        raise Cannot("changes global state, which all lanes would share", "Keep it in an attribute of the environment.")

    def do_Nonlocal(self, node: ast.Nonlocal) -> str:
        raise Cannot(
            "changes a name of the function around it", "Return the new value, or keep it in a list of one item."
        )

    def do_unknown(self, node: ast.stmt) -> str:
        raise Cannot(f"is a `{type(node).__name__.lower()}` statement, which is not translated")

    # ------------------------------------------------------------------ assigning

    def assign(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self.assign_name(target.id, value)
        elif isinstance(target, ast.Tuple | ast.List):
            self.unpack(target, value)
        elif isinstance(target, ast.Attribute):
            owner = self.value(target.value)
            owner = owner.value if isinstance(owner, Maybe) else owner
            if not isinstance(owner, Obj):
                raise Cannot(f"sets an attribute of {self.name_of(owner)}")
            self.set_attribute(owner, self.mangled(target.attr), value)
        elif isinstance(target, ast.Subscript):
            if self.is_ignored(target.value):
                return
            value = self.hold(value) if isinstance(value, Num) else value
            self.store_item(self.value(target.value), target.slice, value)
        else:
            raise Cannot("assigns to something that is not a name, an attribute or an item")

    def unpack(self, target: ast.Tuple | ast.List, value: Value) -> None:
        starred = [k for k, part in enumerate(target.elts) if isinstance(part, ast.Starred)]
        items = [self.hold(v) for v in self.items(value, None if starred else len(target.elts))]
        if starred:
            k, after = starred[0], len(target.elts) - starred[0] - 1
            middle = Seq(items[k : len(items) - after], True, self.site, self.depth)
            items = [*items[:k], middle, *items[len(items) - after :]]
        for part, item in zip(target.elts, items, strict=True):
            self.assign(part.value if isinstance(part, ast.Starred) else part, item)

    def assign_name(self, name: str, value: Value) -> None:
        value = self.simple(value)
        if isinstance(value, Num) and value.expr in self.at_most:
            self.frame.names[name] = value
        elif isinstance(value, Num):
            variable = self.variable(name)
            if value.expr != variable:
                self.emit(f"{variable} = {value.expr}")
                if value.kind.weak and value.kind.is_whole and re.search(r" (\*|<<|\*\*) ", value.expr):
                    self.grown.add(variable)
            if name in set_once(self.frame.node):
                self.stable.add(variable)
            self.frame.names[name] = Num(variable, value.kind)
        elif isinstance(value, Seq) and not value.is_list:
            self.frame.names[name] = self.hold(value)
        else:
            self.frame.names[name] = self.hold(value)

    def not_too_large(self, number: Num) -> Num:
        """A whole number that was multiplied, and is kept: Python's have no end, those of kernels wrap around."""
        grown = re.search(r" (\*|<<|\*\*) |\b(" + "|".join(sorted(self.grown)) + r")\b", number.expr)
        if grown is None or (number.expr.isidentifier() and number.expr not in self.grown):
            return number
        held = self.hold(number)
        self.emit(f"assert abs({held.expr}) < {2**62}")
        return held

    def set_attribute(self, owner: Obj, name: str, value: Value) -> None:
        layout = owner.layout.attributes.get(name)
        setter = inspect.getattr_static(type(owner.layout.example), name, None)
        if layout is None and isinstance(setter, property) and setter.fset is not None:
            self.call_function(setter.fset, [owner, value], {}, owner=type(owner.layout.example))
            return
        if layout is None:
            raise Cannot(
                f"sets {name!r}, which no episode that was watched has set",
                "Set it in __init__ too, to a value of the type that it will have.",
            )
        if isinstance(layout, OpaqueL):
            return
        base = owner.base + tidy(name) if owner.base.endswith(".") else f"{owner.base}_{tidy(name)}"
        if type(layout).__name__ == "VarL":
            self.variants[base] = layout.store(self, base, value)
            return
        if owner.base == "s." and self.place_of(layout) is not None:
            self.set_place(layout, base, self.simple(value))
            return
        path = base.removeprefix("s.")
        value = self.realise(value) if isinstance(value, Fam) and not takes_fam(layout) else value
        varies = isinstance(value, Mem) and any(isinstance(n, Dyn) for n in value.shape)
        if varies and isinstance(layout, ArrL) and isinstance(value, Mem) and len(value.shape) == len(layout.shape):
            value = self.of_length(value, layout.shape)
        wanted = without_references(layout_of(value))
        if isinstance(value, Fam) and value.made and isinstance(layout, FamL):
            wanted = layout
        both = (
            layout
            if isinstance(layout, ConstL) and isinstance(value, Const) and same(layout.value, value.value)
            else (join(as_column(layout), wanted))
        )
        if both != layout and not (isinstance(layout, ConstL) and isinstance(value, Const) and both == layout):
            if isinstance(both, ListL) and isinstance(layout, SeqL) and not (both.fixed or both.drops):
                both = replace(both, cap=self.decisions.most_items(both.cap))
            made = not base.startswith("s.")
            self.decisions.layouts[("made", type(owner.layout.example), name) if made else ("attribute", path)] = both
            raise Restart
        if isinstance(layout, ConstL):
            return
        if owner.base != "s.":
            self.changed(owner)
        given, moved = value, self.copying
        if referred(value) & frozenset(layout.columns(base)):  # items of the old list, which is about to go
            value, self.copying = self.copy(value), True
        if isinstance(layout, NumL) and layout.kind.weak and layout.kind.is_whole and isinstance(value, Num):
            value = self.not_too_large(value)
        self.replaced(layout, base, given)
        self.rehome(given, self.write(layout, base, value, owner.index))
        self.copying = moved
