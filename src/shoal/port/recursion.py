"""Functions that call themselves as the last thing they do, as loops."""

from __future__ import annotations

import ast
import copy


def without_tail_calls(node: ast.FunctionDef | ast.Lambda, is_method: bool) -> ast.FunctionDef | ast.Lambda:
    """The function as a loop, if it calls itself, and nowhere but at its end; otherwise as it is."""
    if isinstance(node, ast.Lambda) or not any(_calls(n, node, is_method) for n in ast.walk(node)):
        return node
    made = copy.deepcopy(node)
    body = _Turns(made, is_method).rewritten(made.body, True)
    if body is None or any(_calls(n, node, is_method) for s in body for n in ast.walk(s)):
        return node
    returns = any(isinstance(n, ast.Return) and n.value is not None for n in ast.walk(made))
    end: ast.stmt = ast.Return(None) if returns else ast.Break()
    body = [s if not (isinstance(s, ast.Return) and s.value is None) else end for s in body]
    loop = ast.While(ast.Constant(True), [*body, end], [])
    made.body = [ast.fix_missing_locations(ast.copy_location(loop, node.body[0]))]
    return made


def _calls(node: ast.AST, function: ast.FunctionDef, is_method: bool) -> bool:
    """Whether this is a call of the function by its own name."""
    if not isinstance(node, ast.Call):
        return False
    if not is_method:
        return isinstance(node.func, ast.Name) and node.func.id == function.name
    first = function.args.args[0].arg if function.args.args else ""
    called = node.func
    return (
        isinstance(called, ast.Attribute)
        and called.attr == function.name
        and isinstance(called.value, ast.Name)
        and called.value.id == first
    )


class _Turns:
    """Calls at the end of a function as new values for its parameters, and another turn."""

    def __init__(self, function: ast.FunctionDef, is_method: bool) -> None:
        self._function, self._is_method = function, is_method

    def rewritten(self, body: list[ast.stmt], at_end: bool) -> list[ast.stmt] | None:
        """The statements with another turn in place of each call at the end; None where that cannot be said."""
        made: list[ast.stmt] = []
        for k, statement in enumerate(body):
            after = body[k + 1 :]
            leaves = bool(after) and isinstance(after[0], ast.Return) and after[0].value is None
            ends = leaves or (at_end and not after)
            called = getattr(statement, "value", None)
            own = called if isinstance(called, ast.Call) and _calls(called, self._function, self._is_method) else None
            if own is not None and (isinstance(statement, ast.Return) or (isinstance(statement, ast.Expr) and ends)):
                turn = self._turn(own)
                return None if turn is None else [*made, *turn, ast.copy_location(ast.Continue(), statement)]
            if isinstance(statement, ast.If):
                parts = [self.rewritten(part, ends) for part in (statement.body, statement.orelse)]
                if parts[0] is None or parts[1] is None:
                    return None
                statement = ast.copy_location(ast.If(statement.test, parts[0], parts[1]), statement)
            made.append(statement)
        return made

    def _turn(self, call: ast.Call) -> list[ast.stmt] | None:
        """New values for the parameters."""
        arguments = self._function.args
        names = [a.arg for a in arguments.args[1 if self._is_method else 0 :]]
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or any(k.arg is None for k in call.keywords):
            return None
        late = dict(zip(names[len(names) - len(arguments.defaults) :], arguments.defaults, strict=True))
        given = {**late, **dict(zip(names, call.args, strict=False)), **{str(k.arg): k.value for k in call.keywords}}
        if set(given) != set(names) or any(isinstance(a, ast.Starred) for a in call.args):
            return None
        moved = [(n, v) for n, v in given.items() if not (isinstance(v, ast.Name) and v.id == n)]
        if not moved:
            return []
        names_of = ast.Tuple([ast.Name(n, ast.Store()) for n, _ in moved], ast.Store())
        assignment = ast.Assign([names_of], ast.Tuple([v for _, v in moved], ast.Load()))
        return [ast.fix_missing_locations(ast.copy_location(assignment, call))]
