"""Threads for compiled loops over lanes, which release the GIL."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from shoal.errors import ConfigError
from shoal.platform import num_cores

WORTH_SPLITTING_S = 100e-6  # waking a thread costs about 20 µs; below this a second one cannot gain
TRIAL_EVERY = 256  # calls between two looks at the way not taken
SETTLED = 64  # calls after which a step that takes a tenth of what is worth splitting is not measured any more


class Crew:
    """Splits `num_envs` lanes over threads; "auto" measures whether one thread is faster and then uses one."""

    def __init__(self, num_threads: int | str, num_envs: int) -> None:
        self._measures = num_threads == "auto"
        wanted = num_cores() if num_threads == "auto" else num_threads
        if not isinstance(wanted, int) or wanted < 1:
            raise ConfigError(
                f"num_threads={num_threads!r} is not a number of threads. Pass an int of at least 1, or 'auto'."
            )
        self.size = min(wanted, num_envs)
        self.alone = self.size == 1
        """Whether one thread steps all lanes, and nobody need ask any more."""
        edges = [num_envs * k // self.size for k in range(self.size + 1)]
        self._chunks = list(itertools.pairwise(edges))
        self._pool: ThreadPoolExecutor | None = None
        self._calls = 0
        self._seconds = {False: 0.0, True: 0.0}  # smoothed time of a step alone and together

    def step(self, run: Callable[[int, int, int, bool], int], check: Callable[[], int]) -> int:
        """Run all chunks. `run(chunk, lo, hi, checked)` returns how many episodes ended, or a negative fault.

        All actions are checked before the first chunk runs, so that a refused action moves nothing.
        """
        together = not self.alone and (not self._measures or self._choose())
        start = time.perf_counter()
        if not together:
            result = run(0, 0, self._chunks[-1][1], False)
        else:
            result = check()
            if result >= 0:
                result = self._run_chunks(run)
        if self._measures and not self.alone:
            self._note(together, time.perf_counter() - start)
        return result

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def _run_chunks(self, run: Callable[[int, int, int, bool], int]) -> int:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.size - 1, thread_name_prefix="shoal-lanes")
        others = [self._pool.submit(run, k, lo, hi, True) for k, (lo, hi) in enumerate(self._chunks) if k]
        results = [run(0, *self._chunks[0], True), *[other.result() for other in others]]
        return min(results) if min(results) < 0 else sum(results)

    def _choose(self) -> bool:
        """Together? Each way is tried in turn at first, then again now and then, as the machine's load changes."""
        self._calls += 1
        alone, together = self._seconds[False], self._seconds[True]
        if self._calls <= 3:  # the first calls touch cold memory
            return False
        if alone < WORTH_SPLITTING_S:
            return False
        better = together == 0.0 or together < alone
        return not better if self._calls % TRIAL_EVERY == 0 else better

    def _note(self, together: bool, seconds: float) -> None:
        old = self._seconds[together]
        self._seconds[together] = seconds if old == 0.0 else 0.8 * old + 0.2 * min(seconds, 4 * old)
        self.alone = self._calls == SETTLED and 10 * self._seconds[False] < WORTH_SPLITTING_S
