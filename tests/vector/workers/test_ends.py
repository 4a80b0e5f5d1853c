"""However a batch ends, no process and no shared memory is left behind."""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shoal.vector.workers import WorkerBatch
from tests.vector.toys import HANG, Trap
from tests.vector.workers.hanging import STEP_TIMEOUT, expect_hang, look_often
from tests.vector.workers.left_behind import (
    assert_ended,
    assert_nothing_left,
    shared_blocks,
    wait_until,
    worker_pids,
)

SCRIPT = """
import json, sys
from shoal.vector.workers import WorkerBatch
from tests.vector.toys import HANG, Trap
from tests.vector.workers.left_behind import assert_ended, assert_nothing_left, worker_pids

if __name__ == "__main__":
    batch = WorkerBatch(Trap, 4, num_workers=2, context=sys.argv[1])
    batch.reset(seed=0)
    batch.step([0, 0, 0, 0])
    pids = worker_pids(batch)
    try:
        print(json.dumps(pids), flush=True)
        while True:
            batch.step([0, 0, HANG if sys.argv[2] == "hang" else 0, 0])
    except KeyboardInterrupt:
        assert batch.closed or sys.argv[2] != "hang"  # between two steps, closing is the caller's
        batch.close()
    assert_ended(pids)
    assert_nothing_left(batch)
    print("clean", flush=True)
"""


@pytest.fixture
def start(tmp_path):
    """Starts the script above in a session of its own, as a terminal would; returns it and its workers' pids."""
    path, hangs = tmp_path / "script.py", tmp_path / "hangs"
    path.write_text(SCRIPT)
    started = []

    def run(context: str, what: str) -> tuple[subprocess.Popen, list[int]]:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TRAP_HANGS": str(hangs)}
        process = subprocess.Popen(
            [sys.executable, str(path), context, what],
            stdout=subprocess.PIPE,
            start_new_session=True,
            text=True,
            env=environment,
        )
        started.append(process)
        assert process.stdout is not None
        pids = json.loads(process.stdout.readline())
        if what == "hang":
            wait_until(hangs.exists)
        return process, pids

    yield run
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def session_members(session: int) -> list[int]:
    """Every process of a session: workers, and what multiprocessing keeps beside them."""
    members = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            members.append(int(stat.parent.name))
    return members


@pytest.mark.parametrize("what", ["step", "hang"])
@pytest.mark.parametrize("context", ["fork", "forkserver", "spawn"])
def test_workers_die_with_a_parent_that_is_killed(start, context, what):
    process, pids = start(context, what)
    blocks = [block for pid in pids for block in shared_blocks(pid)]
    assert blocks, "the test looks for the wrong thing if there is nothing to find"
    process.kill()
    process.wait()
    assert_ended(pids)
    wait_until(lambda: not session_members(process.pid))
    assert [path.name for path in Path("/dev/shm").iterdir() if "shoal" in path.name] == []


@pytest.mark.parametrize("what", ["step", "hang"])
@pytest.mark.parametrize("context", ["fork", "forkserver"])
def test_ctrl_c_closes_the_batch_and_reaches_the_caller(start, context, what):
    process, pids = start(context, what)
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate()
    assert output.strip() == "clean"
    assert process.returncode == 0
    assert_ended(pids)


@pytest.mark.parametrize("context", ["forkserver", "spawn"])
def test_a_script_needs_no_main_guard(tmp_path, context):
    path = tmp_path / "unguarded.py"
    path.write_text(
        "from shoal.vector.workers import WorkerBatch\n"
        f"print(WorkerBatch('CartPole-v1', 2, context='{context}').num_envs)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr


def test_a_batch_that_is_dropped_ends_its_workers():
    batch = WorkerBatch(Trap, 2, num_workers=2, context="fork")
    pids = worker_pids(batch)
    del batch
    gc.collect()
    assert_ended(pids)
    assert_nothing_left()


def test_close_lets_the_environments_close(tmp_path):
    batch = WorkerBatch(Signing, 3, env_kwargs={"folder": str(tmp_path)}, num_workers=2, context="fork")
    batch.reset(seed=0)
    batch.close()
    batch.close()
    assert len(list(tmp_path.iterdir())) >= 3
    assert_nothing_left(batch)


class WithSimulators(Trap):
    """Has programs of its own, which it ends by SIGTERM."""

    def reset(self, *, seed=None, options=None):
        program = subprocess.Popen(["sleep", "100"])
        reading, writing = os.pipe()
        fork = multiprocessing.get_context("fork").Process(target=_simulate, args=(writing,))
        fork.start()
        os.read(reading, 1)
        program.terminate()
        fork.terminate()
        program.wait(20)
        fork.join(20)
        obs, info = super().reset(seed=seed)
        return obs, {**info, "program": program.returncode, "fork": fork.exitcode}


def _simulate(writing: int) -> None:
    os.write(writing, b".")  # a signal in the middle of forking would be lost
    time.sleep(100)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_to_the_whole_group_are_left_to_the_parent(number):
    batch = WorkerBatch(WithSimulators, 2, num_workers=2, context="fork")
    _, info = batch.reset(seed=0)
    assert [info["program"].tolist(), info["fork"].tolist()] == [[-signal.SIGTERM] * 2] * 2
    for pid in worker_pids(batch):
        os.kill(pid, number)
    assert batch.step([0, 0])[0][:, 0].tolist() == [1, 1]
    batch.close()


class Signing(Trap):
    def __init__(self, folder: str) -> None:
        super().__init__()
        self.folder = folder

    def close(self) -> None:
        Path(self.folder, f"{os.getpid()}-{id(self)}").touch()


def test_a_fork_of_the_parent_does_not_end_its_workers():
    batch = WorkerBatch(Trap, 2, num_workers=1, context="fork")
    batch.reset(seed=0)
    child = os.fork()
    if not child:
        batch.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert batch.step([0, 0])[0][:, 0].tolist() == [1, 1]
    batch.close()


def test_a_worker_that_does_not_close_is_killed(monkeypatch, tmp_path):
    expect_hang(monkeypatch, tmp_path / "hangs")
    batch = WorkerBatch(Trap, 1, num_workers=1, context="fork", step_timeout=STEP_TIMEOUT, on_fault="restart")
    look_often(batch)
    batch.reset(seed=0)
    pids = worker_pids(batch)
    batch.step([HANG])
    assert_ended(pids)
    batch.close()
    assert_nothing_left(batch)
