"""Which observations are images, and how their numbers become planes of 0..1."""

from __future__ import annotations

from typing import NamedTuple

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor

from shoal.trees import Tree, map_tree
from shoal.vector.spaces import leaf_spaces

SMALLEST_SIDE = 5  # below it, three axes are rather a table than an image
SMALLEST_GREY = 16  # two axes have no channels to tell an image by, so only bytes of this size are taken for one


class Image(NamedTuple):
    """An observation of H x W pixels with C channels, however its axes are ordered."""

    channels: int
    height: int
    width: int
    order: tuple[int, ...]
    """The axes of the observation as (planes..., height, width); planes of several axes are laid side by side."""
    low: float
    scale: float
    """Planes are (pixel - low) * scale."""

    def planes(self, pixels: Tensor) -> Tensor:
        """[N, *obs] of any type -> [N, C, H, W] float32, in memory pixel by pixel. Not scaled yet."""
        ordered = pixels.permute(0, *(1 + axis for axis in self.order))
        if ordered.ndim != 4:
            ordered = ordered.reshape(len(pixels), self.channels, self.height, self.width)
        # bytes are quicker to put in order than floats
        return ordered.contiguous(memory_format=torch.channels_last).to(torch.float32)


def image_of(space: gym.Space) -> Image | None:
    """How to read observations of `space` as an image, or None if they are not images.

    Images are boxes with finite bounds and three axes, the shorter of the first and the last one being the channels;
    four, of which the first is a stack of frames; or, for bytes, two. Whole numbers become 0..1, as do floats from 0 to
    255; other floats stay as they are.
    """
    if not isinstance(space, gym.spaces.Box) or len(space.shape) not in (2, 3, 4):
        return None
    if not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
        return None
    shape, of_bytes = space.shape, space.dtype == np.uint8
    if len(shape) == 2 and of_bytes and min(shape) >= SMALLEST_GREY:
        order: tuple[int, ...] = (0, 1)
    elif len(shape) == 3:
        order = (0, 1, 2) if shape[0] < shape[2] else (2, 0, 1)
    elif len(shape) == 4 and of_bytes:
        order = (0, 1, 2, 3) if shape[1] < shape[3] else (0, 3, 1, 2)
    else:
        return None
    *planes, height, width = (shape[axis] for axis in order)
    if min(height, width) < SMALLEST_SIDE:
        return None
    low, high = float(space.low.min()), float(space.high.max())
    scaled = space.dtype.kind != "f" or (low, high) == (0.0, 255.0)  # type: ignore[union-attr]
    if not scaled or high <= low:
        low, high = 0.0, 1.0
    return Image(int(np.prod(planes)), height, width, order, low, 1.0 / (high - low))


def by_pixel(obs: Tree, space: gym.Space) -> Tree:
    """The same observations [N, *obs], whose images lie in memory pixel by pixel: for who looks at them repeatedly."""
    images = iter([image_of(part) for _, part in leaf_spaces(space)])

    def lay(leaf: Tensor) -> Tensor:
        image = next(images)
        if image is None or leaf.ndim != 4:
            return leaf
        planes = leaf.permute(0, *(1 + axis for axis in image.order)).contiguous(memory_format=torch.channels_last)
        return planes.permute(0, *(1 + image.order.index(axis) for axis in range(3)))

    return map_tree(lay, obs)


def has_image(space: gym.Space) -> bool:
    """Whether `space` is an image, or a Dict or Tuple with one somewhere in it."""
    return any(image_of(part) is not None for _, part in leaf_spaces(space))
