"""Whether a run learns nothing, and what can be done about it.

An agent that never meets a goal sees no difference between what it does and what it leaves: every episode runs into its
time limit, with one and the same return. Then no update is wrong, and none helps. Nor can it learn where no episode
ends, or where its observations do not show what its rewards depend on: then its last episodes are like its first.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, pvariance

from shoal.options import Values
from shoal.training.files import read_table
from shoal.training.metrics import read_evaluations

MONITOR = "monitor.csv"
EPISODES, FEWEST = 100, 20
"""Looked at from the beginning and from the end; with fewer in all, nothing is said."""
SAME = 0.95
"""Share of them that must have the same return and length."""
ROW_BYTES = 64
EXPLORE = {
    "ppo": "more exploration (--algo.entropy 0.03)",
    "sac": "a longer warm-up of random actions (--algo.warmup)",
    "dddqn": "more exploration (--algo.explore)",
}
BEYOND_CHANCE = 2.0
"""Standard errors by which the last episodes must be better than the first to be called so."""
LONG = 100
"""Steps of each lane after which an episode may be expected to have ended."""
Episode = tuple[str, str]
"""Return and length, as written."""


def standstill(run: Path, step: int) -> str | None:
    """A sentence for a run that has learned nothing by this step; None for any other, as far as its episodes tell."""
    if not (run / MONITOR).is_file():
        return None
    first, last = _ends(run / MONITOR)
    config = read_table(run / "config.json")
    lane_steps, total_steps = step // max(1, _whole(config, "num_envs")), _whole(config, "total_steps")
    if not first and lane_steps >= LONG:
        return (
            f"No episode has ended in the {lane_steps:,} steps that each lane has made, so there is no return to go "
            "by. Give the environment a time limit (`truncated`), rewards on the way, or train longer (--total-steps)."
        )
    if len(first) < FEWEST:
        return None
    sentence = _all_alike(first, last, config)
    changes = config.get("init") or config.get("phases") or config.get("extra") or config.get("shape")
    if sentence is not None or changes or not 0 < total_steps <= step:  # what is met may change, or pays otherwise
        return sentence
    return _no_better(first, last, config) or _likeliest_worse(run, last, config)


def _all_alike(first: Sequence[Episode], last: Sequence[Episode], config: Values) -> str | None:
    """For a run whose first and last episodes are all the same."""
    (usual, count), *_ = Counter(first).most_common(1)
    again = last.count(usual)
    if count < SAME * len(first) or again < SAME * len(last):
        return None
    value, length = float(usual[0]), int(usual[1])
    steps = "1 step" if length == 1 else f"{length:,} steps"
    return (
        f"Nothing is being learned: {count} of the first {len(first)} episodes and {again} of the last {len(last)} "
        f"returned {value:g} after {steps}, whatever the agent did. Unless that is the best there is, it never meets "
        "what makes a difference, e.g. a goal before the time limit. Try a later limit, an easier start, rewards on "
        f"the way, {_exploration(config)}."
    )


def _no_better(first: Sequence[Episode], last: Sequence[Episode], config: Values) -> str | None:
    """For a run that ends as it began."""
    half = len(first) // 2  # of fewer than two hundred episodes, the first and the last hundred share some
    if half < FEWEST:
        return None
    before, after = ([float(value) for value, _ in episodes] for episodes in (first[:half], last[-half:]))
    chance = BEYOND_CHANCE * math.sqrt(pvariance(before) / len(before) + pvariance(after) / len(after))
    gained = fmean(after) - fmean(before)
    if gained > chance:
        return None
    how = "worse than its beginning" if gained < -chance else "no better than its beginning"
    return (
        f"The end of the run is {how}: the last {half} episodes returned {fmean(after):.3g} on average, the first "
        f"{half} returned {fmean(before):.3g}. Unless that is the best there is, see that observations show what "
        "the reward depends on (PPO remembers with --algo.memory gru), that actions change it, and that it comes soon "
        f"enough (--algo.gamma 0.999 looks further ahead than 0.99); or try {_exploration(config)}, or a longer run."
    )


def _likeliest_worse(run: Path, last: Sequence[Episode], config: Values) -> str | None:
    """For a run that has learned to draw its actions well, but not to take the likeliest ones."""
    evaluations = read_evaluations(run)
    if not evaluations or _algo(config) != "ppo":
        return None
    drawn = [float(value) for value, _ in last]
    mean, chance = fmean(drawn), BEYOND_CHANCE * math.sqrt(pvariance(drawn) / len(drawn))
    found = evaluations[-1]
    if found["high"] >= mean - chance:
        return None
    evaluated = f"{found['mean']:.3g} [{found['low']:.3g}, {found['high']:.3g}]"
    return (
        f"The likeliest actions do worse (evaluation, {evaluated}) than drawn ones ({mean:.3g} in the last {len(last)} "
        "episodes): they may lead in circles. Draw them (`shoal eval` and `play` with --no-deterministic), or train "
        "longer, exploring less at the end (--algo.entropy-final 0)."
    )


def _whole(config: Values, name: str) -> int:
    """A setting of a run that may be damaged; 0 if it is."""
    value = config.get(name)
    return value if isinstance(value, int) else 0


def _algo(config: Values) -> str:
    algo = config.get("algo")
    return str(algo.get("name", "")) if isinstance(algo, dict) else ""


def _exploration(config: Values) -> str:
    return EXPLORE.get(_algo(config), "more exploration")


def _ends(path: Path) -> tuple[list[Episode], list[Episode]]:
    """The first and the last episodes in a monitor file, without reading what lies between."""
    with path.open("rb") as file:
        head = file.read(ROW_BYTES * (EPISODES + 2))
        file.seek(max(0, os.fstat(file.fileno()).st_size - ROW_BYTES * EPISODES))
        tail = file.read()
    return _episodes(head)[:EPISODES], _episodes(tail)[-EPISODES:]


def _episodes(part: bytes) -> list[Episode]:
    """Episodes in the whole lines of a part of the file; its first line may be cut, and so may the last.

    A line that is no episode counts as none: a report is worth more than a sentence about a damaged line.
    """
    rows = (line.split(",") for line in part.decode(errors="replace").split("\n")[1:-1])
    return [(row[0], row[1]) for row in rows if len(row) == 3 and _is_episode(row[0], row[1])]


def _is_episode(value: str, length: str) -> bool:
    try:
        return math.isfinite(float(value)) and int(length) > 0
    except ValueError:
        return False
