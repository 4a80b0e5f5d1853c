"""Matrix products of rows in blocks of one size: what becomes of a row does not depend on how many others there are."""

from __future__ import annotations

import numpy as np

Layer = tuple[np.ndarray, np.ndarray]
"""Weights [inputs, outputs] and biases [outputs]."""
_BLOCK = 8
"""Rows of one matrix product. A library of matrix products may add in another order for another number of rows, and a
lane's action must not depend on how many others ask."""


def as_layer(layer: Layer) -> Layer:
    """The same in float32, row by row in memory: products may be added in another order where columns come first."""
    return np.ascontiguousarray(layer[0], np.float32), np.ascontiguousarray(layer[1], np.float32)


def padded(rows: np.ndarray) -> np.ndarray:
    """rows [N, D] as float32, and zeros below them up to a multiple of a block."""
    blocks = np.zeros((-(-len(rows) // _BLOCK) * _BLOCK, rows.shape[1]), np.float32)
    blocks[: len(rows)] = rows
    return blocks


def times(rows: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """rows [N, D] times weight [D, H], N a multiple of a block: every block is a product of the same shape."""
    if len(rows) == _BLOCK:
        return rows @ weight
    return (rows.reshape(-1, _BLOCK, rows.shape[1]) @ weight).reshape(len(rows), weight.shape[1])
