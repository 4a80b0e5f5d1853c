"""Free-running CAGE2 episodes compared with the statistics of the original's, cell by cell."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np

from shoal import make
from shoal.worlds.cage2.lanes.names import HOSTS, NUM_HOSTS
from tests.parity.cage2_policies import make_policy

STEPS = 100
LENGTHS = (30, 50, 100)


def check_distribution(folder: Path, episodes: int) -> list[dict]:
    """One entry per cell (variant, red, policy): what was compared and what failed."""
    stats = _load(folder / "stats.json")
    large = _load(folder / "large_sample.json")
    returns = large.get("returns", {})
    cells = []
    for name in sorted({*stats, *returns}):
        variant, red, policy = name.removesuffix("_green").split("_", 2)
        if make_policy(policy, 0) is None:
            continue
        ours = play(variant, red, policy, name.endswith("_green"), episodes, both_tables=name in stats)
        failed = _compare_returns(ours, returns[name], large["episodes"]) if name in returns else []
        if name in stats:
            failed += _compare_stats(ours, stats[name], returns.get(name, stats[name]["returns"]))
        means = {str(length): round(float(ours["returns"][length].mean()), 3) for length in LENGTHS}
        cells.append({"cell": name, "episodes": episodes, "mean_return": means, "failed": failed})
    return cells


def _load(path: Path) -> dict:
    return json.loads(path.read_text()) if path.exists() else {}


def play(variant: str, red: str, policy_name: str, green: bool, episodes: int, both_tables: bool) -> dict:
    """Statistics of `episodes` kernel episodes. The two tables show the same episodes, so one policy drives both."""
    tables = ("seed", "cage") if both_tables else ("seed",)
    options = {"variant": variant, "red": red, "green": green, "length": STEPS + 1, "copy": False}
    batches = {table: make("cage2", episodes, table=table, **options) for table in tables}
    policy = make_policy(policy_name, seed=5)
    seen = {table: batch.reset(seed=11)[0] for table, batch in batches.items()}
    info: dict = batches["seed"].reset(seed=11)[1]
    total = np.zeros(episodes)
    first = np.full((episodes, NUM_HOSTS), -1)
    bits = {table: np.zeros((episodes, 52), np.float32) for table in tables}
    returns = {}
    for t in range(STEPS):
        action = policy(seen["seed"], info)
        for table, batch in batches.items():
            seen[table], reward, _, _, info_of_table = batch.step(action)
            bits[table] += seen[table]
            if table == "seed":
                total += np.round(reward * 10)
                info = info_of_table
        held = info["held"][:, None] >> np.arange(NUM_HOSTS) & 1 == 1
        first[held & (first < 0)] = t
        if t + 1 in LENGTHS:
            returns[t + 1] = total / 10
    return {"returns": returns, "first": first, "bits": {table: values / STEPS for table, values in bits.items()}}


def _compare_returns(ours: dict, theirs: dict, their_episodes: int) -> list[str]:
    """Against a large sample: means within 4 combined standard errors, variances within 10 %.

    Some returns have rare disasters (kurtosis above 50), whose sample variance is itself uncertain by more than that;
    a variance fails only if it is also off by more than 4 of its own standard errors.
    """
    failed = []
    for length in LENGTHS:
        sample, reference = ours["returns"][length], theirs[str(length)]
        error = math.sqrt(sample.var() / len(sample) + reference["var"] / their_episodes)
        if abs(sample.mean() - reference["mean"]) > 4 * error + 1e-9:
            failed.append(f"mean at {length}: {sample.mean():.3f}, recorded {reference['mean']:.3f} ± {error:.3f}")
        ratio = sample.var() / max(reference["var"], 1e-9)
        if reference["var"] >= 1 and abs(ratio - 1) > max(0.1, 4 * _variance_error(sample, their_episodes)):
            failed.append(f"variance at {length}: {sample.var():.3f}, recorded {reference['var']:.3f}")
    return failed


def _variance_error(sample: np.ndarray, their_episodes: int) -> float:
    """Relative standard error of the ratio of two sample variances, from the fourth moment."""
    centred = sample - sample.mean()
    kurtosis = (centred**4).mean() / max(centred.var() ** 2, 1e-9)
    return math.sqrt((kurtosis - 1) * (1 / len(sample) + 1 / their_episodes))


def _compare_stats(ours: dict, stats: dict, spread: dict) -> list[str]:
    """Against some hundred recorded episodes: returns, first footholds, observation bits."""
    n = stats["episodes"]
    failed = []
    for length in LENGTHS:
        sample, reference = ours["returns"][length], stats["returns"][str(length)]
        error = math.sqrt(spread[str(length)]["var"] / n + sample.var() / len(sample))
        if abs(sample.mean() - reference["mean"]) > 4 * error + 1e-9:
            failed.append(f"recorded mean at {length}: {sample.mean():.3f} against {reference['mean']:.3f}")
    for h, host in enumerate(HOSTS):
        failed += _compare_first(ours["first"][:, h], stats["host"][host], n, host)
    for table, values in ours["bits"].items():
        error = np.sqrt(values.var(0) * (1 / n + 1 / len(values)))
        off = np.abs(values.mean(0) - stats[f"obs_{table}_bit_mean"])
        # within 0.01, where so few recorded episodes can tell that much
        failed += [f"bit {k} of table {table} off by {off[k]:.4f}" for k in np.flatnonzero(off > 0.01 + 4 * error)]
    return failed


def _compare_first(first: np.ndarray, recorded: dict, n: int, host: str) -> list[str]:
    """Mean step of the first foothold on a host, over the episodes that had one: within 5 standard errors."""
    reached = first[first >= 0]
    mean = recorded["mean_first_session_step"]
    if mean is None or len(reached) < 2:
        return []
    count = max(1.0, n * recorded["frac_episodes_any_session"])
    error = math.sqrt(reached.var() * (1 / count + 1 / len(reached)))
    if abs(reached.mean() - mean) > 5 * error + 1e-3:
        return [f"first foothold on {host}: step {reached.mean():.2f}, recorded {mean:.2f} ± {error:.2f}"]
    return []
