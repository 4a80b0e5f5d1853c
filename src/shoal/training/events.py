"""TensorBoard event files, written without TensorBoard: length- and CRC-framed protocol buffers of scalars.

Importing TensorBoard's writer costs more than the first ten training iterations, and it cannot cut a file back to a
checkpoint. The format: TensorFlow's `tfrecord` framing around `tensorflow.Event` messages.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

import numpy as np

_POLYNOMIAL = 0x82F63B78  # CRC-32C (Castagnoli), reflected


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (_POLYNOMIAL if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _crc_table()


def masked_crc(data: bytes) -> int:
    """CRC-32C, rotated and offset as the record format wants it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def record(data: bytes) -> bytes:
    """One framed record: length, CRC of the length, data, CRC of the data."""
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc(length)) + data + struct.pack("<I", masked_crc(data))


def version_event(wall_time: float) -> bytes:
    """The record that opens every event file."""
    return record(struct.pack("<Bd", 0x09, wall_time) + _field(3, b"brain.Event:2"))


def scalars_event(step: int, wall_time: float, scalars: Mapping[str, float]) -> bytes:
    """One record with the scalars of one step."""
    values = b"".join(_field(1, _field(1, tag.encode()) + _float(value)) for tag, value in scalars.items())
    return record(struct.pack("<Bd", 0x09, wall_time) + b"\x10" + _varint(step) + _field(5, values))


def _float(value: float) -> bytes:
    """`simple_value` (field 2), single precision; what does not fit is infinity there."""
    with np.errstate(over="ignore"):
        return b"\x15" + np.float32(value).tobytes()


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _field(number: int, content: bytes) -> bytes:
    """A length-delimited field."""
    return bytes([number << 3 | 2]) + _varint(len(content)) + content
