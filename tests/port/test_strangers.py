"""Environments in different styles: as they are."""

from __future__ import annotations

import pytest

from tests.port.more_strangers import MORE
from tests.port.strangers import ALL

LONG = ("Bandit", "Epidemic", "Pontoon", "Treasure")
CASES = [pytest.param(c, id=c.__name__, marks=[pytest.mark.slow] if c.__name__ in LONG else []) for c in [*ALL, *MORE]]


@pytest.mark.parametrize("cls", CASES)
def test_a_strangers_class_is_compiled_as_it_is(cls, proven):
    source, proof = proven(cls, steps=6 if cls.__name__ in LONG else 12)
    assert proof.steps >= 96
    assert proof.ulps == 0 or source.inexact
