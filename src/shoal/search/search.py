"""`WorkflowSearch`: choose orders, train them, write down what happened; a folder that can be resumed.

| file | what it holds |
|---|---|
| config.json | the settings; a folder is only resumed with the same |
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
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from shoal.errors import ConfigError
from shoal.search.config import SearchConfig
from shoal.search.strategies import Choice, Tried, candidates, choose, same_rule
from shoal.search.trial import Outcome, Trial, Weights, load_weights, run_trial, score_orders, untrained_agent
from shoal.worlds.cage2.workflow import WORKFLOWS, Workflow, kendall, workflow_index, workflow_name

Row = dict[str, Any]


class WorkflowSearch:
    """A search in a folder. `run()` begins it or goes on with it."""

    def __init__(self, config: SearchConfig | None = None, folder: str | Path | None = None, **settings: Any) -> None:
        """`WorkflowSearch(red="meander", workflows=10)`, or with a `SearchConfig`; an existing folder is resumed."""
        self.config = replace(config or SearchConfig(), **settings)
        self.folder = Path(folder) if folder is not None else Path("runs") / f"search__{time.strftime('%Y%m%d-%H%M%S')}"
        self.rows: list[Row] = self._open()

    @property
    def num_picks(self) -> int:
        """Orders that the search trains in all."""
        most = len(candidates(self.config))
        return most if self.config.strategy == "exhaustive" else self.config.workflows

    def run(self, say: Callable[[str], None] = lambda line: None) -> list[Row]:
        """Train until the budget is spent; returns the rows of picks.jsonl. `say` gets a line per pick."""
        while len(self.rows) < self.num_picks:
            rounds = 1 + max((row["round"] for row in self.rows), default=-1)
            count = min(self.config.at_once, self.num_picks - len(self.rows))
            rng = np.random.default_rng([self.config.seed, rounds])
            choices = choose(self.config, self._tried(), count, rng)
            source, weights = self._inherited([choice.order for choice in choices])
            trial = run_trial(self.config, [c.order for c in choices], weights, int(rng.integers(2**31)))
            self._keep(rounds, choices, source, trial)
            for row in self.rows[-count:]:
                say(describe_row(row, self.num_picks))
        return self.rows

    def rank_all(self) -> list[Row]:
        """Score the network of the last round under all orders, trained or not, best first; writes ranking.json."""
        if not self.rows:
            raise ConfigError(f"{self.folder} has no trained network yet. Run the search first.")
        agent = untrained_agent(self.config, WORKFLOWS)
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
        saved = json.loads(path.read_text())
        for name, value in asdict(self.config).items():
            if saved.get(name) != value and name != "workflows":  # a longer search goes on with a shorter one
                raise ConfigError(
                    f"{self.folder} is a search with {name}={saved.get(name)!r}, not {value!r}. "
                    "Give the same settings to go on with it, or another --folder."
                )
        return read_picks(self.folder)

    def _keep(self, rounds: int, choices: list[Choice], source: int | None, trial: Trial) -> None:
        """The network first, the rows last: a round counts once its rows are written."""
        from safetensors.numpy import save_file

        save_file(trial.weights, self.folder / "networks" / f"{rounds}.safetensors")
        (self.folder / "curves" / f"{rounds}.json").write_text(json.dumps(trial.curve))
        tried = self._tried()
        for choice, outcome in zip(choices, trial.outcomes, strict=True):
            self.rows.append(self._row(rounds, choice, source, tried, outcome))
        text = "".join(json.dumps(row) + "\n" for row in self.rows)
        temporary = self.folder / "picks.jsonl.tmp"
        temporary.write_text(text)
        temporary.replace(self.folder / "picks.jsonl")

    def _row(self, rounds: int, choice: Choice, source: int | None, tried: list[Tried], outcome: Outcome) -> Row:
        distances = [kendall(choice.order, t.order) for t in tried]
        nearest = int(np.argmin(distances)) if distances else None
        best = max([t.value for t in tried] + [outcome.value])
        expected = {name: _number(getattr(choice, name)) for name in ("mean", "std", "ucb")}
        return {
            "pick": len(self.rows),
            "round": rounds,
            "workflow": workflow_index(choice.order),
            "name": workflow_name(choice.order),
            **expected,
            "visits": sum(t.order == choice.order for t in tried),
            "nearest": None if nearest is None else workflow_name(tried[nearest].order),
            "nearest_distance": None if nearest is None else distances[nearest],
            "inherited_from": source,
            **asdict(outcome),
            "order": list(choice.order),
            "best_so_far": best,
        }

    def _load_weights(self, rounds: int) -> Weights:
        from safetensors.numpy import load_file

        return load_file(self.folder / "networks" / f"{rounds}.safetensors")


def read_picks(folder: Path) -> list[Row]:
    """The rows of a search's picks.jsonl, none if it has no pick yet."""
    path = folder / "picks.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def describe_row(row: Row, of: int) -> str:
    """One pick in a line."""
    outcome = "followed" if row["reached"] else "not learned"
    return (
        f"{row['pick'] + 1}/{of}  {row['name']:<52} return {row['value']:8.2f}  compliance {row['compliance']:.2f} "
        f"({outcome} after {row['episodes']:,} episodes, {row['seconds']:.0f} s)  best {row['best_so_far']:.2f}"
    )


def _number(value: float) -> float | None:
    """JSON has no NaN."""
    return value if math.isfinite(value) else None
