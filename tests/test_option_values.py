"""Values as people write them, fitted to the types of options."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from shoal.errors import ConfigError
from shoal.options import fit, read_text

Mixed = str | int | tuple[str | int, ...] | None


@pytest.mark.parametrize(
    ("text", "hint", "value"),
    [
        ("7", Mixed, 7),
        ("[7, 3]", Mixed, (7, 3)),
        ("balanced", Mixed, "balanced"),
        ("null", Mixed, None),
        ("none", float | None, None),  # as the help of such a field calls it
        ("none", str | None, "none"),
        ("none", Literal["none", "gru"] | None, "none"),
        ("7", str, "7"),
        ('"7"', Mixed, '"7"'),
        ("bline,meander", str | tuple[str, ...], "bline,meander"),
    ],
)
def test_a_word_is_a_number_or_a_list_where_the_field_takes_them(text, hint, value):
    assert read_text(text, hint, "x") == value


def test_choices_may_be_spelled_in_any_way():
    hint = Literal["cage2-2022", "debugged"]
    assert fit("CAGE2_2022", hint, "variant") == "cage2-2022"
    with pytest.raises(ConfigError, match="Did you mean 'debugged'"):
        fit("debuged", hint, "variant")


def test_lists_tuples_and_arrays():
    assert fit([1, 2], tuple[int, ...], "x") == (1, 2)
    assert fit(np.array([1, 2]), int | tuple[int, ...], "x") == (1, 2)
    both = tuple[int, ...] | list[int]
    assert fit([1, 2], both, "x") == [1, 2]
    assert fit((1, 2), both, "x") == (1, 2)
