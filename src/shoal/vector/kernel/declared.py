"""Where in an author's file something is declared, for messages about it."""

from __future__ import annotations

import ast
import inspect
import textwrap


def declared(kernel: type, attribute: str) -> str:
    """`Toy.params (toy.py:24)`: how messages name what a class declares."""
    owner = next((cls for cls in kernel.__mro__ if attribute in vars(cls)), kernel)
    try:
        lines, first = inspect.getsourcelines(owner)
        path = inspect.getsourcefile(owner)
        body = ast.parse(textwrap.dedent("".join(lines))).body[0].body  # type: ignore[attr-defined]
    except (OSError, TypeError, SyntaxError):  # made in a console, or by a program
        return f"{kernel.__name__}.{attribute}"
    places = [first + s.lineno - 1 for s in body if attribute in _assigned(s)]
    return f"{kernel.__name__}.{attribute} ({path}:{max(places, default=first)})"


def _assigned(statement: ast.stmt) -> set[str]:
    """The names that a statement of a class gives something to."""
    if isinstance(statement, ast.FunctionDef):
        return {statement.name}
    return {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
