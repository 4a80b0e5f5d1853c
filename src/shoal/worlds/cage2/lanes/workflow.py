"""Workflows: orders of the five unit types, in which Blue is to repair what red has taken."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import TYPE_CHECKING

from shoal.errors import ConfigError
from shoal.worlds.cage2.lanes.names import UNIT_TYPES

if TYPE_CHECKING:
    import numpy as np

Workflow = tuple[int, ...]
"""Numbers of unit types, most urgent first."""
Spelling = str | int | tuple[str | int, ...]
"""A workflow as people write it: a name, unit types in a text or a tuple, or an index in `WORKFLOWS`."""

WORKFLOWS: tuple[Workflow, ...] = tuple(itertools.permutations(range(len(UNIT_TYPES))))  # all 120
NAMED_WORKFLOWS = {
    "critical_first": "op_server enterprise op_host user defender",
    "enterprise_focus": "enterprise op_server op_host user defender",
    "user_priority": "user enterprise op_server op_host defender",
    "operational_focus": "op_server op_host enterprise user defender",
    "balanced": "defender enterprise op_server op_host user",
    "reverse": "user op_host op_server enterprise defender",
}


def as_workflow(value: str | int | Iterable[str | int]) -> Workflow:
    """A workflow from a name, unit types in a string or a list, their numbers, or its index in `WORKFLOWS`."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        index = int(value)
        if not 0 <= index < len(WORKFLOWS):
            raise ConfigError(f"Workflow {index} does not exist. They are numbered 0 to {len(WORKFLOWS) - 1}.")
        return WORKFLOWS[index]
    parts: Iterable[str | int] = value  # type: ignore[assignment]  # no number any more
    if isinstance(value, str):
        parts = NAMED_WORKFLOWS.get(value, value).replace(",", " ").replace(">", " ").split()
    order = tuple(UNIT_TYPES.index(part) if part in UNIT_TYPES else part for part in parts)
    if order not in WORKFLOWS:
        raise ConfigError(
            f"Workflow {value!r} is not an order of the five unit types. Name each of {', '.join(UNIT_TYPES)} once, or "
            f"use one of {', '.join(NAMED_WORKFLOWS)}."
        )
    return tuple(int(kind) for kind in order)


def as_workflows(value: Spelling | Sequence[Spelling]) -> tuple[Workflow, ...]:
    """One workflow or several. A tuple or list is several workflows, unless `is_one_order` says otherwise."""
    if not isinstance(value, list | tuple) or is_one_order(value):
        return (as_workflow(value),)  # type: ignore[arg-type]  # a sequence is one order here
    if not value:
        raise ConfigError("workflow is empty. Give one workflow, or several to deal out to the lanes in turn.")
    return tuple(as_workflow(each) for each in value)


def is_one_order(value: Sequence[object]) -> bool:
    """Whether the items are unit types: their names, or in a tuple their numbers (in a list these are five indices)."""
    numbers = range(len(UNIT_TYPES)) if isinstance(value, tuple) else ()
    return bool(value) and all(item in UNIT_TYPES or item in numbers for item in value)


def workflow_name(order: Workflow) -> str:
    """`op_server > enterprise > ...`: how logs and reports write a workflow."""
    return " > ".join(UNIT_TYPES[kind] for kind in order)


def workflow_index(order: Workflow) -> int:
    """The number of a workflow in `WORKFLOWS`."""
    return WORKFLOWS.index(tuple(order))


def one_hot(order: Workflow) -> np.ndarray:
    """[25]: for each of five positions, which of five types stands there."""
    import numpy as np

    return np.eye(5, dtype=np.float32)[list(order)].ravel()


def kendall(a: Workflow, b: Workflow) -> float:
    """Share of the ten pairs of types that the two workflows order differently, 0 to 1."""
    place = {kind: position for position, kind in enumerate(b)}
    return sum(place[x] > place[y] for x, y in itertools.combinations(a, 2)) / 10


def footrule(a: Workflow, b: Workflow) -> float:
    """Spearman's footrule: how far the types are moved, 0 to 1."""
    place = {kind: position for position, kind in enumerate(b)}
    return sum(abs(position - place[kind]) for position, kind in enumerate(a)) / 12


def effective_rule(order: Workflow) -> Workflow:
    """What true-state compliance can tell apart: defender is never held and user always, so nothing counts behind it.

    The 120 workflows make 16 different rules.
    """
    kinds = [kind for kind in order if UNIT_TYPES[kind] != "defender"]
    return tuple(kinds[: kinds.index(UNIT_TYPES.index("user")) + 1])
