"""How a world shows itself: small frames recorded step by step, and code that draws one.

A world puts a `Renderer` (or "module:NAME", resolved when somebody wants to look) under `metadata["renderer"]` of its
batch. The report's replay player runs `script` in the browser; `shoal play --video` calls `image`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.errors import ConfigError
from shoal.trees import Tree, leaves

if TYPE_CHECKING:
    from shoal.vector.batch import Batch


def rounded(values: np.ndarray, digits: int = 4) -> list[float]:
    """Numbers as JSON writes them briefly: pictures need no more than four digits."""
    return [float(f"{value:.{digits}g}") for value in np.asarray(values, float).reshape(-1)]


def obs_frames(batch: Batch, obs: Tree) -> list[Any]:
    """The observations themselves, [B, *obs] -> B lists of numbers; the parts of a Dict or Tuple side by side."""
    parts = [np.asarray(leaf, np.float64).reshape(batch.num_envs, -1) for leaf in leaves(obs)]
    return [rounded(row) for row in np.concatenate(parts, axis=1)]


@dataclass(frozen=True)
class Renderer:
    """What the replay player and the video need to know about a world."""

    name: str
    script: str
    """JavaScript expression `{aspect, smooth, draw(ctx, frame, view)}`; see `shoal/report/assets/player.js`."""
    frames: Callable[[Batch, Tree], list[Any]] = obs_frames
    """`(batch, obs [B, *obs]) -> [B]` small JSON values, asked after the reset and after every step."""
    frames_of_agent: Callable[[Batch, Tree, Any], list[Any]] | None = None
    """`(batch, obs, agent) -> [B]`, asked instead of `frames` by worlds that show what the agent thinks."""
    image: Callable[[Any, dict[str, Any]], np.ndarray] | None = None
    """`(frame, meta) -> [H, W, 3] uint8` for videos."""
    begin: Callable[[], None] = field(default=lambda: None)
    """Called before the frames of a recording are asked for."""
    fps: float = 30.0
    """Steps per second at which the world looks natural."""
    meta: Callable[[Batch], dict[str, Any]] = field(default=lambda batch: {})
    """Constants that drawing needs (a city, host names), as a JSON value; recorded once."""


OBSERVATIONS = Renderer("observations", "")
"""For worlds without a drawing of their own; the player has it built in."""

PICTURES = Renderer(
    "pictures",
    "",
    frames=lambda batch, obs: list(batch.render() or ()),
    image=lambda frame, meta: frame,
)
"""For videos of lanes whose environments were made with render_mode="rgb_array"."""


def renderer_of(batch: Batch) -> Renderer:
    """The renderer that the world of `batch` brings, or the plain one that shows observations as bars."""
    renderer = batch.metadata.get("renderer", OBSERVATIONS)
    if isinstance(renderer, str):
        module, _, name = renderer.partition(":")
        renderer = getattr(importlib.import_module(module), name)
    if not isinstance(renderer, Renderer):
        raise ConfigError(f"metadata['renderer'] is {renderer!r}; it must be a Renderer or 'module:NAME' of one.")
    return renderer
