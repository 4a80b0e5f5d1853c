"""Replays of environments that draw themselves: their own pictures, or a sentence and the observations."""

import base64
import io
import json
import sys

import gymnasium as gym
import numpy as np
import pytest

import shoal
from shoal.agents.images import image_of
from shoal.cli import main
from shoal.report.pictures import MAX_SIDE, Sketchbook, as_picture, data_url

QUICK = {
    "backend": "serial",
    "num_envs": 2,
    "total_steps": 32,
    "eval_episodes": 2,
    "algo": {"num_steps": 8, "hidden": [8], "minibatches": 2, "epochs": 1},
}


class Drawn(gym.Env):
    """A dot on a line, drawn."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 24}
    observation_space, action_space = gym.spaces.Box(0, 9, (1,), np.float32), gym.spaces.Discrete(2)

    def __init__(self, render_mode=None):
        self.render_mode, self.t = render_mode, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.t += 1
        return np.array([self.t % 9], np.float32), 1.0, False, self.t == 10, {}

    def render(self):
        picture = np.zeros((300, 500, 3), np.uint8)
        picture[:, 40 * self.t : 40 * self.t + 40] = 255
        return picture


class Blind(Drawn):
    """Fails as MuJoCo does without a display."""

    def render(self):
        raise RuntimeError("an OpenGL platform library has not been loaded")


def replay_of(result):
    (path,) = (result.run / "replays").iterdir()
    return json.loads(path.read_text())


def test_the_replay_of_a_run_shows_what_the_environment_draws(tmp_path):
    result = shoal.train("tests.report.test_pictures:Drawn", runs_dir=tmp_path, quiet=True, **QUICK)
    replay = replay_of(result)
    assert replay["renderer"] == "pictures"
    assert replay["fps"] == 24
    frames = replay["lanes"][0]["frames"]
    assert len(frames) == 11
    assert [frame is not None for frame in frames] == [step % 2 == 0 for step in range(11)]  # 12 of 24 a second
    assert "new Image()" in (result.run / "report.html").read_text()


def test_pictures_are_small_and_can_be_read_without_pillow_too(monkeypatch):
    image = pytest.importorskip("PIL.Image")
    picture = np.random.default_rng(0).integers(0, 255, (300, 500, 3), np.uint8)
    small = picture[::3, ::3]
    url = data_url(picture)
    assert url.startswith("data:image/webp;base64,")
    assert max(image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).size) <= MAX_SIDE
    monkeypatch.setitem(sys.modules, "PIL", None)
    url = data_url(picture)
    monkeypatch.undo()
    assert np.array_equal(np.asarray(image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])))), small)


def test_what_cannot_be_drawn_is_said_and_the_run_goes_on(tmp_path, capsys):
    result = shoal.train("tests.report.test_pictures:Blind", runs_dir=tmp_path, **QUICK)
    said = " ".join(capsys.readouterr().out.split())
    assert "The environment cannot draw itself here: Lane 0 raised RuntimeError in render()" in said
    assert "set MUJOCO_GL=egl" in said
    assert replay_of(result)["renderer"] == "observations"


def test_a_video_that_cannot_be_drawn_is_a_sentence(tmp_path, capsys):
    video = str(tmp_path / "x.gif")
    assert main(["play", "tests.report.test_pictures:Blind", "--backend", "serial", "--video", video]) == 2
    said = capsys.readouterr().err
    assert "set MUJOCO_GL=egl" in said
    assert "Traceback" not in said


def test_drawing_that_takes_long_ends(monkeypatch):
    monkeypatch.setattr("shoal.report.pictures.PATIENCE_S", 0.0)
    book = Sketchbook(fps=1.0)
    batch = shoal.make(Drawn, 1, backend="serial", env_kwargs={"render_mode": "rgb_array"})
    batch.reset(seed=0)
    assert book(batch, None) == [None]
    batch.close()


@pytest.mark.parametrize(
    ("shape", "dtype", "expected"),
    [
        ((4, 12, 10), np.uint8, 40),
        ((12, 10, 3), np.uint8, 20),
        ((12, 10, 1), np.uint8, 10),
        ((12, 10, 4), np.bool_, 63),
    ],
)
def test_observations_that_are_images_are_shown_as_pictures(shape, dtype, expected):
    space = gym.spaces.Box(0, 1 if dtype == np.bool_ else 255, shape, dtype)
    image = image_of(space)
    assert image is not None
    axis = shape.index(min(shape))
    pixels = np.moveaxis(np.broadcast_to(10 * np.arange(1, shape[axis] + 1), (12, 10, shape[axis])), -1, axis)
    pixels = np.moveaxis(np.eye(4)[np.zeros((12, 10), int)], -1, axis) if dtype == np.bool_ else pixels
    picture = as_picture(pixels.astype(dtype), image)
    assert picture.shape == (12, 10, 3)
    assert picture.dtype == np.uint8
    assert picture[0, 0, 1] == expected


def test_the_replay_of_lanes_that_nobody_draws_shows_what_the_agent_sees(tmp_path):
    settings = {"num_envs": 2, "total_steps": 32, "eval_episodes": 2, "backend": "serial", "quiet": True}
    settings["algo"] = {"num_steps": 8, "minibatches": 2, "epochs": 1}
    run = shoal.train("tests.training.pictures:Dot", **settings, runs_dir=tmp_path).run
    (path,) = (run / "replays").glob("*.json")
    assert "data:image/" in path.read_text()
    assert path.stat().st_size < 100_000
