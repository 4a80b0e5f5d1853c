"""Infos of single lanes, dicts of anything, become dense arrays with masks.

It happens in two halves, so that what crosses from a worker is a handful of arrays and not a dict per lane:
`to_columns` gathers the values of each key, `to_dense` scatters columns (of several workers) into [B, ...] arrays.
"""

from __future__ import annotations

import numpy as np

from shoal.trees import Tree
from shoal.vector.batch import Info

Columns = dict[str, tuple[np.ndarray, Tree]]  # key -> lanes [n], values [n, ...] or the Columns of a nested dict

# what these say is the batch's to say, whatever an environment or its wrappers put there
CONTRACT_KEYS = frozenset({"episode", "final_obs", "final_info", "action_mask", "fault"})


def to_columns(rows: list[tuple[int, dict[str, object]]], skip: frozenset[str] = frozenset()) -> Columns:
    """The values of each key and the lanes they belong to, without the keys in `skip`."""
    gathered: dict[str, tuple[list[int], list[object]]] = {}
    for lane, info in rows:
        for key, value in info.items():
            if key not in skip:
                lanes, values = gathered.setdefault(key, ([], []))
                lanes.append(lane)
                values.append(value)
    return {key: (np.array(lanes), _stack(lanes, values)) for key, (lanes, values) in gathered.items()}


def to_dense(parts: list[Columns], num_rows: int, row_of_lane: np.ndarray | None = None) -> Info:
    """Columns as {key: [num_rows, ...], _key: [num_rows] bool}; rows without a value are zero (None for objects).

    Args:
        row_of_lane: [B], the row of each lane, where the rows are not simply the lanes.
    """
    dense: Info = {}
    for key in dict.fromkeys(key for part in parts for key in part):
        columns = [part[key] for part in parts if key in part]
        rows = [lanes if row_of_lane is None else row_of_lane[lanes] for lanes, _ in columns]
        values = [value for _, value in columns]
        mask = np.zeros(num_rows, np.bool_)
        mask[np.concatenate(rows)] = True
        if all(isinstance(value, dict) for value in values):
            dense[key] = to_dense(values, num_rows, row_of_lane)
        else:
            dense[key] = _scatter(rows, values, num_rows)
        dense[f"_{key}"] = mask
    return dense


def _stack(lanes: list[int], values: list) -> np.ndarray | Columns:
    if all(isinstance(value, dict) for value in values):
        return to_columns(list(zip(lanes, values, strict=True)))
    try:
        array = np.array(values)
        if array.dtype.kind in "biufc":
            return array
    except ValueError:
        pass
    return _objects(values)


def _objects(values: list) -> np.ndarray:
    array = np.empty(len(values), object)
    for i, value in enumerate(values):
        array[i] = value
    return array


def _scatter(rows: list[np.ndarray], values: list, num_rows: int) -> np.ndarray:
    arrays = [
        _objects([value] * len(r)) if isinstance(value, dict) else value for r, value in zip(rows, values, strict=True)
    ]
    if len({array.shape[1:] for array in arrays}) == 1 and all(array.dtype != object for array in arrays):
        target = np.zeros((num_rows, *arrays[0].shape[1:]), np.result_type(*arrays))
        for index, array in zip(rows, arrays, strict=True):
            target[index] = array
        return target
    target = np.full(num_rows, None, object)
    for index, array in zip(rows, arrays, strict=True):
        for i, value in zip(index, array, strict=True):
            target[i] = value
    return target
