"""The parent's side of a contender: start its process, ask, and let it go."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import shoal
from shoal.bench.contender import Contender

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


class ContenderProcess:
    """One contender in a process of its own, for all sizes of its work."""

    def __init__(self, contender: Contender, python: str | None = None) -> None:
        self.contender = contender
        self.version: str | None = None
        self._folder = tempfile.TemporaryDirectory()  # some libraries litter the folder they are imported in
        request_read, self._request = os.pipe()
        self._answer, answer_write = os.pipe()
        self._process = subprocess.Popen(
            [python or sys.executable, "-m", "shoal.bench.child", str(request_read), str(answer_write)],
            pass_fds=(request_read, answer_write),
            env={**os.environ, **ONE_THREAD, "PYTHONPATH": _python_path()},
            cwd=self._folder.name,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(request_read)
        os.close(answer_write)

    def prepare(self, num_envs: int) -> str:
        """Set up the work. Returns why it cannot take part, or an empty string."""
        work = {"entry": self.contender.entry, "num_envs": num_envs, "options": self.contender.options}
        answer = self._ask({"prepare": work, "package": self.contender.package})
        self.version = answer.get("version", self.version)
        return answer.get("unavailable", "")

    def measure(self, seconds: float) -> dict[str, float]:
        """Work for about `seconds`: {"batch_steps", "cpu", "wall"}, or {"unavailable"}."""
        return self._ask({"measure": seconds})

    def close(self) -> None:
        """Closing the pipe ends the process; what does not end is ended."""
        os.close(self._request)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._answer)
        self._folder.cleanup()

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            os.write(self._request, json.dumps(request).encode() + b"\n")
        except BrokenPipeError:
            return {"unavailable": "its process has died"}
        answer, deadline = b"", time.monotonic() + PATIENCE_S
        while not answer.endswith(b"\n"):
            ready, _, _ = select.select([self._answer], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                self._process.kill()
                return {"unavailable": f"took more than {PATIENCE_S:.0f} s"}
            part = os.read(self._answer, 65536)
            if not part:
                return {"unavailable": f"its process died with exit code {self._process.wait()}"}
            answer += part
        return json.loads(answer)


def _python_path() -> str:
    """Where this Shoal is, for interpreters that have not installed it."""
    ours = str(Path(shoal.__file__).parent.parent)
    return os.pathsep.join(filter(None, [ours, os.environ.get("PYTHONPATH")]))
