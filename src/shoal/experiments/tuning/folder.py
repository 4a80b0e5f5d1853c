"""A search is a folder: `{runs_dir}/tune__{world}__{algo}__{time}/`.

| file | what it holds |
|---|---|
| config.json | what holds for all trials |
| tune.json | what is searched and how; a search is only continued with the same |
| journal.log | Optuna's storage: all trials, their values and states |
| spent.json | seconds of the budget that are spent |
| trials/N/seed_S/ | the runs of trial N |
| best.json | the configuration of the best trial, for `shoal train --config` |
| report.html | everything above to look at |
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from shoal.errors import ConfigError, RunError
from shoal.experiments.tuning.space import Parameter, nested
from shoal.options import Values
from shoal.training.files import explained, read_json, replace_file
from shoal.training.settings import config_from, config_values, differences, merge
from shoal.training.trust import CONFIG, read_config, write_config

TUNE = "tune.json"
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True)
class Search:
    """What is searched."""

    config: Values
    """Of every trial, where it is not searched; as config.json has it."""
    parameters: tuple[Parameter, ...]
    seeds: int = 3
    """Runs of a promising trial."""
    run_seconds: float | None = None
    """Training time of a run: scores are then compared at equal time, else at equal steps."""
    sampler_seed: int = 0

    def as_values(self) -> Values:
        return json.loads(json.dumps(asdict(self)))

    def config_with(self, values: Values) -> Values:
        """The configuration with these values of what is searched, by dotted name; checked."""
        merged = {**merge(self.config, nested(values)), "world": self.config["world"]}
        return config_values(config_from(merged))


def create_search(runs_dir: str | Path, search: Search, name: str | None = None) -> Path:
    """Make the folder of a new search, or find the one of that name, which must be of the same search."""
    config = search.config
    stem = f"tune__{config['world']}__{config['algo']['name']}__{time.strftime('%Y%m%d-%H%M%S')}"
    path = Path(runs_dir) / (name or re.sub(r"[^\w.-]+", "-", stem))
    if (path / TUNE).exists():
        saved = {**read_json(path / TUNE), "config": read_json(path / CONFIG)}
        for field, old, new in differences(_by_name(saved), _by_name(search.as_values())):
            raise ConfigError(
                f"{path} is a search with {field}={old!r}, not {new!r}. Continue it with --resume {path} alone, or "
                "choose another --run-name."
            )
        return path
    with explained(f"{path} could not be made", "Choose another --runs-dir."):
        path.mkdir(parents=True)
        write_config(path, search.config)
        replace_file(path / TUNE, json.dumps(_without_config(search), indent=1) + "\n")
    return path


def open_search(path: str | Path, trust: bool = False) -> Search:
    """The search in a folder; one that names code to import must be this user's own, or be trusted."""
    path = Path(path)
    if not (path / TUNE).is_file():
        raise RunError(f"{str(path)!r} is not a search: it has no {TUNE}.")
    values = read_json(path / TUNE)
    parameters = [Parameter(**{**each, "choices": tuple(each["choices"])}) for each in values.pop("parameters")]
    return Search(read_config(path, trust), tuple(parameters), **values)


def read_duration(text: str, name: str) -> float:
    """Seconds in 90s, 30m, 2h or a plain number of seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", text.strip())
    if match is None or float(match[1]) <= 0:
        raise ConfigError(f"{name}={text} is not a duration. Write e.g. 90s, 30m or 2h.")
    return float(match[1]) * UNITS[match[2] or "s"]


def _without_config(search: Search) -> Values:
    return {name: value for name, value in search.as_values().items() if name != "config"}


def _by_name(values: Values) -> Values:
    """`values` with parameters as a table, so that a difference has a name."""
    return {**values, "parameters": {each["name"].replace(".", " "): each for each in values["parameters"]}}
