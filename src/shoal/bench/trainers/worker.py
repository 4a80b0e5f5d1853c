"""`python -m shoal.bench.trainers.worker MODULE[:VARIANT] WORK`: train on demand, one JSON line in and one out.

In: {"iterations": N}, and {"seed": S} to begin anew first. Out: environment steps, wall seconds, CPU seconds of all
threads and child processes, mean return, and the most memory it ever had.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import time
from dataclasses import replace
from functools import partial

from shoal.bench.child import cpu_seconds
from shoal.bench.trainers import Work


def main() -> None:
    """Serve until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints must not come between the answers
    name, _, variant = sys.argv[1].partition(":")
    module, work = importlib.import_module(f"shoal.bench.trainers.{name}"), Work(**json.loads(sys.argv[2]))
    start = partial(module.start, variant=variant) if variant else module.start
    trainer = start(work)
    for line in sys.stdin:
        order = json.loads(line)
        if "seed" in order:
            if trainer.restart is not None:
                trainer.restart(order["seed"])
            else:
                trainer = start(replace(work, seed=order["seed"]))
        wall, cpu = time.perf_counter(), cpu_seconds()
        trainer.iterate(order["iterations"])
        wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
        steps = order["iterations"] * work.batch_size
        answer = {"steps": steps, "wall": wall, "cpu": cpu, "return": trainer.recent_return(), **trainer.extras()}
        answer["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
