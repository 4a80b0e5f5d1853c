"""Replay recorded expansions, proofs, episodes and rankings: `python -m tests.parity kg DIR --data DATADIR`.

Every kind of case that DIR has is run, on the compiled and on the tensor engine where it concerns an engine. Prints one
JSON object and exits with 1 if anything differs.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tests.parity import kg_cases


def main(argv: list[str]) -> int:
    """Run all cases; 0 if nothing differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity kg", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder with datasets.json, lookups.json, walks.json, ...")
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder per data set")
    parser.add_argument("--engines", nargs="+", default=list(kg_cases.ENGINES), choices=kg_cases.ENGINES)
    arguments = parser.parse_args(argv)
    if "tensor" in arguments.engines:
        import torch

        torch.set_num_threads(1)  # many small operations: more threads only wait for each other
    report: dict[str, dict] = {}
    differences: list[str] = []
    for kind, check in kg_cases.CHECKS.items():
        path = arguments.folder / f"{kind}.json"
        if not path.exists():
            continue
        cases = json.loads(path.read_text())
        found = check(cases, arguments.data, arguments.engines)
        report[kind] = {"cases": len(cases), "different": len(found)}
        differences += [f"{kind}: {difference}" for difference in found]
    if not report:
        differences.append(f"{arguments.folder} has none of {', '.join(kg_cases.CHECKS)} (.json)")
    result = {"world": "kg", "engines": arguments.engines, "kinds": report, "differences": differences[:20]}
    print(json.dumps(result, indent=1))
    return 1 if differences else 0
