"""Ten environments in different styles: as they are."""

from __future__ import annotations

import pytest

from tests.port.strangers import ALL


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_a_strangers_class_is_compiled_as_it_is(cls, proven):
    slow = cls.__name__ in ("Epidemic", "Treasure", "Pontoon")
    source, proof = proven(cls, steps=6 if slow else 15)
    assert proof.steps >= 96
    assert proof.ulps == 0 or source.inexact
