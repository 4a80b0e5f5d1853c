"""Ways to damage a file in one or two places: strange values, lost keys, wrong kinds, cut or changed bytes.

Everything is drawn from a `random.Random`, so that hypothesis can hand in one of its own and shrink what it finds.
"""

from __future__ import annotations

import copy
import json
import struct
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import numpy as np

DEEP, LONG = "«deep»", "«long»"  # stand for what `json.dumps` could not write, and are replaced in the text
_SPELLED = {DEEP: "[" * 100_000 + "]" * 100_000, LONG: "9" * 5_000}

VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 0.5, -0.5, float("nan"), float("inf"), float("-inf"), 1e99, -1e99, 1e-99,
    2**31, 2**63, -(2**63), 10**30, 10**400, "", "x", "auto", "1", "nan", "1e99", "a\0b", "\ud800", "a" * 5_000, "..",
    "/", [], {}, [[]], [None], [1, 2], ["x"], {"": None}, {"a": 1}, [float("nan")], [-1], [10**30], DEEP, LONG,
)  # fmt: skip
"""What takes the place of a value. Ours are never of a size that would merely take long."""


class Damaged(NamedTuple):
    """What a file holds now, and in words what was done to it; `fields` are the keys at the damaged places."""

    content: bytes
    how: str
    fields: tuple[str, ...] = ()


Damage = Callable[[bytes, Random], Damaged]


# ---------------------------------------------------------------------- nested values


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value inside, itself included."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inside for place in places(item, (*path, key)))]


def damage_value(document: Any, rng: Random) -> tuple[Any, str, tuple[str, ...]]:
    """A copy of nested values with something strange at one or two places."""
    document, said, fields = copy.deepcopy(document), [], []
    for _ in range(rng.choice((1, 1, 2))):
        # a place near the top is as likely as any of a thousand numbers deep inside
        depth = rng.choice(sorted({len(place) for place in places(document)}))
        path = rng.choice([place for place in places(document) if len(place) == depth])
        document, how = _damage_at(document, path, rng)
        said.append(f"{'.'.join(map(str, path)) or 'the whole'} {how}")
        fields += [str(key) for key in path[-1:]]
    return document, " and ".join(said), tuple(fields)


def _damage_at(document: Any, path: tuple[Any, ...], rng: Random) -> tuple[Any, str]:
    if not path:
        value = rng.choice(VALUES)
        return value, f"= {_shown(value)}"
    holder = document
    for key in path[:-1]:
        holder = holder[key]
    kind, old = rng.choice(("value", "value", "value", "lose", "wrap", "spell", "unknown")), holder[path[-1]]
    if kind == "lose":
        del holder[path[-1]]
        return document, "lost"
    if kind == "unknown" and isinstance(holder, dict):
        holder[f"{path[-1]}_x"] = holder.pop(path[-1])
        return document, "renamed"
    value = rng.choice(VALUES)
    if kind == "wrap":
        value = rng.choice(([old], {"value": old}, list(old) if isinstance(old, dict) else [old, old]))
    if kind == "spell":
        value = str(old)
    holder[path[-1]] = value
    return document, f"= {_shown(value)}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else text[:57] + "..."


def spell_json(value: Any) -> bytes:
    """JSON, NaN and all."""
    text = json.dumps(value)
    for placeholder, spelled in _SPELLED.items():
        text = text.replace(json.dumps(placeholder), spelled)
    return text.encode()


def damage_json(content: bytes, rng: Random) -> Damaged:
    """A JSON file with other values, or other bytes."""
    if rng.random() < 0.1:
        return damage_bytes(content, rng)
    value, how, fields = damage_value(json.loads(content), rng)
    return Damaged(spell_json(value), how, fields)


def damage_json_lines(content: bytes, rng: Random) -> Damaged:
    """One line of many changed, as JSON or in its bytes."""
    lines = content.splitlines(keepends=True)
    if not lines:
        return damage_bytes(content, rng)
    number = rng.randrange(len(lines))
    line, how, fields = damage_json(lines[number].strip(), rng)
    lines[number] = line + b"\n"
    return Damaged(b"".join(lines), f"line {number + 1}: {how}", fields)


# ---------------------------------------------------------------------- text and bytes


def damage_bytes(content: bytes, rng: Random) -> Damaged:
    """Cut, emptied, or with bytes changed, added or repeated."""
    kind, at = rng.choice(("cut", "empty", "change", "insert", "repeat")), rng.randrange(len(content) + 1)
    if kind == "cut":
        return Damaged(content[:at], f"cut to {at} bytes")
    if kind == "empty":
        return Damaged(b"", "emptied")
    if kind == "repeat":
        return Damaged(content[:at] + content[: min(at, 100)] + content[at:], f"its beginning repeated at {at}")
    strange = rng.choice((b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"\n\n", b"{", b"]", b'"', b",,", b"nan", b"\x80\x04c"))
    after = at + len(strange) if kind == "change" else at
    return Damaged(content[:at] + strange + content[after:], f"{strange!r} at byte {at}")


_WORDS = (
    "",
    "nan",
    "inf",
    "-1",
    "1e99",
    "x",
    "9" * 400,
    "\0",
    "a(b",
    "->",
    ":",
    ",",
    '"',
    "%",
    "é",
    "(,)",
    "99:99-99:99",
)


def damage_text(content: bytes, rng: Random) -> Damaged:
    """A text of lines and words (CSV, facts, rules): a word replaced, a line lost, doubled or swapped."""
    if rng.random() < 0.2:
        return damage_bytes(content, rng)
    lines = content.decode().splitlines()
    if not lines:
        return damage_bytes(content, rng)
    number, kind = rng.randrange(len(lines)), rng.choice(("word", "word", "word", "lose", "double", "swap"))
    line, comma = lines[number], rng.choice((",", " ", ":", "("))
    if kind == "word":
        words = line.split(comma)
        words[rng.randrange(len(words))] = rng.choice(_WORDS)
        lines[number] = comma.join(words)
    elif kind == "swap":
        other = rng.randrange(len(lines))
        lines[number], lines[other] = lines[other], line
    else:
        lines[number : number + 1] = [] if kind == "lose" else [line, line]
    text = "\n".join(lines) + "\n"
    return Damaged(
        text.encode(), f"line {number + 1}: {kind}, {lines[min(number, len(lines) - 1)][:60]!r}" if lines else kind
    )


# ---------------------------------------------------------------------- safetensors


def damage_tensors(content: bytes, rng: Random) -> Damaged:
    """A safetensors file whose header or arrays are other than they were, still of the right format; or other bytes."""
    from safetensors.numpy import load, save

    if rng.random() < 0.2:
        return damage_bytes(content, rng)
    size = struct.unpack("<Q", content[:8])[0]
    notes = json.loads(content[8 : 8 + size]).get("__metadata__")
    if notes and rng.random() < 0.5:
        return _damage_notes(content, notes, rng)
    if rng.random() < 0.2:
        header, how, _ = damage_value(json.loads(content[8 : 8 + size]), rng)
        spelled = spell_json(header)
        return Damaged(struct.pack("<Q", len(spelled)) + spelled + content[8 + size :], f"header: {how}")
    arrays = load(content)
    name = rng.choice(sorted(arrays))
    kind = rng.choice(("lose", "rename", "shape", "type", "nan", "huge", "empty"))
    array = arrays.pop(name)
    if kind == "rename":
        arrays[f"{name}_x"] = array
    elif kind != "lose":
        arrays[name] = _other_array(array, kind)
    return Damaged(save(arrays, notes), f"{name}: {kind}")


def _other_array(array: np.ndarray, kind: str) -> np.ndarray:
    if kind == "shape":
        return np.ascontiguousarray(np.stack([array, array]))
    if kind == "empty":
        return np.zeros((0, *array.shape[1:]), array.dtype)
    if kind == "type":
        return array.astype(np.int64 if array.dtype.kind == "f" else np.float64)
    if array.dtype.kind == "f":
        return np.full_like(array, np.nan if kind == "nan" else np.finfo(array.dtype).max)
    return np.full_like(array, np.iinfo(array.dtype).max if array.dtype.kind in "iu" else 1)


def _damage_notes(content: bytes, notes: dict[str, str], rng: Random) -> Damaged:
    """The texts that stand beside the arrays; those that are JSON are damaged as such."""
    from safetensors.numpy import load, save

    name = rng.choice(sorted(notes))
    if rng.random() < 0.2:
        del notes[name]
        return Damaged(save(load(content), notes), f"note {name} lost")
    try:
        damaged = damage_json(notes[name].encode(), rng)
    except ValueError:
        damaged = damage_bytes(notes[name].encode(), rng)
    notes[name] = damaged.content.decode(errors="replace")
    return Damaged(save(load(content), notes), f"note {name}: {damaged.how}")
