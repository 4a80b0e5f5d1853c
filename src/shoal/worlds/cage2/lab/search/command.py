"""`shoal cage2 search`: which order of repairs, when trained to be followed, is best."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, make_dataclass, replace
from pathlib import Path
from typing import Annotated

from shoal.errors import ConfigError
from shoal.options import Flag, docs_of, hints_of
from shoal.training.files import read_record, read_table
from shoal.training.lab import Verb
from shoal.worlds.cage2.lab.search.config import SearchConfig


@dataclass(frozen=True)
class SearchCommand:
    """Search over the orders in which compromised hosts are repaired: train, score, choose the next."""

    folder: Annotated[str | None, Flag("DIR")] = None
    """Where the search is kept; an existing one is continued with its own settings. A new one in runs/ if not given."""
    truth: Annotated[str | None, Flag("DIR")] = None
    """A finished exhaustive search, to show the regret against it."""
    rank_all: bool = False
    """At the end, score the last network under all 120 orders, trained or not."""

    @property
    def settings(self) -> SearchConfig:
        """Those of the search in the folder, if there is one (nothing needs to be said twice), and what was given."""
        values = {f.name: getattr(self, f.name, None) for f in fields(SearchConfig)}
        return replace(_saved(self.folder), **{name: value for name, value in values.items() if value is not None})


def _with_settings() -> type[SearchCommand]:
    """The command with a field for every setting of a search, None unless given."""
    hints, docs = hints_of(SearchConfig), docs_of(SearchConfig)
    columns = []
    for f in fields(SearchConfig):
        about = docs[f.name] if f.default is None else f"{docs[f.name]} (default: {f.default})"
        columns.append((f.name, hints[f.name] | None, field(default=None, metadata={"help": about})))
    return make_dataclass(
        "SearchFlags", columns, bases=(SearchCommand,), frozen=True, namespace={"__doc__": SearchCommand.__doc__}
    )


def search(command: SearchCommand) -> int:
    """Begin a search or go on with one, and report it."""
    from shoal.worlds.cage2.lab.search.display import SearchDisplay, describe_best
    from shoal.worlds.cage2.lab.search.report import read_truth, write_search_report
    from shoal.worlds.cage2.lab.search.search import WorkflowSearch

    if command.truth is not None:
        read_truth(Path(command.truth), command.settings)  # a wrong one is named before any work is done
    search = WorkflowSearch(command.settings, command.folder)
    if search.rows:
        print(f"Continuing {search.folder} after {len(search.rows)} of {search.num_picks} picks.")
    with SearchDisplay() as display:
        search.run(display.say, display.progress)
    if command.rank_all:
        for k, row in enumerate(search.rank_all()[:5]):
            print(f"zero-shot {k + 1}: {row['name']}  return {row['value']:.2f}  compliance {row['compliance']:.2f}")
    print(describe_best(search))
    print(f"Report: {write_search_report(search, command.truth)}")
    return 0


def _saved(folder: str | None) -> SearchConfig:
    path = None if folder is None else Path(folder) / "config.json"
    if path is None or not path.exists():
        return SearchConfig()
    known, saved = {f.name for f in fields(SearchConfig)}, read_table(path)
    if not known <= saved.keys():
        raise ConfigError(f"{path} is of something other than a search over workflows. Choose another --folder.")
    return read_record(path, SearchConfig, {name: saved[name] for name in known})


SEARCH = Verb(_with_settings(), search)
