"""Oracles: a neural network or a solver inside `step`, asked once for all lanes.

An environment whose transition needs an expensive answer (a routing solver, a learned simulator, a language model)
declares it as an `Oracle` and calls it with arrays [B, ...]. Shoal then sees to what every such environment needs:
one call per step, pieces when memory is short, counts and times, and faults that name the lane.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from shoal.errors import ConfigError, LaneFault, ShoalError
from shoal.trees import Tree, concatenate_trees, leaves, map_tree
from shoal.vector.batch import Array


class OracleStats(NamedTuple):
    """What an oracle has been asked for since it was made, or since `reset_stats`."""

    calls: int  # questions asked: one per step if the environment is batched well
    pieces: int  # evaluations behind them; more than `calls` where a batch was cut for memory
    lanes: int  # lanes answered, summed over the calls
    seconds: float  # wall time spent answering


class Oracle:
    """A callable over the whole batch: `answer = oracle(x, y, ...)`, every argument and answer with leading axis B.

    `function` is any callable of arrays, or a `torch.nn.Module`, which is then run in inference mode on its own device
    and takes and gives NumPy arrays like any other. It must not remember anything between calls: what a solver wants
    to keep (a plan, a warm start) goes in and out as arrays and lives in the state of the environment. So lanes stay
    independent, states can be saved, and a batch can be cut in pieces.
    """

    def __init__(
        self,
        function: Callable[..., Tree],
        *,
        name: str | None = None,
        chunk: int | None = None,
        describe: Callable[[int], str] | None = None,
    ) -> None:
        """Declare an oracle.

        Args:
            chunk: at most this many lanes at once; None takes all, and halves when memory runs out.
            describe: words about a lane for error messages, e.g. which request it was working on.
        """
        if chunk is not None and chunk < 1:
            raise ConfigError(f"chunk must be at least 1 lane, not {chunk}. Leave it out to ask about all at once.")
        self.name = name or getattr(function, "__name__", None) or type(function).__name__
        self.chunk = chunk
        self._function = _on_tensors(function) if _is_module(function) else function
        self._describe = describe
        self.reset_stats()

    @property
    def stats(self) -> OracleStats:
        """Counts and time so far."""
        return self._stats

    def reset_stats(self) -> None:
        """Count from zero."""
        self._stats = OracleStats(0, 0, 0, 0.0)

    def __call__(self, *question: Array) -> Tree:
        """Answer [B, ...] arrays with an array, or a tuple or dict of arrays, [B, ...]."""
        num_lanes = len(question[0])
        start = time.perf_counter()
        answers: list[Tree] = []
        lo = 0
        while lo < num_lanes:
            hi = num_lanes if self.chunk is None else min(lo + self.chunk, num_lanes)
            try:
                answer = self._function(*(array[lo:hi] for array in question))
            except Exception as error:
                if not _is_out_of_memory(error):
                    raise self._blame(error, question, lo, hi) from error
                if hi - lo == 1:
                    raise LaneFault(f"Oracle {self.name!r} has no memory even for lane {lo} alone.", lo) from error
                self.chunk = (hi - lo) // 2
                continue
            self._check(answer, lo, hi)
            answers.append(answer)
            lo = hi
        calls, pieces, lanes, seconds = self._stats
        seconds += time.perf_counter() - start
        self._stats = OracleStats(calls + 1, pieces + len(answers), lanes + num_lanes, seconds)
        return answers[0] if len(answers) == 1 else concatenate_trees(answers)

    # ------------------------------------------------------------------ faults

    def _check(self, answer: Tree, lo: int, hi: int) -> None:
        for leaf in leaves(answer):
            if len(leaf) != hi - lo:
                raise ConfigError(
                    f"Oracle {self.name!r} was asked about {hi - lo} lanes and answered with shape "
                    f"{tuple(leaf.shape)}. Every answer needs one row per lane."
                )
            unequal = leaf != leaf  # only NaN differs from itself
            if bool(unequal.any()):
                lane = lo + int(np.argwhere(np.asarray(unequal))[0][0])
                raise LaneFault(f"Oracle {self.name!r} returned NaN for lane {lane}{self._words(lane)}.", lane)

    def _blame(self, error: Exception, question: tuple[Array, ...], lo: int, hi: int) -> ShoalError:
        """Find the lane that makes the function raise, by halves; some functions only fail on the whole."""
        what = f"{type(error).__name__}: {error}"
        while hi - lo > 1:
            middle = (lo + hi) // 2
            if self._raises(question, lo, middle):
                hi = middle
            elif self._raises(question, middle, hi):
                lo = middle
            else:
                return LaneFault(f"Oracle {self.name!r} raised {what} on lanes {lo} to {hi - 1} together.")
        return LaneFault(f"Oracle {self.name!r} raised {what} in lane {lo}{self._words(lo)}.", lo)

    def _raises(self, question: tuple[Array, ...], lo: int, hi: int) -> bool:
        try:
            self._function(*(array[lo:hi] for array in question))
        except Exception:
            return True
        return False

    def _words(self, lane: int) -> str:
        return f" ({self._describe(lane)})" if self._describe else ""


# ---------------------------------------------------------------------- trees and tensors


def _is_module(function: object) -> bool:
    torch = sys.modules.get("torch")  # whoever holds a module has imported torch
    return torch is not None and isinstance(function, torch.nn.Module)


def _on_tensors(module: Any) -> Callable[..., Tree]:
    """A module as a function of arrays: in on its device, out as the kind of array that came in."""
    torch = sys.modules["torch"]

    def call(*question: Array) -> Tree:
        parameter = next(module.parameters(), None)
        device = torch.device("cpu") if parameter is None else parameter.device
        with torch.inference_mode():
            answer = module(*(torch.as_tensor(array, device=device) for array in question))
        if not isinstance(question[0], np.ndarray):
            return answer
        return map_tree(lambda leaf: leaf.cpu().numpy(), answer)

    return call


def _is_out_of_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
