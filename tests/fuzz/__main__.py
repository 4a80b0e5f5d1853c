"""`python -m tests.fuzz`: damage files thousands of times, and say which commands did not take it well."""

from __future__ import annotations

import argparse
import math
import os
import resource
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from random import Random

from tests.fuzz.attempts import Attempt, Depth, attempt
from tests.fuzz.readers import READERS, make_new_run
from tests.fuzz.world_readers import CITY, GRAPH, ORACLE, POLICY, make_materials

SLOW = 5  # seconds of CPU time that are worth a line


def run(given: argparse.Namespace) -> int:
    """Drive the readers in turn; prints the complaints by place, and returns how many there were."""
    complaints: dict[str, list[Attempt]] = {}
    outcomes: Counter[str] = Counter()
    depth, began = Depth(given.iterations, given.seconds), time.process_time()
    late = time.monotonic() + 60 * given.minutes
    with tempfile.TemporaryDirectory() as scratch:
        make_new_run(Path(scratch) / "new")
        (Path(scratch) / "materials").mkdir()
        every = [*READERS, GRAPH, CITY, ORACLE, POLICY, *make_materials(Path(scratch) / "materials")]
        readers = [
            reader for reader in every if not given.readers or any(name in reader.name for name in given.readers)
        ]
        for case in range(given.cases):
            if time.monotonic() > late:
                break
            reader = readers[case % len(readers)]
            with tempfile.TemporaryDirectory(dir=scratch) as folder:
                clock = time.process_time()
                result = attempt(reader, Path(folder), Random(f"{given.seed} {case}"), depth)
                if time.process_time() - clock > SLOW:
                    print(f"{time.process_time() - clock:.0f} s: case {case}, {result}", flush=True)
            outcomes["complaint" if result.complaints else "refused" if result.code else "accepted"] += 1
            if result.complaints:
                if (place := _place(result)) not in complaints:
                    print(f"case {case}: {place}", flush=True)
                complaints.setdefault(place, []).append(result)
    for place, results in sorted(complaints.items(), key=lambda item: -len(item[1])):
        print(f"\n{len(results)} × {place}")
        for result in results[: given.shown]:
            print(f"    {result}"[:600])
    counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
    cpu_seconds = time.process_time() - began
    print(f"\n{outcomes.total()} cases, {len(readers)} readers, {cpu_seconds:.0f} s of CPU time: {counts}.")
    return outcomes["complaint"]


def _place(result: Attempt) -> str:
    """Where an error came from, or what was wrong with the sentence."""
    if result.error is None:
        return result.complaints[0].partition(":")[0]
    frames = traceback.extract_tb(result.error.__traceback__)
    ours = [frame for frame in frames if f"{os.sep}shoal{os.sep}" in frame.filename] or list(frames)
    name = ours[-1].filename.partition(f"{os.sep}shoal{os.sep}")[2] or ours[-1].filename
    return f"{type(result.error).__name__} in {name}:{ours[-1].lineno} {ours[-1].name}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("readers", nargs="*", help="parts of the names of readers; all if none is given")
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=math.inf, help="after which no case is begun")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--iterations", type=int, default=0, help="of training, where nothing is refused")
    parser.add_argument("--seconds", type=int, default=0, help="after which one case is left alone")
    parser.add_argument("--shown", type=int, default=3, help="examples of each complaint")
    parser.add_argument("--memory", type=float, default=12.0, help="GiB of address space at most")
    given = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (int(given.memory * 2**30),) * 2)
    raise SystemExit(min(1, run(given)))
