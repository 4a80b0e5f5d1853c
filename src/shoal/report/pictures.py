"""Replays of environments that draw themselves (`render_mode="rgb_array"`): their own pictures, small and few. And of
lanes that nobody draws, but whose agents see images: these.

A picture is kept for some steps only, about twelve a second of what is shown, and the player holds it until the next.
"""

from __future__ import annotations

import base64
import io
import struct
import time
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.errors import ConfigError, LaneFault
from shoal.options import Values
from shoal.trees import Tree, at_path
from shoal.vector.batch import Batch
from shoal.vector.rendering import Renderer
from shoal.vector.spaces import leaf_spaces

if TYPE_CHECKING:
    from shoal.agents.images import Image

LANES = 2
"""Lanes of a replay of pictures."""
PER_SECOND, MAX_PICTURES, MAX_SIDE = 12, 250, 200
_OBSERVED_FPS = 30.0
Draw = Callable[[Batch, Tree], list[np.ndarray]]
PATIENCE_S = 10.0  # that drawing may take in one replay; from then on the last pictures stay
_SCRIPT = """{
  aspect: 1.2, smooth: false,
  draw(ctx, frame, view) {
    const pictures = view.frames.pictures ||= view.frames.map((f) => f && Object.assign(new Image(), { src: f }));
    let t = view.t; while (t > 0 && !pictures[t]) t--;
    const picture = pictures[t]; if (!picture) return;
    const place = ctx.getTransform(), paint = () => {
      const scale = Math.min(view.width / picture.naturalWidth, view.height / picture.naturalHeight);
      const w = picture.naturalWidth * scale, h = picture.naturalHeight * scale;
      ctx.save(); ctx.setTransform(place); ctx.imageSmoothingEnabled = scale < 1;
      ctx.drawImage(picture, (view.width - w) / 2, (view.height - h) / 2, w, h); ctx.restore();
    };
    if (picture.complete) paint(); else picture.onload = paint;
  },
}"""


def draws_itself(metadata: dict[str, Any]) -> bool:
    """Whether lanes with this metadata are environments that know no renderer of ours, but draw pictures."""
    return "renderer" not in metadata and "rgb_array" in metadata.get("render_modes", ())


def drawing_options(env: Values) -> Values:
    """Options of a Gymnasium environment, by name, changed so that it draws."""
    return {**env, "env_kwargs": {**env.get("env_kwargs", {}), "render_mode": "rgb_array"}}


def show_pictures(batch: Batch) -> None:
    """Have replays of `batch` show what its environments draw; `ConfigError` if they cannot draw here."""
    batch.reset(seed=0)
    render(batch)
    fps = float(batch.metadata.get("render_fps") or 30.0)
    book = Sketchbook(fps)
    batch.metadata["renderer"] = Renderer("pictures", _SCRIPT, frames=book, begin=book.begin, fps=fps)


def show_observations(batch: Batch) -> None:
    """Have replays of lanes that nobody draws show what an agent sees of them, where that is an image."""
    from shoal.agents.images import image_of  # loads torch, which a page without a run does not need

    space = batch.single_observation_space
    images = [(path, image) for path, part in leaf_spaces(space) if (image := image_of(part)) is not None]
    if "renderer" in batch.metadata or not images:
        return
    path, image = images[0]
    book = Sketchbook(_OBSERVED_FPS, lambda _, obs: [as_picture(row, image) for row in at_path(obs, path)])
    batch.metadata["renderer"] = Renderer("pictures", _SCRIPT, frames=book, begin=book.begin, fps=_OBSERVED_FPS)


def as_picture(pixels: np.ndarray, image: Image) -> np.ndarray:
    """An observation as [H, W, 3] uint8: its colours, or the latest of stacked frames; planes of a board as shades."""
    planes = np.transpose(pixels, image.order).reshape(-1, image.height, image.width)
    grey = (255 * image.scale * (planes - np.float64(image.low))).clip(0, 255)
    if len(grey) % 3 == 0 and image.order[-1] != pixels.ndim - 1:
        return np.moveaxis(grey[-3:], 0, -1).astype(np.uint8)
    if pixels.dtype != np.uint8:
        grey = (grey * np.arange(1, len(grey) + 1)[:, None, None] / len(grey)).max(0, keepdims=True)
    return np.repeat(grey[-1][..., None], 3, -1).astype(np.uint8)


def render(batch: Batch) -> list[np.ndarray]:
    """One picture [H, W, 3] uint8 of every lane."""
    try:
        drawn: tuple[Any, ...] = batch.render() or ()
        pictures = [np.asarray(picture) for picture in drawn]
    except (LaneFault, NotImplementedError) as error:
        raise cannot_draw(error) from error
    if any(picture.ndim != 3 or picture.shape[2] != 3 for picture in pictures):
        raise ConfigError(f"render() of the environment returned shape {pictures[0].shape}, not a picture [H, W, 3].")
    return pictures


def cannot_draw(error: Exception) -> ConfigError:
    """The sentence for environments that fail to draw."""
    reason = str(error).partition("\nOriginal traceback")[0].strip().removesuffix(".")
    hint = ""
    if any(word in str(error) for word in ("OpenGL", "GLFW", "glfw", "mujoco", "DISPLAY")):
        hint = " There may be no display: set MUJOCO_GL=egl (or osmesa) to draw without one."
    return ConfigError(f"The environment cannot draw itself here: {reason}.{hint}")


class Sketchbook:
    """The `frames` of a renderer: pictures as data URLs, None for steps between them. One replay after the other."""

    def __init__(self, fps: float, draw: Draw | None = None) -> None:
        """`draw(batch, obs)` makes a picture [H, W, 3] of every lane; without it, its environment does."""
        self._draw: Draw = draw or (lambda batch, obs: render(batch))
        self._every = max(1, round(fps / PER_SECOND))
        self._calls, self._drawn, self._seconds = 0, 0, 0.0

    def __call__(self, batch: Batch, obs: Tree) -> list[str | None]:
        due = self._calls % self._every == 0 and self._drawn < MAX_PICTURES and self._seconds < PATIENCE_S
        self._calls += 1
        if not due:
            return [None] * batch.num_envs
        began = time.perf_counter()
        urls: list[str | None] = [data_url(picture) for picture in self._draw(batch, obs)]
        self._drawn, self._seconds = self._drawn + 1, self._seconds + time.perf_counter() - began
        return urls

    def begin(self) -> None:
        """A new replay."""
        self._calls, self._drawn, self._seconds = 0, 0, 0.0


def data_url(picture: np.ndarray) -> str:
    """A picture [H, W, 3] uint8, made small, as text that a page can show: WebP where Pillow is there, else PNG."""
    stride = -(-max(picture.shape[:2]) // MAX_SIDE)
    small = np.ascontiguousarray(picture[::stride, ::stride].astype(np.uint8))
    try:
        from PIL import Image as Pillow
    except ImportError:
        return _as_url("png", _png(small))
    file = io.BytesIO()
    Pillow.fromarray(small).save(file, "WEBP", quality=60)
    return _as_url("webp", file.getvalue())


def _as_url(kind: str, content: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def _png(picture: np.ndarray) -> bytes:
    height, width, _ = picture.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), picture.reshape(height, -1)], axis=1)  # 0: no filter
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""))
    body = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + body
