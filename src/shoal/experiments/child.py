"""A process that trains, one run after another. Run as `python -m shoal.experiments.child`.

Requests and answers are lines of JSON on standard input and output, for which everybody else here gets others. A
request says what to train (see `processes`); the answers to it are `needs` (bytes of memory), then `row` as the run
goes on, and at last `ended` or `failed`. The request `interrupt` ends a run as Ctrl-C does: after its iteration, with a
checkpoint. It is not a signal, since Windows cannot send one to a process without a console. If the parent is gone, so
is this process: nobody else would end it, and its run could not be resumed.
"""

from __future__ import annotations

import _thread
import json
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from rich.console import Console

from shoal.errors import ShoalError
from shoal.experiments.folder import Outcome, write_outcome
from shoal.garbage import collect_rarely
from shoal.options import Values
from shoal.platform import peak_memory
from shoal.registry import as_world
from shoal.report.run_report import write_report
from shoal.runs.carry_out import carry_out
from shoal.runs.num_envs import needed_bytes
from shoal.runs.plan import Plan, plan_resumed
from shoal.training.checkpoint import Checkpoints
from shoal.training.display import Display
from shoal.training.interrupt import INTERRUPTED
from shoal.training.lab import Headline
from shoal.training.metrics import RETURN, Row, read_rows
from shoal.training.settings import config_from

Send = Callable[[Values], None]


class Reporting(Display):
    """Follows a run on behalf of the parent."""

    every = 0.25

    def __init__(self, send: Send, title: str, total_steps: int, headlines: Sequence[Headline] = ()) -> None:
        super().__init__(title, total_steps, Console(quiet=True), headlines)
        self._send = send

    def show(self, row: Row) -> None:
        self._send({"row": row})

    def say(self, sentence: str) -> None:
        """The panel of many runs has no room for it; a signal's handler must not write while a row is being written."""


class Requests:
    """What the parent asks for, heard by a thread of its own."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._waiting: queue.SimpleQueue[Values] = queue.SimpleQueue()
        self._current = self._interrupted = -1
        threading.Thread(target=self._listen, daemon=True).start()

    def next(self) -> Values:
        """The next one."""
        return self._waiting.get()

    def begin(self, number: int) -> None:
        """The main thread is at this one now; `KeyboardInterrupt` if it was interrupted before."""
        self._current = number
        if self._interrupted == number:
            raise KeyboardInterrupt

    def _listen(self) -> None:
        for line in self._file:
            request = json.loads(line)
            if "interrupt" not in request:
                self._waiting.put(request)
            elif (number := request["interrupt"]) >= self._current:
                self._interrupted = number
                if number == self._current:
                    _thread.interrupt_main()
            if "end" in request:
                return
        os._exit(1)


def main() -> None:
    """Train what is asked for until asked to end."""
    collect_rarely()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asked, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)

    def send(answer: Values) -> None:
        print(json.dumps(answer), file=answers, flush=True)

    requests = Requests(asked)
    while "end" not in (request := requests.next()):
        send(_work(request, requests, send))


def _work(request: Values, requests: Requests, send: Send) -> Values:
    """Train one run; the last answer about it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        requests.begin(request["number"])
        outcome = train_seed(request, send)
        return {"ended": vars(outcome)}
    except KeyboardInterrupt:  # before the first iteration, or a second one: it goes on from its last checkpoint
        return {"ended": {"reason": INTERRUPTED, "steps": 0, "total_steps": 0, "score": None, "seconds": 0.0}}
    except ShoalError as error:
        return {"failed": str(error)}
    except Exception as error:
        traceback.print_exc()
        return {"failed": f"{type(error).__name__}: {error}"}
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def train_seed(request: Values, send: Send) -> Outcome:
    """Begin the run that is asked for, or go on with it; it is the one that `shoal.train` alone would make."""
    sys.argv = request["argv"]
    values = request["config"]
    world = as_world(values["world"])
    config = config_from(values, world)
    send({"needs": peak_memory() + needed_bytes(world, config)})
    run, reason = Path(request["runs_dir"]) / request["run_name"], f"all {config.total_steps:,} steps done"

    def show(title: str, total_steps: int, headlines: Sequence[Headline] = ()) -> Display:
        return Reporting(send, title, total_steps, headlines)

    steps = Checkpoints(run / "checkpoints").steps() if request["resume"] else []
    if not steps or steps[-1] < config.total_steps:
        plan = (
            plan_resumed(run, None, {"total_steps": config.total_steps}, request["trust"])
            if steps
            else Plan(world, config)
        )
        result = carry_out(plan, request["runs_dir"], request["run_name"], request["track"], show)
        reason = result.reason
    else:  # it was killed between its last checkpoint and its outcome
        write_report(run)
    outcome = outcome_of(run, reason, config.total_steps)
    write_outcome(run, outcome)
    return outcome


def outcome_of(run: Path, reason: str, total_steps: int) -> Outcome:
    """How a run ended, from what its folder holds."""
    rows, evaluations = read_rows(run / "metrics.jsonl"), read_rows(run / "evaluations.jsonl")
    last: dict[str, Any] = rows[-1] if rows else {"step": 0, "time/time_elapsed": 0.0}
    score = evaluations[-1]["mean"] if evaluations else last.get(RETURN)
    return Outcome(reason, last["step"], total_steps, score, last["time/time_elapsed"])


if __name__ == "__main__":
    main()
