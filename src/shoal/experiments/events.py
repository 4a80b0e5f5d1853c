"""Scalars in TensorBoard's event files, as Stable-Baselines3, CleanRL and RLlib write them.

A file is a row of records (length, checksum, data, checksum), each a protocol buffer `Event`. Only the fields that hold
a scalar are read: `step` (2) and, in `summary` (5), of every `value` (1) its `tag` (1) and `simple_value` (2), or the
`float_val` (5) of its `tensor` (8). The writer is `shoal.training.metrics`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from shoal.errors import RunError
from shoal.training.files import explained

Scalars = dict[str, tuple[np.ndarray, np.ndarray]]
"""Steps [N] and values [N] by tag."""


def read_events(folder: Path) -> Scalars:
    """All scalars of the event files in a folder, by tag, in the order of their steps."""
    points: dict[str, list[tuple[int, float]]] = {}
    for path in sorted(folder.glob("events.out.tfevents.*")):
        with explained(f"{path} cannot be read", "Check its permissions."):
            content = path.read_bytes()
        for event in _records(content, path):
            step, values = 0, []
            for number, value in _fields(event):
                if number == 2 and isinstance(value, int):
                    step = value
                elif number == 5 and isinstance(value, bytes):
                    values += [read for kind, each in _fields(value) if kind == 1 and (read := _scalar(each))]
            for tag, scalar in values:
                points.setdefault(tag, []).append((step, scalar))
    ordered = {tag: np.array(sorted(pairs, key=lambda pair: pair[0]), float) for tag, pairs in points.items()}
    return {tag: (pairs[:, 0], pairs[:, 1]) for tag, pairs in ordered.items()}


def _records(content: bytes, path: Path) -> Iterator[bytes]:
    """The data of every whole record; a last one that is still being written is left out."""
    at = 0
    while at + 12 <= len(content):
        (length,) = struct.unpack_from("<Q", content, at)
        if length > len(content) and at == 0:
            raise RunError(f"{path} is not an event file of TensorBoard.")
        if at + 16 + length > len(content):
            return
        yield content[at + 12 : at + 12 + length]
        at += 16 + length


def _scalar(value: int | bytes | float) -> tuple[str, float] | None:
    """(tag, number) of a summary's value, or None if it holds something else."""
    tag, number = "", None
    assert isinstance(value, bytes)
    for kind, content in _fields(value):
        if kind == 1 and isinstance(content, bytes):
            tag = content.decode(errors="replace")
        elif kind == 2 and isinstance(content, float):
            number = content
        elif kind == 8 and isinstance(content, bytes):
            floats = [each for field, each in _fields(content) if field == 5]
            number = _first_float(floats[0]) if floats else None
    return None if number is None or not tag else (tag, number)


def _first_float(content: int | bytes | float) -> float | None:
    if isinstance(content, bytes):  # a packed list
        return struct.unpack_from("<f", content)[0] if len(content) >= 4 else None
    return float(content)


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes | float]]:
    """(number, value) of every field: whole numbers, four-byte floats, and bytes."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(message, at)
            yield key >> 3, value
        elif kind == 1:
            at += 8
        elif kind == 2:
            length, at = _varint(message, at)
            yield key >> 3, message[at : at + length]
            at += length
        elif kind == 5:
            yield key >> 3, struct.unpack_from("<f", message, at)[0]
            at += 4
        else:
            return


def _varint(message: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = message[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at
