"""Polygons of the rink, by fixture number: vertices, outward normals and bounding boxes.

0 top wall, 1 bottom wall, 2-5 posts (left top, left bottom, right top, right bottom), 6 and 7 left goal (sensor and
solid), 8 and 9 right goal, 10 and 11 the rackets in their body frames. Vertices are counter-clockwise, from the
right-most (the lowest of those); edge i goes from vertex i to i + 1. The puck is the point polygon 12 with its radius
around it.
"""

from __future__ import annotations

import numpy as np

WALLS_AND_POSTS = (0, 1, 2, 3, 4, 5)
LEFT_SENSOR, LEFT_GOAL, RIGHT_SENSOR, RIGHT_GOAL = 6, 7, 8, 9
RACKETS = 10  # shape of racket k is RACKETS + k
PUCK_SHAPE = 12
NUM_STATICS = 10
SOLID_FOR_RACKET = np.array([True, True, True, True, True, True, False, True, False, True])
RACKET_RADIUS = 0.4578  # farthest vertex from the centre of mass


def _box(left: float, right: float, bottom: float, top: float) -> list[tuple[float, float]]:
    return [(right, bottom), (right, top), (left, top), (left, bottom)]


_RACKET = [(0.10, -0.40), (0.10, 0.40), (-0.20, 0.40), (-0.36, 0.20), (-0.42, 0.0), (-0.36, -0.20), (-0.20, -0.40)]
_MIRRORED = [(0.42, 0.0), (0.36, 0.20), (0.20, 0.40), (-0.10, 0.40), (-0.10, -0.40), (0.20, -0.40), (0.36, -0.20)]
_PIXELS: list[list[tuple[float, float]]] = [  # the statics were laid out on a grid of 60 pixels a metre
    _box(50, 550, 440, 460),
    _box(50, 550, 20, 40),
    [(65, 322), (65, 455), (45, 455), (45, 315)],
    [(65, 25), (65, 158), (45, 165), (45, 25)],
    [(555, 315), (555, 455), (535, 455), (535, 322)],
    [(555, 25), (555, 165), (535, 158), (535, 25)],
    _box(35, 55, 165, 315),
    _box(35, 55, 165, 315),
    _box(545, 565, 165, 315),
    _box(545, 565, 165, 315),
]
POLYGONS = [[(x / 60.0, y / 60.0) for x, y in polygon] for polygon in _PIXELS] + [_RACKET, _MIRRORED, [(0.0, 0.0)]]


def _tables() -> tuple[np.ndarray, ...]:
    """Counts [13], vertices and normals [13, 7] by coordinate, boxes [13, 4] as left, right, bottom, top."""
    counts = np.array([len(polygon) for polygon in POLYGONS])
    vertex = np.zeros((2, len(POLYGONS), counts.max()))
    normal = np.zeros_like(vertex)
    boxes = np.zeros((len(POLYGONS), 4))
    for k, polygon in enumerate(POLYGONS):
        points = np.array(polygon, np.float32).astype(np.float64)  # the original stores single precision
        edge = np.roll(points, -1, axis=0) - points
        length = np.maximum(np.hypot(edge[:, 0], edge[:, 1]), 1e-12)
        vertex[:, k, : len(points)] = points.T
        normal[:, k, : len(points)] = np.stack([edge[:, 1], -edge[:, 0]]) / length
        boxes[k] = (*_range(points[:, 0]), *_range(points[:, 1]))
    return counts, *vertex, *normal, boxes


def _range(values: np.ndarray) -> tuple[float, float]:
    return values.min(), values.max()


COUNT, VERTEX_X, VERTEX_Y, NORMAL_X, NORMAL_Y, BOX = _tables()
