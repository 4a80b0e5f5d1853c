"""`WorkflowSearch`: choose orders, train them, write down what happened; a folder that can be resumed.

| file | what it holds |
|---|---|
| config.json | the settings; a folder is only continued with the same |
| picks.jsonl | one row per pick: what was expected of the order, and what came of it |
| curves/ROUND.json | compliance, return and alignment of every update of a round |
| networks/ROUND.safetensors | the network that a round ended with |
| ranking.json | all orders scored with the last network, if that was asked for |
| report.html | the picture of it all |

The random numbers of a round follow from (seed, round) and the rows before it, so a search that was stopped goes on as
if it had not been.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from shoal.errors import ConfigError, RunError, naming
from shoal.options import fit
from shoal.reading import is_number, parse_json
from shoal.training.files import read_json, read_table, replace_file
from shoal.worlds.cage2.lab.search.config import SearchConfig
from shoal.worlds.cage2.lab.search.strategies import Choice, Tried, candidates, choose, same_rule
from shoal.worlds.cage2.lab.search.trial import (
    Curve,
    Outcome,
    Trial,
    Weights,
    load_weights,
    run_trial,
    score_orders,
    untrained_agent,
)
from shoal.worlds.cage2.lanes.workflow import WORKFLOWS, Workflow, kendall, workflow_index, workflow_name

Row = dict[str, Any]
_NUMBERS = ("value", "low", "high", "compliance", "seconds")
_COLUMNS: dict[str, object] = {
    **dict.fromkeys(("pick", "round", "workflow", "visits", "episodes"), int),
    **dict.fromkeys(_NUMBERS, float),
    **dict.fromkeys(("mean", "std", "ucb", "nearest_distance", "best_so_far"), float | None),
    **{"name": str, "nearest": str | None, "reached": bool, "reason": str, "order": list[int]},
}
"""What the columns of picks.jsonl hold that are read again."""


class Progress(NamedTuple):
    """How far the training of a pick has come."""

    pick: str  # "3/20", or "3-6/20" where several train at once
    name: str
    episodes: int  # of each order
    compliance: float  # of the episodes of this update, and so is the return
    env_return: float

    def __str__(self) -> str:
        reached = f"compliance {self.compliance:.2f}  return {self.env_return:.2f}"
        return f"{self.pick}  {self.name}  {self.episodes:,} episodes  {reached}"


class WorkflowSearch:
    """A search in a folder. `run()` begins it or goes on with it."""

    def __init__(self, config: SearchConfig | None = None, folder: str | Path | None = None, **settings: Any) -> None:
        """`WorkflowSearch(red="meander", workflows=10)`, or with a `SearchConfig`; an existing folder is continued."""
        self.config = replace(config or SearchConfig(), **settings)
        self.folder = Path(folder) if folder is not None else Path("runs") / f"search__{time.strftime('%Y%m%d-%H%M%S')}"
        self.rows: list[Row] = self._open()

    @property
    def num_picks(self) -> int:
        """Orders that the search trains in all."""
        return len(candidates(self.config)) if self.config.strategy == "exhaustive" else self.config.workflows

    @property
    def best(self) -> Row | None:
        """The row of the order with the highest return among those that were followed; None if none was."""
        return best_of(self.rows, self.config)

    def run(
        self,
        say: Callable[[str], None] = lambda line: None,
        progress: Callable[[Progress], None] = lambda progress: None,
    ) -> list[Row]:
        """Train until the budget is spent; returns the rows of picks.jsonl.

        `say` gets a line per pick, `progress` is told after every update of the picks that are trained.
        """
        while len(self.rows) < self.num_picks:
            rounds = 1 + max((row["round"] for row in self.rows), default=-1)
            count = min(self.config.at_once, self.num_picks - len(self.rows))
            rng = np.random.default_rng([self.config.seed, rounds])
            choices = choose(self.config, self._tried(), count, rng)
            source, weights = self._inherited([choice.order for choice in choices])
            orders = [choice.order for choice in choices]
            curve = Curve(partial(self._progress, orders, progress))
            with naming("" if source is None else str(self._network(source))):
                trial = run_trial(self.config, orders, weights, int(rng.integers(2**31)), curve)
            self._keep(rounds, choices, source, trial)
            for row in self.rows[-count:]:
                say(describe_row(row, self))
        return self.rows

    def rank_all(self) -> list[Row]:
        """Score the network of the last round under all orders, trained or not, best first; writes ranking.json."""
        if not self.rows:
            raise ConfigError(f"{self.folder} has no trained network yet. Run the search first.")
        agent = untrained_agent(self.config, WORKFLOWS)
        with naming(str(self._network(self.rows[-1]["round"]))):
            load_weights(agent, self._load_weights(self.rows[-1]["round"]))
        tried = [tuple(row["order"]) for row in self.rows]
        scores = score_orders(self.config, agent, WORKFLOWS)
        ranking: list[Row] = []
        for order in sorted(WORKFLOWS, key=lambda order: scores[order]["value"], reverse=True):
            about = {"workflow": workflow_index(order), "name": workflow_name(order), "trained": order in tried}
            ranking.append({**about, **scores[order]})
        (self.folder / "ranking.json").write_text(json.dumps(ranking, indent=1) + "\n")
        return ranking

    # ------------------------------------------------------------------ what is known

    def _progress(self, orders: list[Workflow], tell: Callable[[Progress], None], row: Mapping[str, float]) -> None:
        """Pass on what the update that ended in `row` has come to."""
        first, last = len(self.rows) + 1, len(self.rows) + len(orders)
        picks = f"{first}/{self.num_picks}" if first == last else f"{first}-{last}/{self.num_picks}"
        episodes = int(row["step"]) // self.config.length // len(orders)
        tell(Progress(picks, ", ".join(map(workflow_name, orders)), episodes, row["compliance"], row["env_return"]))

    def _tried(self) -> list[Tried]:
        return [Tried(tuple(row["order"]), row["value"], row["reached"]) for row in self.rows]

    def _inherited(self, orders: list[Workflow]) -> tuple[int | None, Weights | None]:
        """The round whose network a trial begins from, and its weights. The first order of several decides."""
        how, order = self.config.inherit, orders[0]
        rows = self.rows
        if how == "same":
            rows = [row for row in rows if same_rule(self.config, order, tuple(row["order"]))]
        if how == "none" or not rows:
            return None, None
        if how == "nearest":
            rows = sorted(rows, key=lambda row: -kendall(order, tuple(row["order"])))  # stable: the latest of them last
        return rows[-1]["round"], self._load_weights(rows[-1]["round"])

    # ------------------------------------------------------------------ files

    def _open(self) -> list[Row]:
        path = self.folder / "config.json"
        if not path.exists():
            for name in ("networks", "curves"):
                (self.folder / name).mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(asdict(self.config), indent=2) + "\n")
            return []
        saved = read_table(path)
        for name, value in asdict(self.config).items():
            if saved.get(name) != value and name != "workflows":  # a longer search goes on with a shorter one
                raise ConfigError(
                    f"{self.folder} is a search with {name}={saved.get(name)!r}, not {value!r}. "
                    "Give the same settings to continue it, or another --folder."
                )
        return read_picks(self.folder)

    def _keep(self, rounds: int, choices: list[Choice], source: int | None, trial: Trial) -> None:
        """The network first, the rows last: a round counts once its rows are written."""
        from safetensors.numpy import save_file

        save_file(trial.weights, self._network(rounds))
        (self.folder / "curves" / f"{rounds}.json").write_text(json.dumps(trial.curve))
        tried = self._tried()
        for choice, outcome in zip(choices, trial.outcomes, strict=True):
            self.rows.append(self._row(rounds, choice, source, tried, outcome))
        replace_file(self.folder / "picks.jsonl", "".join(json.dumps(row) + "\n" for row in self.rows))

    def _row(self, rounds: int, choice: Choice, source: int | None, tried: list[Tried], outcome: Outcome) -> Row:
        distances = [kendall(choice.order, t.order) for t in tried]
        nearest = int(np.argmin(distances)) if distances else None
        expected = {name: getattr(choice, name) for name in ("mean", "std", "ucb")}
        row = {
            "pick": len(self.rows),
            "round": rounds,
            "workflow": workflow_index(choice.order),
            "name": workflow_name(choice.order),
            **{name: value if math.isfinite(value) else None for name, value in expected.items()},  # JSON has no NaN
            "visits": sum(t.order == choice.order for t in tried),
            "nearest": None if nearest is None else workflow_name(tried[nearest].order),
            "nearest_distance": None if nearest is None else distances[nearest],
            "inherited_from": source,
            **asdict(outcome),
            "order": list(choice.order),
        }
        best = best_of([*self.rows, row], self.config)
        return {**row, "best_so_far": None if best is None else best["value"]}

    def _network(self, rounds: int) -> Path:
        return self.folder / "networks" / f"{rounds}.safetensors"

    def _load_weights(self, rounds: int) -> Weights:
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        path = self._network(rounds)
        try:
            return load_file(path)
        except (OSError, SafetensorError, LookupError, ValueError) as error:
            raise RunError(f"{path} cannot be read: {error}.") from error


def read_picks(folder: Path) -> list[Row]:
    """The rows of a search's picks.jsonl, none if it has no pick yet; a `RunError` names the line that is wrong."""
    path = folder / "picks.jsonl"
    lines = path.read_text(errors="replace").splitlines() if path.exists() else []
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            row = parse_json(line)
            rows.append({**row, **{name: fit(row[name], hint, name) for name, hint in _COLUMNS.items()}})
        except (ConfigError, ValueError, TypeError, KeyError) as error:
            what = f"{error} is missing" if isinstance(error, KeyError) else str(error).removesuffix(".")
            raise RunError(f"{path}, line {number}: {what}.") from None
        if tuple(row["order"]) not in WORKFLOWS or not all(is_number(row[name]) for name in _NUMBERS):
            raise RunError(
                f"{path}, line {number}: {', '.join(_NUMBERS)} must be numbers, order one of {len(WORKFLOWS)}."
            )
    return rows


def read_list(path: Path, numbers: tuple[str, ...]) -> list[Row]:
    """The tables in a JSON file, each of which has these numbers: a curve, or a ranking."""
    rows = read_json(path)
    for i, row in enumerate(rows if isinstance(rows, list) else [None]):
        if not isinstance(row, dict) or not all(is_number(row.get(name)) for name in numbers):
            raise RunError(f"{path}, entry {i}: {', '.join(numbers)} must be numbers.")
    return rows


def was_followed(row: Row, config: SearchConfig) -> bool:
    """Whether the order was learned, and the episodes that score it followed it too.

    The likeliest actions, which are scored, can comply far less than the draws of training.
    """
    return bool(row["reached"] and row["compliance"] >= config.compliance_threshold)


def best_of(rows: Sequence[Row], config: SearchConfig) -> Row | None:
    """The row with the highest return among the orders that were followed; None if none was."""
    return max((row for row in rows if was_followed(row, config)), key=lambda row: row["value"], default=None)


def outcome_of(row: Row, config: SearchConfig) -> str:
    """What came of a pick, in two words."""
    return "followed" if was_followed(row, config) else "not followed" if row["reached"] else "not learned"


def describe_row(row: Row, search: WorkflowSearch) -> str:
    """One pick in a line."""
    best = "none was followed yet" if row["best_so_far"] is None else f"best {row['best_so_far']:.2f}"
    return (
        f"{row['pick'] + 1}/{search.num_picks}  {row['name']:<52} return {row['value']:8.2f}  compliance "
        f"{row['compliance']:.2f} ({outcome_of(row, search.config)} after {row['episodes']:,} episodes, "
        f"{row['seconds']:.0f} s)  {best}"
    )
