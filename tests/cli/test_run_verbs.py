"""train, eval, play, report from the command line, and what they say when asked for something impossible."""

import json

import pytest

from shoal.cli import main
from shoal.worlds.classic.lab import PENDULUM

FAST = [
    "--num-envs",
    "8",
    "--algo.num-steps",
    "16",
    "--algo.minibatches",
    "2",
    "--eval-episodes",
    "4",
    "--eval-every",
    "0",
]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    assert main(["train", "cartpole", *FAST, "--total-steps", "512", "--runs-dir", str(folder), "--force", "9.5"]) == 0
    (path,) = folder.iterdir()
    return path


def test_flags_end_up_in_the_config(run):
    config = json.loads((run / "config.json").read_text())
    assert config["num_envs"] == 8
    assert config["env"]["force"] == 9.5
    assert (config["algo"]["name"], config["algo"]["num_steps"]) == ("ppo", 16)
    assert (run / "report.html").stat().st_size > 10_000


def test_eval_prints_an_interval_and_writes_json(run, tmp_path, capsys):
    out = tmp_path / "e.json"
    assert main(["eval", str(run), "--episodes", "10", "--num-envs", "4", "--out", str(out)]) == 0
    assert "mean return" in capsys.readouterr().out
    result = json.loads(out.read_text())
    assert len(result["returns"]) == result["episodes"] == 10
    assert result["low"] <= result["mean"] <= result["high"]
    assert main(["eval", str(run), "--episodes", "10", "--num-envs", "4", "--out", str(tmp_path / "f.json")]) == 0
    assert json.loads((tmp_path / "f.json").read_text()) == result  # deterministic, on seeds of its own


def test_play_makes_a_page_or_a_video(run, tmp_path, capsys):
    pytest.importorskip("PIL")
    assert main(["play", str(run), "--num-envs", "2", "--max-steps", "10"]) == 0
    assert (run / "play.html").exists()
    assert main(["play", str(run), "--num-envs", "1", "--max-steps", "10", "--video", str(tmp_path / "v.gif")]) == 0
    assert (tmp_path / "v.gif").stat().st_size > 1000
    assert "lane 0: return" in capsys.readouterr().out


def test_play_shows_a_world_before_anything_is_trained(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["play", "cartpole", "--policy", "random", "--num-envs", "2", "--max-steps", "30", "--force", "5"]) == 0
    assert (tmp_path / "play_cartpole_random.html").exists()
    first = capsys.readouterr().out
    assert main(["play", "cartpole", "--policy", "random", "--num-envs", "2", "--max-steps", "30", "--force", "5"]) == 0
    assert capsys.readouterr().out == first  # chance follows from the seed
    assert main(["play", "cartpole", "--policy", "random", "--num-envs", "2", "--max-steps", "30", "--seed", "1"]) == 0
    assert capsys.readouterr().out != first


def test_report_is_written_again(run, capsys):
    (run / "report.html").unlink()
    assert main(["report", str(run)]) == 0
    assert (run / "report.html").exists()


def test_resume_goes_on_to_more_steps(run, capsys):
    assert main(["train", "--resume", str(run), "--total-steps", "1024"]) == 0
    assert "Resuming" in capsys.readouterr().out
    assert (run / "checkpoints" / "step_1024").is_dir()


def test_help_shows_the_worlds_own_defaults(capsys):
    with pytest.raises(SystemExit):
        main(["train", "pendulum", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    gamma = PENDULUM.presets["ppo"].settings["algo"]["gamma"]
    assert f"--algo.gamma FLOAT Discount per step. (default: {gamma})" in text
    assert "--gravity FLOAT|LOW..HIGH m/s². (default: 10.0)" in text
    assert "variance. (default: on)" in text
    assert "WORLD" in text


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["train", "cartpool"], "No environment 'cartpool'. Did you mean 'cartpole'?"),
        (["train", "cartpole", "--num-env", "4"], "No option '--num-env'. Did you mean '--num-envs'?"),
        (["train", "cartpole", "--algo.lrr", "4"], "Did you mean '--algo.lr'?"),
        (["train", "cartpole", "--algo", "pppo"], "No agent 'pppo'. Did you mean 'ppo'?"),
        (["train", "cartpole", "--algo.minibatches", "7"], "does not divide"),
        (["train", "cartpole", "--total-steps", "0"], "total_steps must be at least 1, not 0"),
        (["train", "cartpole", "--device", "cuda:99"], "device='cuda:99' is not available here"),
        (["train", "cartpole", "--config", "/no/such/file.json"], "cannot be read"),
        (["train", "no_such_package.module:Env"], "There is no module 'no_such_package.module'"),
        (["train"], "No world was named"),
        (["train", "--resume", "/no/such/run"], "There is no run folder"),
        (["eval", "/no/such/run"], "There is no run folder"),
        (["eval", "x", "--episode", "4"], "Did you mean '--episodes'?"),
        (["eval", "cartpool"], "No run folder or world 'cartpool'. Did you mean 'cartpole'?"),
        (["play", "cartpole", "--policy", "expert"], "No policy 'expert' of cartpole."),
        (["play", "cartpole", "--forse", "5"], "No option '--forse'"),
        (["report", "/"], "is not a run folder"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(argv, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(argv) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_resumed_run_names_the_field_that_differs(run, capsys):
    assert main(["train", "--resume", str(run), "--algo.lr", "0.5", "--total-steps", "9999"]) == 2
    assert "algo.lr=0.001, not 0.5" in capsys.readouterr().err
    assert main(["train", "--resume", str(run), "--num-envs", "4", "--total-steps", "9999"]) == 2
    assert "num_envs=8, not 4" in capsys.readouterr().err


def test_a_run_plays_in_its_own_world_alone(run, capsys):
    assert main(["eval", "pendulum", "--policy", str(run)]) == 2
    assert "was trained in cartpole and cannot play pendulum" in capsys.readouterr().err


def test_a_config_file_fills_in_what_the_flags_leave_open(tmp_path, capsys):
    (tmp_path / "c.toml").write_text(
        'total_steps = 256\nnum_envs = 8\neval_episodes = 2\n[algo]\nname = "ppo"\nnum_steps = 16\n'
    )
    runs = str(tmp_path / "runs")
    assert main(["train", "acrobot", "--config", str(tmp_path / "c.toml"), "--seed", "5", "--runs-dir", runs]) == 0
    (run,) = (tmp_path / "runs").iterdir()
    config = json.loads((run / "config.json").read_text())
    assert (config["total_steps"], config["seed"], config["algo"]["num_steps"]) == (256, 5, 16)
    (tmp_path / "bad.toml").write_text("total_step = 1\n")
    assert main(["train", "acrobot", "--config", str(tmp_path / "bad.toml")]) == 2
    assert "Did you mean 'total_steps'?" in capsys.readouterr().err


def test_an_environment_of_gymnasium_draws_its_own_video(tmp_path, monkeypatch):
    monkeypatch.setenv("SDL_AUDIODRIVER", "dummy")
    image = pytest.importorskip("PIL.Image")
    pytest.importorskip("pygame")
    video = tmp_path / "pole.gif"
    assert main(["play", "CartPole-v1", "--num-envs", "2", "--max-steps", "5", "--video", str(video)]) == 0
    with image.open(video) as picture:
        assert picture.size == (1200, 400)  # two lanes of Gymnasium's 600 x 400
