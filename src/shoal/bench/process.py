"""The parent's side of a contender's process: start it, ask, and let it go."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import shoal
from shoal.bench.contender import Contender, Unavailable

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}
PATIENCE_S = 120.0  # to import, compile and make a large batch on a busy machine
ENDING_S = 20.0


class ChildProcess:
    """A process that serves one worker at a time; see `shoal.bench.child`."""

    def __init__(self, environment: Mapping[str, str], python: str | None = None) -> None:
        self.patience_s = PATIENCE_S
        self._folder = tempfile.TemporaryDirectory()  # some libraries litter the folder they are imported in
        request_read, self._request = os.pipe()
        self._answer, answer_write = os.pipe()
        self._process = subprocess.Popen(
            [python or sys.executable, "-m", "shoal.bench.child", str(request_read), str(answer_write)],
            pass_fds=(request_read, answer_write),
            env={**os.environ, **environment, "PYTHONPATH": _python_path()},
            cwd=self._folder.name,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(request_read)
        os.close(answer_write)

    def start(self, entry: str, /, **arguments: object) -> None:
        """Have the worker made that "module:name" names, in place of an earlier one."""
        self._ask({"start": entry, "with": arguments})

    def do(self, method: str, /, **arguments: object) -> dict[str, Any]:
        """What a method of the worker answers."""
        return self._ask({"do": method, "with": arguments})

    def close(self) -> None:
        """Closing the pipe ends the process; what does not end is ended."""
        os.close(self._request)
        try:
            self._process.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._answer)
        self._folder.cleanup()

    def _ask(self, request: dict[str, object]) -> dict[str, Any]:
        """The answer; `Unavailable` if the worker cannot give one, or not within `patience_s`."""
        try:
            os.write(self._request, json.dumps(request).encode() + b"\n")
        except BrokenPipeError:
            raise Unavailable("its process has died") from None
        line, deadline = b"", time.monotonic() + self.patience_s
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([self._answer], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                self._process.kill()
                raise Unavailable(f"took more than {self.patience_s:.0f} s")
            part = os.read(self._answer, 65536)
            if not part:
                raise Unavailable(f"its process died with exit code {self._process.wait()}")
            line += part
        answer = json.loads(line)
        if "unavailable" in answer:
            raise Unavailable(answer["unavailable"])
        return answer


class ContenderProcess(ChildProcess):
    """A contender that steps batches, for all sizes of its work."""

    def __init__(self, contender: Contender, python: str | None = None) -> None:
        super().__init__({**ONE_THREAD, **contender.environment}, python)
        self.contender = contender
        self.version: str | None = None

    def prepare(self, num_envs: int) -> None:
        """Set up the work; `Unavailable` if it cannot take part."""
        about = {name: getattr(self.contender, name) for name in ("entry", "options", "package")}
        self.start("shoal.bench.stepping:Stepping", num_envs=num_envs, **about)
        self.version = self.do("about")["version"]

    def measure(self, seconds: float) -> dict[str, float]:
        """Work for about `seconds`: {"batch_steps", "cpu", "wall"}."""
        return self.do("measure", seconds=seconds)


def _python_path() -> str:
    """Where this Shoal is, for interpreters that have not installed it."""
    ours = str(Path(shoal.__file__).parent.parent)
    return os.pathsep.join(filter(None, [ours, os.environ.get("PYTHONPATH")]))
