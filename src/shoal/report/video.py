"""Videos of replays: .mp4 through imageio-ffmpeg (extra `video`), .gif through Pillow alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from shoal.errors import ConfigError, missing_extra
from shoal.report.replay import Replay
from shoal.training.files import explained
from shoal.vector.rendering import Renderer

SUFFIXES = (".mp4", ".gif")
GIF_FPS = 25  # browsers slow down anything faster


def check_video_path(path: Path) -> None:
    """`ConfigError` or `MissingExtra` before an episode is played in vain."""
    if path.suffix not in SUFFIXES:
        raise ConfigError(f"--video {path} has the ending {path.suffix!r}. Use .mp4 or .gif.")
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"--video {path} lies in a folder that does not exist. Make it first.")
    try:
        import PIL  # noqa: F401

        if path.suffix == ".mp4":
            import imageio_ffmpeg  # noqa: F401
    except ImportError as error:
        raise missing_extra(str(error.name), "video", f"A {path.suffix} video") from None


def write_video(path: Path, replay: Replay, renderer: Renderer) -> Path:
    """Draw every step of a replay, its lanes side by side, and write the video."""
    if renderer.image is None:
        raise ConfigError(
            f"The world draws itself in a page only ({renderer.name!r} has no picture for videos). "
            "Leave --video out to get the page."
        )
    pictures = compose(replay, renderer)
    with explained(f"{path} could not be written", "Choose another --video."):
        (_write_gif if path.suffix == ".gif" else _write_mp4)(path, pictures, replay["fps"])
    return path


def compose(replay: Replay, renderer: Renderer) -> Iterator[np.ndarray]:
    """The picture of every step, [H, W, 3] uint8: lanes in a grid; one that has ended keeps its last picture."""
    assert renderer.image is not None
    lanes = replay["lanes"]
    columns = int(np.ceil(np.sqrt(len(lanes))))
    latest = [renderer.image(lane["frames"][0], replay["meta"]) for lane in lanes]
    blank = np.full_like(latest[0], 255)
    for t in range(max(len(lane["frames"]) for lane in lanes)):
        for i, lane in enumerate(lanes):
            if 0 < t < len(lane["frames"]):
                latest[i] = renderer.image(lane["frames"][t], replay["meta"])
        cells = latest + [blank] * (-len(latest) % columns)
        yield np.concatenate([np.concatenate(cells[r : r + columns], 1) for r in range(0, len(cells), columns)], 0)


def _write_mp4(path: Path, pictures: Iterator[np.ndarray], fps: float) -> None:
    import imageio_ffmpeg

    first = next(pictures)
    height, width = (first.shape[0] // 2 * 2, first.shape[1] // 2 * 2)  # the codec wants even sizes
    writer = imageio_ffmpeg.write_frames(str(path), (width, height), fps=fps, macro_block_size=2, quality=7)
    writer.send(None)
    try:
        for picture in (first, *pictures):
            writer.send(np.ascontiguousarray(picture[:height, :width]))
    finally:
        writer.close()


def _write_gif(path: Path, pictures: Iterator[np.ndarray], fps: float) -> None:
    from PIL import Image

    every = max(1, round(fps / GIF_FPS))
    frames = [Image.fromarray(p).quantize(64) for i, p in enumerate(pictures) if i % every == 0]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=round(1000 * every / fps), loop=0)
