"""`shoal bench search`: how soon the strategies of `shoal cage2 search` come to the best order, over repeated searches.

Every rule that compliance can tell apart is trained several times, from scratch: that is the truth. A repeated search
then draws, whenever it picks an order, one of the trainings of its rule. So picks and truth are trained alike, and
repeating costs nothing.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from shoal.bench.machine import commit, machine, versions
from shoal.errors import ConfigError
from shoal.options import Values
from shoal.training.lab import Verb

if TYPE_CHECKING:
    from shoal.worlds.cage2.lab.search.config import SearchConfig
    from shoal.worlds.cage2.lab.search.search import Row

STRATEGIES: tuple[Literal["gp-ucb", "simple-ucb", "random"], ...] = ("gp-ucb", "simple-ucb", "random")
Outcomes = list[list["Row"]]
"""[rules][trainings]: what came of every training of every rule."""


@dataclass(frozen=True)
class SearchArgs:
    """Compare the strategies of the search over workflows with all orders, over repeated searches."""

    folder: Path = Path("runs/search-truth")
    """Where the trainings are kept, one exhaustive search for each; those that are there are used."""
    trainings: int = 4
    """How often every rule is trained."""
    repeats: int = 20
    """Searches by each strategy."""
    picks: tuple[int, ...] = (2, 4, 6, 8)
    """After how many picks regret is looked at."""
    red: str = "bline"
    """The attacker."""
    compliance_threshold: float = 0.9
    """An order is learned when it complies this often."""
    max_episodes: int = 2000
    """Episodes after which a training ends anyway."""
    out: Path | None = None
    """Write the rows here as JSON."""


def run(args: SearchArgs) -> int:
    """The command."""
    from shoal.worlds.cage2.lab.search.config import SearchConfig

    if min(args.trainings, args.repeats - 1, *args.picks) < 1:
        raise ConfigError("trainings and picks must be at least 1, and repeats at least 2 for an interval.")
    common = SearchConfig(
        inherit="none",
        red=args.red,
        compliance_threshold=args.compliance_threshold,
        max_episodes=args.max_episodes,
        eval_episodes=100,
    )
    cpu = time.process_time()
    outcomes = train_all(common, args.folder, args.trainings)
    trained = time.process_time() - cpu
    followed, best, worst = describe_truth(common, outcomes)
    print(f"{len(outcomes)} rules, {args.trainings} trainings each: {followed}. Best {best:.1f}, worst {worst:.1f}.")
    rows = [measure(common, outcomes, strategy, args.repeats, args.picks) for strategy in STRATEGIES]
    for row in rows:
        print(describe(row))
    searched = time.process_time() - cpu - trained
    print(f"{trained / 60:.1f} CPU minutes of training now, {searched / 60:.1f} of searching.")
    if args.out is not None:
        document = {"rows": rows, "machine": machine(), "versions": versions(), "commit": commit()}
        args.out.write_text(json.dumps(document, indent=1) + "\n")
    return 0


def train_all(common: SearchConfig, folder: Path, trainings: int) -> Outcomes:
    """The rows of `trainings` exhaustive searches, by rule."""
    from shoal.worlds.cage2.lab.search.display import SearchDisplay
    from shoal.worlds.cage2.lab.search.search import WorkflowSearch

    with SearchDisplay() as display:
        searches = []
        for seed in range(trainings):
            config = replace(common, strategy="exhaustive", seed=seed)
            searches.append(WorkflowSearch(config, folder / str(seed)).run(display.say, display.progress))
    return [list(rows) for rows in zip(*searches, strict=True)]


def values_of(config: SearchConfig, outcomes: Outcomes) -> list[float]:
    """[rules] mean return of the trainings that were followed; NaN for a rule that never was."""
    from shoal.worlds.cage2.lab.search.search import was_followed

    followed = ([row["value"] for row in rows if was_followed(row, config)] for rows in outcomes)
    return [float(np.mean(values)) if values else math.nan for values in followed]


def describe_truth(config: SearchConfig, outcomes: Outcomes) -> tuple[str, float, float]:
    """(how many rules were followed, the best mean return, the worst)."""
    values = values_of(config, outcomes)
    if np.isnan(values).all():
        raise ConfigError("No rule was followed in any training. Raise --max-episodes or lower --compliance-threshold.")
    count = int(np.isfinite(values).sum())
    return f"{count} were followed at least once", float(np.nanmax(values)), float(np.nanmin(values))


def measure(
    common: SearchConfig, outcomes: Outcomes, strategy: Literal["gp-ucb", "simple-ucb", "random"],
    repeats: int, picks: Sequence[int],
) -> Values:  # fmt: skip
    """A row: mean regret of a strategy after some picks, with 95 % intervals over the repeats."""
    config = replace(common, strategy=strategy)
    searches = np.array([search_once(config, outcomes, repeat, max(picks)) for repeat in range(repeats)])
    regrets = searches[:, np.array(picks) - 1]
    half = 1.96 * regrets.std(0, ddof=1) / math.sqrt(repeats)
    return {
        "suite": "search",
        "work": f"cage2 {config.red}, {config.compliance} compliance",
        "name": strategy,
        "repeats": repeats,
        "picks": list(picks),
        "regret": regrets.mean(0).tolist(),
        "half_width": half.tolist(),
    }


def search_once(config: SearchConfig, outcomes: Outcomes, repeat: int, picks: int) -> list[float]:
    """[picks] regret of one search: what the best order that it has followed misses of the best there is.

    While it has followed none, that is the whole span from the worst to the best.
    """
    from shoal.worlds.cage2.lab.search.search import was_followed
    from shoal.worlds.cage2.lab.search.strategies import Tried, choose, same_rule

    values = values_of(config, outcomes)
    best, so_far = np.nanmax(values), np.nanmin(values)
    rng = np.random.default_rng([repeat, 1])
    tried: list[Tried] = []
    regret = []
    for pick in range(picks):
        (choice,) = choose(config, tried, 1, np.random.default_rng([repeat, 0, pick]))
        rule = next(k for k, rows in enumerate(outcomes) if same_rule(config, choice.order, tuple(rows[0]["order"])))
        row = outcomes[rule][int(rng.integers(len(outcomes[rule])))]
        tried.append(Tried(choice.order, row["value"], row["reached"]))
        if was_followed(row, config):
            so_far = max(so_far, values[rule])
        regret.append(float(best - so_far))
    return regret


def describe(row: Values) -> str:
    """One row in a line."""
    parts = zip(row["picks"], row["regret"], row["half_width"], strict=True)
    return f"{row['name']:<11}" + "  ".join(f"{k} picks {mean:5.1f} ± {half:4.1f}" for k, mean, half in parts)


SUITE = Verb(SearchArgs, run)
