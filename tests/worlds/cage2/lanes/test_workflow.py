"""Orders of the unit types: ways to write them, and distances between them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.worlds.cage2.lanes.names import UNIT_TYPES
from shoal.worlds.cage2.lanes.workflow import (
    NAMED_WORKFLOWS,
    WORKFLOWS,
    as_workflow,
    effective_rule,
    footrule,
    kendall,
    one_hot,
    workflow_index,
    workflow_name,
)

orders = st.sampled_from(WORKFLOWS)


@given(order=orders)
def test_every_spelling_means_the_same_workflow(order):
    names = [UNIT_TYPES[kind] for kind in order]
    for spelling in (order, list(order), names, " ".join(names), ",".join(names), workflow_name(order)):
        assert as_workflow(spelling) == order
    assert as_workflow(workflow_index(order)) == order


def test_six_workflows_have_names():
    assert len({as_workflow(name) for name in NAMED_WORKFLOWS}) == 6
    assert as_workflow("critical_first")[0] == UNIT_TYPES.index("op_server")


@given(a=orders, b=orders, c=orders)
def test_distances_are_metrics(a, b, c):
    for distance in (kendall, footrule):
        assert (distance(a, b) == 0) == (a == b)
        assert distance(a, b) == distance(b, a)
        assert distance(a, c) <= distance(a, b) + distance(b, c) + 1e-12


@pytest.mark.parametrize("distance", [kendall, footrule])
def test_the_reverse_is_farthest(distance):
    assert distance(WORKFLOWS[0], WORKFLOWS[-1]) == 1


@given(order=orders)
def test_one_hot_has_one_type_per_position(order):
    rows = one_hot(order).reshape(5, 5)
    assert (rows.sum(0) == 1).all()
    assert rows.argmax(1).tolist() == list(order)


def test_true_state_compliance_tells_sixteen_rules_apart():
    assert len({effective_rule(order) for order in WORKFLOWS}) == 16
