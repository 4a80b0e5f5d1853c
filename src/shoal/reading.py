"""Reading what somebody else may have written: any trouble with the text of a file is a `ValueError` with a reason."""

from __future__ import annotations

import json
import math
import tomllib
from typing import Any

MAX_DEPTH = 100
"""Tables within tables: what nests deeper is not a file of ours, and would exhaust Python's stack later on."""


def parse_json(content: str | bytes) -> Any:
    """The value that `content` stands for; `ValueError` if it is not JSON, or nests too deeply."""
    try:
        value = json.loads(content)
    except RecursionError:
        raise ValueError("it nests too deeply") from None
    _check_depth(value)
    return value


def parse_toml(content: bytes) -> dict[str, Any]:
    """The named values that `content` stands for; `ValueError` if it is not TOML, or nests too deeply."""
    try:
        values = tomllib.loads(content.decode())
    except RecursionError:
        raise ValueError("it nests too deeply") from None
    _check_depth(values)
    return values


def _check_depth(value: object) -> None:
    """`ValueError` unless lists and tables nest at most `MAX_DEPTH` deep."""
    level = [value]
    for _ in range(MAX_DEPTH):
        tables = [each for each in level if isinstance(each, dict | list)]
        if not tables:
            return
        level = [item for each in tables for item in (each.values() if isinstance(each, dict) else each)]
    raise ValueError(f"it nests more than {MAX_DEPTH} deep")


def is_number(value: object) -> bool:
    """Whether `value` is a number that calculations can use: finite, and not too large for a float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def shortened(value: object, length: int = 200) -> str:
    """`value` as it is written in Python, with its middle left out if it is long."""
    text = repr(value)
    return text if len(text) <= length else f"{text[: length - 20]} … {text[-15:]}"
