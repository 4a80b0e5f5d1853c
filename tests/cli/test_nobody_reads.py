"""Output that nobody reads any more: a run is saved, as by Ctrl-C, and a list just ends."""

import signal
import subprocess
import sys

import pytest

from shoal.training.checkpoint import Checkpoints

PATIENCE = 600  # seconds, on a busy machine

TRAIN = ("train", "cartpole", "--num-envs", "8", "--total-steps", "100000000")


def command(*words, **options):
    return subprocess.Popen([sys.executable, "-m", "shoal", *words], text=True, **options)


def test_a_run_is_saved_when_its_pipe_is_closed(tmp_path):
    run = command(*TRAIN, "--runs-dir", str(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert run.stdout.readline().startswith("step ")
    run.stdout.close()
    said = run.stderr.read()
    assert run.wait(PATIENCE) == 0, said
    assert "Traceback" not in said
    (folder,) = tmp_path.iterdir()
    assert Checkpoints(folder / "checkpoints").steps()


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="only Linux and macOS close terminals with a signal")
def test_a_run_is_saved_when_its_terminal_is_closed(tmp_path):
    run = command(*TRAIN, "--runs-dir", str(tmp_path), stdout=subprocess.PIPE)
    assert run.stdout.readline().startswith("step ")
    run.send_signal(signal.SIGHUP)
    run.stdout.read()
    assert run.wait(PATIENCE) == 0
    (folder,) = tmp_path.iterdir()
    assert Checkpoints(folder / "checkpoints").steps()


def test_a_list_ends_where_its_reader_does():
    listing = command("envs", "--all", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    listing.stdout.read(1)
    listing.stdout.close()
    assert listing.stderr.read() == ""
    assert listing.wait(PATIENCE) in (0, 1, 141)  # the pipe took all of it, rich noticed, or Python did
