"""`shoal search cage2`: which order of repairs, when trained to be followed, is best."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import arg

from shoal.cli.options import parse, take
from shoal.errors import ConfigError
from shoal.search.config import SearchConfig


@dataclass(frozen=True)
class SearchCommand:
    """Search over the orders in which compromised hosts are repaired: train, score, choose the next."""

    settings: Annotated[SearchConfig, arg(name="")]
    folder: Annotated[str | None, arg(metavar="DIR")] = None
    """Where the search is kept; an existing one is gone on with. A new one in runs/ if not given."""
    truth: Annotated[str | None, arg(metavar="DIR")] = None
    """A finished exhaustive search, to show the regret against it."""
    rank_all: bool = False
    """At the end, score the last network under all 120 orders, trained or not."""


def main(argv: list[str]) -> int:
    """`shoal search WORLD [OPTIONS]`."""
    command = parse(SearchCommand, argv, "shoal search", SearchCommand(_defaults(take(argv, "--folder"))))

    from shoal.search.report import read_truth, write_search_report
    from shoal.search.search import WorkflowSearch

    if command.truth is not None:
        read_truth(Path(command.truth), command.settings)  # a wrong one is named before any work is done
    search = WorkflowSearch(command.settings, command.folder)
    if search.rows:
        print(f"Going on with {search.folder} after {len(search.rows)} of {search.num_picks} picks.")
    search.run(say=lambda line: print(line, flush=True))
    if command.rank_all:
        for k, row in enumerate(search.rank_all()[:5]):
            print(f"zero-shot {k + 1}: {row['name']}  return {row['value']:.2f}  compliance {row['compliance']:.2f}")
    best = max(search.rows, key=lambda row: row["value"])
    print(f"Best: {best['name']}, return {best['value']:.2f} [{best['low']:.2f}, {best['high']:.2f}].")
    print(f"Report: {write_search_report(search, command.truth)}")
    return 0


def _defaults(folder: str | None) -> SearchConfig:
    """The settings of the search in `folder`, if there is one: nothing needs to be said twice."""
    path = None if folder is None else Path(folder) / "config.json"
    if path is None or not path.exists():
        return SearchConfig()
    known = {field.name for field in fields(SearchConfig)}
    saved: dict[str, Any] = json.loads(path.read_text())
    if not known <= saved.keys():
        raise ConfigError(f"{folder} holds something other than a search over workflows. Choose another --folder.")
    return SearchConfig(**{name: saved[name] for name in known})
