"""Convolutions of a frozen policy: images in, features out, in plain arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from shoal.agents.blocks import Layer, as_layer, padded, times
from shoal.reading import is_number, shortened

_AT_ONCE = 32
"""Images whose windows are laid out at the same time: those of more would fill memory."""
_LARGEST = 2**26
"""Pixels of an image; whatever claims to have more is not one."""
_LENGTHS = {"conv": 3, "relu": 1, "pool": 1, "keep": 1, "add": 1}


@dataclass
class Eye:
    """How one image of an observation becomes features.

    Its numbers lie side by side in the flat row from `start` on. They are read as [height, width, channels], made less
    by `low`, go through `steps`, and then through `last` and ReLU. Steps: ("conv", stride, padding), which takes the
    next of `convs`; ("relu",); ("pool",), the largest of 3 x 3 with stride 2 and padding 1; ("keep",) and ("add",),
    which adds what was kept.
    """

    start: int
    shape: Sequence[int]
    """Of the observation."""
    order: Sequence[int]
    """Its axes as (channels..., height, width)."""
    low: float
    steps: Sequence[Sequence[str | int]]
    convs: Sequence[Layer]
    """Weights [side, side, inputs, outputs] and biases, pixels scaled by the first of them."""
    last: Layer
    """Weights [height * width * channels, F]."""

    def __post_init__(self) -> None:
        self.convs, self.last = [as_layer(conv) for conv in self.convs], as_layer(self.last)

    @property
    def pixels(self) -> int:
        """Numbers that it reads of a row."""
        return math.prod(self.shape)

    @property
    def size(self) -> int:
        """Features that it makes."""
        return self.last[0].shape[1]

    @property
    def sides(self) -> tuple[int, int, int]:
        """Height, width and channels."""
        *planes, height, width = (self.shape[axis] for axis in self.order)
        return height, width, math.prod(planes)

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """rows [N, D] of whole observations -> features [M, F], N rounded up to whole blocks."""
        if not len(rows):
            return np.zeros((0, self.size), np.float32)
        pixels = rows[:, self.start : self.start + self.pixels].reshape(-1, *self.shape)
        parts = [self._convolve(pixels[i : i + _AT_ONCE]) for i in range(0, len(pixels), _AT_ONCE)]
        weight, bias = self.last
        return np.maximum(times(padded(np.concatenate(parts)), weight) + bias, 0.0)

    def _convolve(self, pixels: np.ndarray) -> np.ndarray:
        *planes, down, across = (1 + axis for axis in self.order)
        x = pixels.transpose(0, down, across, *planes).reshape(len(pixels), *self.sides) - np.float32(self.low)
        convs, kept = iter(self.convs), x
        for step in self.steps:
            kind = step[0]
            if kind == "conv":
                x = _conv(x, next(convs), int(step[1]), int(step[2]))
            elif kind == "relu":
                x = np.maximum(x, 0.0)
            elif kind == "pool":
                x = _windows(x, 3, 2, 1, -np.inf).max((4, 5))
            elif kind == "keep":
                kept = x
            else:
                x = x + kept
        return x.reshape(len(x), -1)

    # ------------------------------------------------------------------ storage

    @property
    def settings(self) -> dict[str, Any]:
        """What is not an array, as JSON."""
        named = {name: getattr(self, name) for name in ("start", "shape", "order", "low", "steps")}
        return {name: [*value] if isinstance(value, Sequence) else value for name, value in named.items()}

    def tensors(self) -> dict[str, np.ndarray]:
        """All arrays by name."""
        named: dict[str, np.ndarray] = {}
        for i, (weight, bias) in enumerate(self.convs):
            named |= {f"conv_{i}_weight": weight, f"conv_{i}_bias": bias}
        return {**named, "weight": self.last[0], "bias": self.last[1]}

    @classmethod
    def from_tensors(cls, settings: dict[str, Any], tensors: dict[str, np.ndarray]) -> Eye:
        """What `settings` and `tensors` describe; `ValueError` unless they fit together."""
        count = sum(name.startswith("conv_") and name.endswith("_weight") for name in tensors)
        convs = [(tensors[f"conv_{i}_weight"], tensors[f"conv_{i}_bias"]) for i in range(count)]
        named = {name: settings[name] for name in ("start", "shape", "order", "low", "steps")}
        eye = cls(**named, convs=convs, last=(tensors["weight"], tensors["bias"]))
        eye._check()
        return eye

    def _check(self) -> None:
        if not _is_size(self.start, 0) or not is_number(self.low):
            raise ValueError("an image begins at no column, or its lowest pixel is not a number")
        sizes = isinstance(self.shape, list) and all(_is_size(side, 1) for side in self.shape)
        if not sizes or not 2 <= len(self.shape) <= 4 or self.pixels > _LARGEST:
            raise ValueError(f"{shortened(self.shape)} is not the shape of an image")
        if not isinstance(self.order, list) or sorted(map(repr, self.order)) != [*map(str, range(len(self.shape)))]:
            raise ValueError(f"{shortened(self.order)} are not the axes of an image")
        for step in self.steps:
            if not isinstance(step, list) or not step or _LENGTHS.get(str(step[0])) != len(step):
                raise ValueError(f"there is no step {shortened(step)}")
        if len(self.convs) != sum(step[0] == "conv" for step in self.steps):
            raise ValueError("it does not have as many convolutions as steps for them")
        if math.prod(self.through(len(self.steps))) != len(self.last[0]):
            raise ValueError("its last layer does not fit its convolutions")

    def through(self, count: int) -> tuple[int, int, int]:
        """Height, width and channels after `count` steps; `ValueError` where they do not fit together."""
        height, width, channels = self.sides
        kept, convs = (0, 0, 0), iter(self.convs)
        for step in self.steps[:count]:
            if step[0] == "conv":
                weight, bias = next(convs)
                stride, padding = (how for how in step[1:] if isinstance(how, int))
                fits = weight.ndim == 4 and weight.shape[2] == channels and bias.shape == weight.shape[3:]
                if not fits or not _is_size(stride, 1) or not _is_size(padding, 0) or padding > weight.shape[0]:
                    raise ValueError("a convolution does not fit what comes before it")
                height, width = ((side + 2 * padding - weight.shape[0]) // stride + 1 for side in (height, width))
                channels = weight.shape[3]
            elif step[0] == "pool":
                height, width = (height + 1) // 2, (width + 1) // 2
            elif step[0] == "keep":
                kept = height, width, channels
            elif step[0] == "add" and kept != (height, width, channels):
                raise ValueError("what is added has another shape")
            if min(height, width) < 1:
                raise ValueError("nothing is left of its image")
        return height, width, channels


def _conv(x: np.ndarray, layer: Layer, stride: int, padding: int) -> np.ndarray:
    """x [N, H, W, C] -> [N, H', W', outputs]; every image is a matrix product of its own."""
    weight, bias = layer
    side, _, inputs, outputs = weight.shape
    windows = _windows(x, side, stride, padding, 0.0).transpose(0, 1, 2, 4, 5, 3)
    rows = windows.reshape(len(x), -1, side * side * inputs)
    return (rows @ weight.reshape(-1, outputs) + bias).reshape(*windows.shape[:3], outputs)


def _windows(x: np.ndarray, side: int, stride: int, padding: int, edge: float) -> np.ndarray:
    """[N, H', W', C, side, side] views of x [N, H, W, C], with `edge` around it."""
    around = (padding, padding)
    x = np.pad(x, ((0, 0), around, around, (0, 0)), constant_values=edge) if padding else x
    return sliding_window_view(x, (side, side), (1, 2))[:, ::stride, ::stride]


def _is_size(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= _LARGEST
