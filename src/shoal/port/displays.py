"""Tuples, lists, dicts, comprehensions, and calls of the environment's own functions."""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any

import gymnasium as gym

from shoal.port.frames import Frame, Walk, as_list_maker, can_change, definition_of, yields
from shoal.port.joining import join, layout_of, reference_of
from shoal.port.layouts import ListL
from shoal.port.recursion import without_tail_calls
from shoal.port.refusal import Cannot, Restart
from shoal.port.truths import Truths
from shoal.port.values import (
    Const,
    DictV,
    Dyn,
    Fam,
    Local,
    Lst,
    Mem,
    Num,
    Obj,
    Seq,
    Value,
    literal,
)

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


CHANGES = re.compile(r"\b(pcg|pcg_more|mt)\.|^\s*s\.[\w\[\], +*-]+ =")
"""Lines that draw a number or change the state."""
ANY_ORDER = ("sum", "any", "all", "min", "max", "len", "set", "frozenset", "sorted")
"""What gives the same whatever the order of what it is given."""


class Displays(Truths):
    """How things are put together, and functions written out."""

    def see_Tuple(self, node: ast.Tuple) -> Value:
        return self.display(node.elts, False)

    def see_List(self, node: ast.List) -> Value:
        made = self.display(node.elts, True)
        if self.site in self.decisions.lists:
            return self.bounded(made)
        return made

    def sequence(self, items: list[Value], is_list: bool) -> Value:
        """A new list or tuple of what these items are now."""
        made = Seq([self.hold(item) for item in items], is_list, self.site, self.depth)
        return self.bounded(made) if is_list and self.site in self.decisions.lists else made

    def bounded(self, made: Value, is_set: bool = False, drops: bool = False) -> Value:
        """A list that changes where that is not sure: in memory, with a length of its own if it grows."""
        (cap, fixed), key = self.decisions.lists[self.site], ("items", self.site)
        layout = self.decisions.layouts.get(key)
        for item in self.items(made):
            own = reference_of(self.simple(item))
            layout = own if layout is None else join(layout, own)
        count = len(self.items(made))
        whole = ListL(layout, count if fixed else cap if drops else max(cap, count), is_set, fixed, drops)
        value = self.write(whole, self.unique("items"), made)
        assert isinstance(value, Lst)
        value.site = self.site  # type: ignore[attr-defined]
        self.copies.pop(value.length, None)  # items may be copies of something, the list is not
        return value

    def display(self, nodes: list[ast.expr], is_list: bool) -> Value:
        values: list[Value] = []
        plain = [n.value if isinstance(n, ast.Starred) else n for n in nodes]
        found = self.values(plain)
        starred = [isinstance(n, ast.Starred) for n in nodes]
        if is_list and any(s and isinstance(v, Lst | Walk) for s, v in zip(starred, found, strict=True)):
            return self.varying_display(found, starred)
        for node, value in zip(nodes, found, strict=True):
            values += self.items(value) if isinstance(node, ast.Starred) else [value]
        if all(isinstance(v, Const) for v in values) and not is_list:
            return Const(tuple(v.value for v in values))  # type: ignore[attr-defined]
        return Seq([self.hold(v) if is_list else v for v in values], is_list, self.site, self.depth)

    def varying_display(self, values: list[Value], starred: list[bool]) -> Value:
        """`[a, *others]` where the number of the others varies."""
        made: Value = Seq([], True)
        for value, many in zip(values, starred, strict=True):
            part = self.list_of_walk(value) if isinstance(value, Walk) else value
            if not isinstance(part, Lst):
                part = Seq([self.hold(item) for item in (self.items(value) if many else [value])], True)
            made = self.binary(ast.Add(), made, part)
        return made

    def see_Set(self, node: ast.Set) -> Value:
        values = self.values(node.elts)
        return self.make_set([Seq(values)], {})

    def see_Dict(self, node: ast.Dict) -> Value:
        made: dict[Any, Value] = {}
        for key, item in zip(node.keys, node.values, strict=True):
            value = self.hold(self.value(item)) if key is not None else self.value(item)
            if key is None:
                self.all_there(value)
                pairs = value.items if isinstance(value, DictV) else {k: Const(v) for k, v in value.value.items()}  # type: ignore[attr-defined]
                made |= {k: self.hold(v) for k, v in pairs.items()}
                continue
            name = self.value(key)
            if not isinstance(name, Const):
                raise Cannot("makes a dict whose keys vary", "Use an array with one place per key.")
            made[name.value] = value
        return self.local_dict(made)

    def local_map(self, missing: object = None) -> Lst:
        """A dict that begins without keys, and whose keys vary."""
        item, cap = self.decisions.layouts.get(("items", self.site)), self.decisions.list_cap()
        layout = ListL(item, cap, is_map=True, missing=missing)
        made = self.write(layout, self.unique("items"), Seq([], True))
        assert isinstance(made, Lst)
        made.site = self.site  # type: ignore[attr-defined]
        return made

    def local_dict(self, items: dict[Any, Value]) -> Value:
        """A dict that this function makes, with variables for what branches and loops set in it."""
        if self.site in self.decisions.maps:
            return self.local_map()
        made = DictV(items, self.depth, made=self.site)
        late = []
        for key, layout in self.decisions.dicts.get(self.site, {}).items():
            base = self.unique("item")
            if key in items:
                layout = join(layout, layout_of(self.simple(items[key])))
                self.write(layout, base, items[key])
            else:
                late.append(key)
                self.emit(f"{base} = {literal(next(iter(layout.columns('x').values()))[0].type(0))}")
            made.items[key], made.variables[key] = layout.read(base), (layout, base)
        made.late = frozenset(late)
        return made

    def all_there(self, owner: Value) -> None:
        """Refuse to ask which keys a dict has, if some may be missing."""
        if isinstance(owner, DictV) and owner.late:
            raise Cannot("asks for the keys of a dict of which a branch sets some", "Set every key from the start.")

    def see_Lambda(self, node: ast.Lambda) -> Value:
        return Local(node, self.frame)

    def see_ListComp(self, node: ast.ListComp) -> Value:
        return self.comprehension(node, node.elt)

    def see_GeneratorExp(self, node: ast.GeneratorExp) -> Value:
        return self.comprehension(node, node.elt)

    def see_SetComp(self, node: ast.SetComp) -> Value:
        outer = dict(self.frame.names)
        try:
            return self.growing(node, node.elt, is_set=True)
        finally:
            self.frame.names = {**self.frame.names, **outer}

    def see_DictComp(self, node: ast.DictComp) -> Value:
        pair = ast.copy_location(ast.Tuple([node.key, node.value], ast.Load()), node)
        if self.site in self.decisions.maps:
            return self.growing_map(node)
        rows = self.comprehension(node, pair)
        if isinstance(rows, Lst) or not all(isinstance(self.items(row, 2)[0], Const) for row in self.items(rows)):
            self.decisions.maps.add((self.frame.key, node.lineno, node.col_offset, type(node).__name__))
            raise Restart
        return DictV(self.pairs(rows), self.depth)

    def growing_map(self, node: ast.DictComp) -> Value:
        """A dict whose keys vary, put together in loops."""
        outer, name = dict(self.frame.names), f"_items_{len(self.frame.names)}"
        self.frame.names[name] = self.local_map()
        place = ast.Subscript(ast.Name(name, ast.Load()), node.key, ast.Store())
        body: list[ast.stmt] = [ast.Assign([place], node.value)]
        for generator in reversed(node.generators):
            for test in reversed(generator.ifs):
                body = [ast.If(test, body, [])]
            body = [ast.For(generator.target, generator.iter, body, [])]
        self.execute([ast.fix_missing_locations(ast.copy_location(s, node)) for s in body])
        made = self.frame.names.pop(name)
        self.frame.names = {**self.frame.names, **outer}
        return made

    def comprehension(self, node: Comprehension, element: ast.expr) -> Value:
        """A list by turns that are known; or, where lengths or conditions vary, one with a length of its own."""
        outer = dict(self.frame.names)
        site = self.site
        try:
            _, fixed = self.decisions.lists.get(site, (0, True))
            if fixed:
                rows: list[Value] = []
                if self.turns_of(node.generators, element, rows):
                    self.site = site
                    made = Seq(rows, True, site, self.depth)
                    return self.bounded(made) if site in self.decisions.lists else made
            return self.growing(node, element)
        finally:
            self.frame.names = {**self.frame.names, **outer}

    def turns_of(self, generators: list[ast.comprehension], element: ast.expr, rows: list[Value]) -> bool:
        """Whether every turn is known; the items are put into `rows`."""
        if not generators:
            rows.append(self.hold(self.value(element)))
            return True
        first, *others = generators
        iterable = self.simple(self.value(first.iter))
        if isinstance(iterable, Fam):
            iterable = self.realise(iterable)
        if not getattr(element, "any_order", False):
            self.in_order(iterable)
        varying = isinstance(iterable, Lst | Walk) or (isinstance(iterable, Mem) and isinstance(iterable.shape[0], Dyn))
        if varying or ((items := self.items(iterable)) and len(items) > 256):
            return False
        for item in items:
            self.assign(first.target, item)
            tests = [self.test(test) for test in first.ifs]
            known = [test.value for test in tests if isinstance(test, Const)]
            if len(known) < len(tests) or (all(known) and not self.turns_of(others, element, rows)):
                return False
        return True

    def growing(self, node: Comprehension, element: ast.expr, is_set: bool = False) -> Value:
        """The comprehension as loops around an append."""
        first = node.generators[0].iter
        walked = self.value(first) if isinstance(first, ast.Name | ast.Attribute) else None
        if isinstance(walked, Seq) and walked.site is not None and any(map(can_change, walked.items)):
            self.make_list_bounded(walked, fixed=True)  # so that its items are known by their places
        name = f"_items_{len(self.frame.names)}"
        method = ast.Attribute(ast.Name(name, ast.Load()), "add" if is_set else "append", ast.Load())
        body: list[ast.stmt] = [ast.Expr(ast.Call(method, [element], []))]
        for generator in reversed(node.generators):
            for test in reversed(generator.ifs):
                body = [ast.If(test, body, [])]
            loop = ast.For(generator.target, generator.iter, body, [])
            loop.any_order = is_set or getattr(element, "any_order", False)  # type: ignore[attr-defined]
            body = [loop]
        empty = ast.Call(ast.Name("set", ast.Load()), [], []) if is_set else ast.List([], ast.Load())
        start = ast.Assign([ast.Name(name, ast.Store())], empty)
        tree = [ast.fix_missing_locations(ast.copy_location(s, node)) for s in (start, *body)]
        self.execute(tree)
        return self.frame.names.pop(name)

    def see_Starred(self, node: ast.Starred) -> Value:
        raise Cannot("unpacks something here", "Name the parts.")

    def see_NamedExpr(self, node: ast.NamedExpr) -> Value:
        self.assign(node.target, self.value(node.value))
        return self.value(ast.copy_location(ast.Name(node.target.id, ast.Load()), node))

    # ------------------------------------------------------------------ calls of the environment's own functions

    def see_Call(self, node: ast.Call) -> Value:
        if self.is_super(node.func):
            return self.call_above(node)
        if isinstance(node.func, ast.Name) and node.func.id in ANY_ORDER:
            for given in node.args:
                if isinstance(given, ast.GeneratorExp | ast.ListComp):
                    given.elt.any_order = True  # type: ignore[attr-defined]
        function = self.value(node.func)
        if isinstance(function, Const) and function.value in (any, all, next):
            self.all_at_once(node)
        positional = [a.value if isinstance(a, ast.Starred) else a for a in node.args]
        values = self.values([*positional, *[k.value for k in node.keywords]])
        arguments: list[Value] = []
        for given, value in zip(node.args, values, strict=False):
            arguments += self.items(value) if isinstance(given, ast.Starred) else [value]
        named: dict[str, Value] = {}
        for keyword, value in zip(node.keywords, values[len(positional) :], strict=True):
            if keyword.arg is None:
                pairs = value.items if isinstance(value, DictV) else {k: Const(v) for k, v in value.value.items()}  # type: ignore[attr-defined]
                named |= {str(k): v for k, v in pairs.items()}
            else:
                named[keyword.arg] = value
        result = self.call(function, arguments, named)
        if isinstance(function, Const) and function.value is sum and isinstance(result, Num) and result.kind.is_float:
            for part in [g for a in node.args for g in getattr(a, "generators", [])[:1]]:
                with self.block():
                    self.in_order(self.simple(self.value(part.iter)))
        return result

    def all_at_once(self, node: ast.Call) -> None:
        """`any(f(x) for x in y)` stops early, and here never does: refused where what it asks changes something."""
        if not node.args or not isinstance(node.args[0], ast.GeneratorExp):
            return
        calls = [n for n in ast.walk(node.args[0].elt) if isinstance(n, ast.Call)]
        calls += [
            n for g in node.args[0].generators for test in g.ifs for n in ast.walk(test) if isinstance(n, ast.Call)
        ]
        if not calls:
            return
        names = dict(self.frame.names)
        with self.block() as lines:
            self.value(node.args[0])
        self.frame.names = names
        if any(CHANGES.search(line) for line in lines):
            raise Cannot("may stop before the last, and what it asks draws or changes something", "Write the loop out.")

    def is_super(self, node: ast.expr) -> bool:
        return (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Name)
            and node.value.func.id == "super"
        )

    def call_above(self, node: ast.Call) -> Value:
        assert isinstance(node.func, ast.Attribute)
        name, receiver = node.func.attr, next(iter(self.frame.names.values()))
        if not isinstance(receiver, Obj):
            raise Cannot("calls super() where the object is not known")
        order = type(receiver.layout.example).__mro__
        start = order.index(self.frame.owner) + 1 if self.frame.owner in order else 1
        for cls in order[start:]:
            if name in vars(cls):
                if cls is gym.Env:
                    return Const(None)
                arguments = self.values(node.args)
                named = {str(k.arg): self.value(k.value) for k in node.keywords}
                return self.call_function(vars(cls)[name], [receiver, *arguments], named, owner=cls)
        raise Cannot(f"calls super().{name}, which does not exist")

    def call_function(
        self, function: Any, arguments: list[Value], named: dict[str, Value], owner: type | None = None
    ) -> Value:
        """Write out a function of the environment's in place of its call."""
        function = inspect.unwrap(function)
        node, file = definition_of(function)
        node = without_tail_calls(node, owner is not None)
        name = function.__qualname__.replace("<locals>.", "")
        scope = dict(function.__globals__)
        if function.__closure__:
            cells = zip(function.__code__.co_freevars, function.__closure__, strict=True)
            scope |= {key: cell.cell_contents for key, cell in cells if key != "__class__"}
        defaults = inspect.signature(function)
        names = self.bind(defaults, arguments, named)
        self.reached[f"{name} ({file})"] = None
        return self.enter(node, file, name, scope, names, owner, None)

    def bind(self, signature: inspect.Signature, arguments: list[Value], named: dict[str, Value]) -> dict[str, Value]:
        try:
            bound = signature.bind(*arguments, **named)
        except TypeError as error:
            raise Cannot(f"is called with the wrong arguments: {error}") from None
        names: dict[str, Value] = {}
        for key, parameter in signature.parameters.items():
            if parameter.kind is parameter.VAR_POSITIONAL:
                names[key] = Seq(list(bound.arguments.get(key, ())))
            elif parameter.kind is parameter.VAR_KEYWORD:
                names[key] = DictV(dict(bound.arguments.get(key, {})), -1)
            elif key in bound.arguments:
                names[key] = bound.arguments[key]
            else:
                names[key] = Const(parameter.default)
        return names

    def enter(
        self,
        node: Any,
        file: str,
        name: str,
        scope: dict[str, Any],
        names: dict[str, Value],
        owner: type | None,
        outer: Frame | None,
    ) -> Value:
        key = (*self.frame.key, self.site[1:3], name) if getattr(self, "frame", None) else (name,)
        if len(key) > 60 or sum(part == name for part in key) > 2:
            raise Cannot(f"calls {name} from within itself", "Write it as a loop.")
        frame = Frame(node, file, name, scope, {}, key, owner, outer=outer)
        held = {key: self.hold(value) for key, value in names.items()}
        assigned = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        frame.names = held
        before = getattr(self, "frame", None)
        self.frame = frame
        for argument in sorted(assigned & held.keys()):
            self.assign_name(argument, held[argument])
        self.frame = before  # type: ignore[assignment]
        if yields(node):
            frame.node = as_list_maker(node)
        if isinstance(node, ast.Lambda):
            body = ast.copy_location(ast.Return(node.body), node)
            frame.node = ast.copy_location(ast.FunctionDef(name, node.args, [body], [], None), node)
        return self.run(frame)

    def call_local(self, local: Local, arguments: list[Value], named: dict[str, Value]) -> Value:
        given = local.node.args
        kinds = inspect.Parameter
        plain = [*given.posonlyargs, *given.args]
        late: list[ast.expr | None] = [None] * (len(plain) - len(given.defaults)) + list(given.defaults)
        parameters = [
            kinds(a.arg, kinds.POSITIONAL_OR_KEYWORD, default=kinds.empty if d is None else d)
            for a, d in zip(plain, late, strict=True)
        ]
        if given.vararg is not None:
            parameters.append(kinds(given.vararg.arg, kinds.VAR_POSITIONAL))
        for a, d in zip(given.kwonlyargs, given.kw_defaults, strict=True):
            parameters.append(kinds(a.arg, kinds.KEYWORD_ONLY, default=kinds.empty if d is None else d))
        if given.kwarg is not None:
            parameters.append(kinds(given.kwarg.arg, kinds.VAR_KEYWORD))
        values = self.bind(inspect.Signature(parameters), arguments, named)
        for key, value in values.items():
            if isinstance(value, Const) and isinstance(value.value, ast.expr):
                values[key] = self.value(value.value)
        frame = local.frame
        name = getattr(local.node, "name", "lambda")
        return self.enter(local.node, frame.file, name, frame.scope, values, frame.owner, frame)
