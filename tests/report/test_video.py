"""Videos: every step becomes a picture, lanes side by side."""

import numpy as np
import pytest

from shoal.errors import ConfigError
from shoal.registry import make
from shoal.report.replay import record_replay
from shoal.report.video import check_video_path, compose, write_video
from shoal.vector.rendering import OBSERVATIONS, renderer_of
from tests.report.test_run_report import Balance

pytest.importorskip("PIL")


@pytest.fixture(scope="module")
def replay():
    return record_replay(make("cartpole", 3, autoreset_mode="disabled"), Balance(), 0, "x", max_steps=12)


def test_lanes_lie_in_a_grid_and_move(replay):
    pictures = list(compose(replay, renderer_of(make("cartpole", 1))))
    assert len(pictures) == 13
    assert pictures[0].shape == (800, 1200, 3)
    assert pictures[0].dtype == np.uint8
    assert not np.array_equal(pictures[0], pictures[-1])
    assert (pictures[0][400:, 600:] == 255).all()  # the fourth cell is empty


@pytest.mark.parametrize("world", ["cartpole", "pendulum", "acrobot", "mountaincar", "mountaincar-continuous"])
def test_every_classic_world_has_a_picture(world):
    batch = make(world, 2)
    obs, _ = batch.reset(seed=0)
    renderer = renderer_of(batch)
    first, second = (renderer.image(frame, renderer.meta(batch)) for frame in renderer.frames(batch, obs))
    assert first.shape == (400, 600, 3)
    assert not np.array_equal(first, second)
    batch.close()


def test_a_gif_has_every_second_frame_at_fifty_steps_a_second(replay, tmp_path):
    from PIL import Image

    path = write_video(tmp_path / "v.gif", replay, renderer_of(make("cartpole", 1)))
    with Image.open(path) as image:
        assert image.n_frames == 7
        assert image.info["duration"] == 40


def test_an_mp4_can_be_read_back(replay, tmp_path):
    ffmpeg = pytest.importorskip("imageio_ffmpeg")
    path = write_video(tmp_path / "v.mp4", replay, renderer_of(make("cartpole", 1)))
    frames, seconds = ffmpeg.count_frames_and_secs(str(path))
    assert frames == 13
    assert seconds == pytest.approx(13 / 50, abs=0.05)


def test_what_cannot_become_a_video_is_said(replay, tmp_path):
    with pytest.raises(ConfigError, match=r"ending '.avi'. Use .mp4 or .gif"):
        check_video_path(tmp_path / "v.avi")
    with pytest.raises(ConfigError, match="folder that does not exist"):
        check_video_path(tmp_path / "no" / "v.mp4")
    with pytest.raises(ConfigError, match="draws itself in a page only"):
        write_video(tmp_path / "v.gif", replay, OBSERVATIONS)
