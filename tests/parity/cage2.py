"""Is the CAGE2 world the original? Four kinds of evidence, from a folder of recordings (fixtures' README).

1. *replay*: every random decision of a recorded episode is given to the kernel; observation (both tables), reward,
   red's success and the hidden state must be equal after every step.
2. *agents*: the same with red's own rules choosing, only its draws given; action, target and memory must be equal.
3. *frequencies*: the kernel's own draws pass a chi-square test.
4. *distribution*: returns of free-running episodes agree with `large_sample.json` and `stats.json`, if present.

Prints JSON and returns 1 if anything disagrees.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tests.parity.cage2_distribution import check_distribution
from tests.parity.cage2_frequencies import check_frequencies
from tests.parity.cage2_replay import replay_file


def main(argv: list[str]) -> int:
    """Check everything in a folder of recordings."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity cage2", description=__doc__.splitlines()[0])
    parser.add_argument("dir", type=Path, help="folder with trace_*.npz, and stats.json and large_sample.json if any")
    parser.add_argument("--replay-only", action="store_true", help="leave out frequencies and distribution")
    parser.add_argument("--episodes", type=int, default=20_000, help="free-running episodes per cell")
    options = parser.parse_args(argv)
    traces = sorted(options.dir.glob("trace_*.npz"))
    if not traces:
        print(f"There are no recordings trace_*.npz in {options.dir}.", file=sys.stderr)
        return 2
    report = check_folder(options.dir, traces, None if options.replay_only else options.episodes)
    print(json.dumps(report, indent=1))
    return 1 if report["mismatches"] else 0


def check_folder(folder: Path, traces: list[Path], episodes: int | None) -> dict:
    """All checks as one JSON value; `mismatches` counts everything that disagrees."""
    replays = {path.stem: replay_file(path) for path in traces}
    report: dict = {
        "world": "cage2",
        "files": len(traces),
        "episodes": sum(result["episodes"] for result in replays.values()),
        "steps": sum(result["steps"] for result in replays.values()),
        "replay": replays,
    }
    wrong = sum(sum(result["mismatches"].values()) for result in replays.values())
    if episodes is not None:
        report["frequencies"] = check_frequencies()
        report["distribution"] = check_distribution(folder, episodes)
        wrong += sum(not case["ok"] for case in report["frequencies"])
        wrong += sum(len(cell["failed"]) for cell in report["distribution"])
    report["mismatches"] = int(wrong)
    return report
