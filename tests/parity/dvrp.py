"""Parity of world dvrp: `python -m tests.parity dvrp DIR [--oracles NAMES]`.

Regenerates city, pool and episodes bit for bit, replays acceptance, windows and rewards under a table oracle, checks
the routes of every oracle with the independent verifier, and prints gaps and offer-effect correlations. Takes any
folder laid out like the fixtures, whatever its city; files that are absent are left out.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from shoal.errors import ShoalError
from shoal.seeding import uniform_at
from shoal.worlds.dvrp.lab.gaps import Gap, offer_effect_correlation, prefix_gap, static_gap
from shoal.worlds.dvrp.lanes.city import City, synthetic_city
from shoal.worlds.dvrp.lanes.environment import DvrpBatch
from shoal.worlds.dvrp.lanes.fleet import Fleet
from shoal.worlds.dvrp.lanes.instances import Deltas, Instances
from shoal.worlds.dvrp.lanes.offers import ACTIONS
from shoal.worlds.dvrp.lanes.oracles import RoutingOracle, make_oracle
from shoal.worlds.dvrp.lanes.pool import Pool, draw_episode, synthetic_pool
from shoal.worlds.dvrp.lanes.scenario import Scenario
from shoal.worlds.dvrp.lanes.settings import Settings
from shoal.worlds.dvrp.lanes.solution import Solution, find_violations

ORACLES: dict[str, tuple[str, dict[str, Any]]] = {
    "insertion": ("insertion", {}),
    "ruin": ("ruin", {}),
    "ruin-60": ("ruin", {"iterations": 60}),
    "neural": ("neural", {}),
    "neural-16": ("neural", {"decoding": "best_of_k", "samples": 16}),
    "pyvrp": ("pyvrp", {}),
}
DEFAULT = "insertion,ruin,ruin-60,neural,neural-16"
PENALTY_PER_MINUTE = Settings().patience


def main(argv: list[str]) -> int:
    """Run every check for which DIR has a file; 0 if all agree."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity dvrp")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--oracles", default=DEFAULT, help=f"which of {', '.join(ORACLES)}, or none")
    arguments = parser.parse_args(argv)
    folder: Path = arguments.folder
    if not (folder / "city.json").exists():
        print(json.dumps({"ok": False, "error": f"{folder} has no city.json, so there is nothing to compare with."}))
        return 2
    world = Recorded(folder)
    report: dict[str, Any] = {"city": check_city(world), "pool": check_pool(world), "episodes": {}, "oracles": {}}
    for path in sorted([*folder.glob("static_n*.npz"), *folder.glob("dynamic_n*.npz")]):
        report["episodes"][path.stem] = check_episodes(world, dict(np.load(path)))
    for name in [] if arguments.oracles == "none" else arguments.oracles.split(","):
        report["oracles"][name] = check_oracle(world, *ORACLES[name])
    report["ok"] = not _mismatches(report)
    print(json.dumps(report, indent=1))
    return 0 if report["ok"] else 1


class Recorded:
    """The recorded city with its parameters, and the means to regenerate it and its neighbours."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.json = json.loads((folder / "city.json").read_text())
        pool = folder / "pool.npz"
        self.pool = dict(np.load(pool)) if pool.exists() else None
        self.travellers, self.trips = (30, 40) if self.pool is None else self.pool["origin"].shape
        penalty = self.json.get("vehicle_penalty_m", 100_000) / 1000
        self.fleet = Fleet(self.json.get("capacity", 4), penalty, size=self.json.get("fleet", 5))

    def city(self, seed: int) -> City:
        """The city of a seed, of the recorded size, around the recorded depot."""
        city = synthetic_city(seed, self.json["H"], self.json["spacing_km"])
        return replace(city, depot=self.json.get("depot_cell", 0))

    def scenario(self, city_seed: int, pool_seed: int, customers: int = 0) -> Scenario:
        """City and pool as recorded, the pool enlarged if an episode needs more travellers."""
        city = self.city(city_seed)
        pool = synthetic_pool(city, pool_seed, max(self.travellers, customers), self.trips)
        return Scenario(city, pool, self.fleet)

    def recorded_scenario(self) -> Scenario:
        """The scenario whose city is in city.json."""
        return self.scenario(self.json["seed"], self.pool_seed())

    def pool_seed(self) -> int:
        """The pool seed that the request sets name; the file of the pool does not say it."""
        for path in sorted(self.folder.glob("*_n*.npz")):
            return int(np.load(path)["pool_seed"][0])
        return 11


# ---------------------------------------------------------------------- city, pool, episodes


def check_city(world: Recorded) -> dict[str, int]:
    """Numbers that differ."""
    city = world.city(world.json["seed"])
    draws = [uniform_at(seed, stream, k) != expected for seed, stream, k, expected in world.json.get("rng_check", [])]
    return {
        "random numbers": len(draws),
        "random number mismatches": int(np.sum(draws)),
        "distance mismatches": _differ(city.distance, world.json["distance_m"]),
        "duration mismatches": _differ(city.duration, world.json["duration_s"]),
        "coordinate mismatches": int((np.abs(city.coordinates() - world.json["xy_km"]) > 1e-6).sum()),
    }


def check_pool(world: Recorded) -> dict[str, int]:
    """Numbers that differ, by field."""
    if world.pool is None:
        return {}
    pool: Pool = world.recorded_scenario().pool
    return {f"{name} mismatches": _differ(getattr(pool, name), expected) for name, expected in world.pool.items()}


def check_episodes(world: Recorded, recorded: dict[str, np.ndarray]) -> dict[str, Any]:
    """Draw the episodes, make the recorded offers, and compare everything that a step produces."""
    totals: dict[str, Any] = {"episodes": len(recorded["cells"])}
    places = np.stack([recorded["city_seed"], recorded["pool_seed"]], 1)
    for city_seed, pool_seed in np.unique(places, axis=0):
        rows = (places == (city_seed, pool_seed)).all(1)
        part = {name: array[rows] for name, array in recorded.items()}
        scenario = world.scenario(int(city_seed), int(pool_seed), part["user"].shape[1])
        for name, count in {**_compare_draws(scenario, part), **_replay(scenario, part)}.items():
            totals[name] = totals.get(name, 0) + count
    return totals


def _compare_draws(scenario: Scenario, part: dict[str, np.ndarray]) -> dict[str, int]:
    episode = draw_episode(scenario.pool, part["episode_seed"], part["user"].shape[1])
    fields = ("user", "type", "purpose", "origin", "dest", "pickup_start", "dropoff_start", "limit")
    return {f"{name} mismatches": _differ(getattr(episode, name), part[name]) for name in fields}


def _replay(scenario: Scenario, part: dict[str, np.ndarray]) -> dict[str, int]:
    """Step the environment through the recorded actions under a table of the recorded costs."""
    lanes, customers = part["actions"].shape
    priced = part["cost_m"].ndim == 2  # static sets have only their final cost
    cost = part["cost_m"] if priced else np.zeros((lanes, customers), np.int64)
    vehicles = part["vehicles"] if priced else np.zeros_like(cost)
    settings = Settings(customers=customers, obs_mode="raw")
    oracle = TableOracle(scenario, cost / 1000, vehicles)
    env = DvrpBatch(lanes, scenario, oracle, settings, autoreset_mode="disabled")
    obs, _ = env.reset(options={"episode_seed": part["episode_seed"]})
    wrong = dict.fromkeys(("accepted", "reward", "window", "observation", "oracle call"), 0)
    before = np.zeros(lanes, np.int64)
    for t in range(customers):
        action = part["actions"][:, t].astype(np.int64)
        wrong["observation"] += _differ(obs[:, -1], _asked_row(part, t))
        obs, reward, terminated, _, info = env.step(action)
        wrong["accepted"] += _differ(info["accepted"], part["accepted"][:, t])
        minutes = np.abs(ACTIONS[action]).sum(1) * part["accepted"][:, t]
        expected = (before - cost[:, t]) / 1000 - PENALTY_PER_MINUTE * minutes
        wrong["reward"] += int((np.abs(reward - expected) > 1e-4).sum())
        wrong["window"] += _differ(env.state["tw"][:, 2 * t + 1 : 2 * t + 3], part["tw"][:, 2 * t + 1 : 2 * t + 3])
        wrong["observation"] += _differ(obs[:, t], _booked_row(part, t))
        before = cost[:, t]
    wrong["oracle call"] = abs(env.oracle.stats.calls - customers)
    wrong["window"] += _differ(env.state["cells"], part["cells"]) + int(not terminated.all())
    return {f"{name} mismatches": count for name, count in wrong.items()}


class TableOracle(RoutingOracle):
    """Answers row b with k requests by `cost[b, k-1]`, whatever the requests are. It has no routes to show."""

    name = "table"

    def __init__(self, scenario: Scenario, cost: np.ndarray, vehicles: np.ndarray) -> None:
        """Take cost [B, n] in km and vehicles [B, n]."""
        super().__init__(scenario.city, scenario.fleet)
        self._cost, self._vehicles = cost, vehicles

    def insert(self, plan, cells, tw, booked, group=1) -> Solution:
        assert len(booked) == len(self._cost)
        assert group == 1
        row, last = np.arange(len(booked)), booked.sum(1) - 1
        return Solution(self._cost[row, last], self._vehicles[row, last].astype(np.int64), np.zeros_like(plan))


def _asked_row(part: dict[str, np.ndarray], t: int) -> np.ndarray:
    p, q = part["pickup_start"][:, t], part["dropoff_start"][:, t]
    return np.stack([part["origin"][:, t], p, p + 30, part["dest"][:, t], q, q + 30], 1)


def _booked_row(part: dict[str, np.ndarray], t: int) -> np.ndarray:
    minutes, cells = part["tw"] // 60, part["cells"]
    nodes = [(cells[:, [node]], minutes[:, node]) for node in (2 * t + 1, 2 * t + 2)]
    return np.concatenate([column for pair in nodes for column in pair], 1)


# ---------------------------------------------------------------------- oracles


def check_oracle(world: Recorded, name: str, options: dict[str, Any]) -> dict[str, Any]:
    """Gaps by size, correlation of offer effects, violations of the verifier and costs below the proven bound."""
    scenario = world.recorded_scenario()
    try:
        oracle = make_oracle(name, scenario.city, scenario.fleet, **options)
    except ShoalError as error:
        return {"skipped": str(error)}
    report: dict[str, Any] = {}
    for path in sorted(world.folder.glob("static_n*.npz")):
        instances, _ = _instances(world, path)
        if instances is not None:
            report[path.stem] = _gap(static_gap(oracle, scenario, instances))
    for path in sorted(world.folder.glob("dynamic_n*.npz")):
        instances, _ = _instances(world, path)
        if instances is not None:
            report[path.stem] = _gap(prefix_gap(oracle, scenario, instances))
    if (world.folder / "delta.npz").exists():
        report["offer_effect_correlation"] = round(offer_effect_correlation(oracle, _deltas(world.folder)), 3)
    if (world.folder / "edge.jsonl").exists():
        report["edge"] = _edge_cases(world, scenario, name, options)
    return report


def _instances(world: Recorded, path: Path) -> tuple[Instances | None, np.ndarray]:
    """The sets of the city in city.json; the oracle knows no other."""
    data = np.load(path)
    rows = data["city_seed"] == world.json["seed"]
    if not rows.any():
        return None, rows
    return Instances(data["cells"][rows], data["tw"][rows], data["cost_m"][rows]), rows


def _gap(gap: Gap) -> dict[str, Any]:
    mismatches = {"violation mismatches": len(gap.violations)} if gap.violations else {}
    return {"gap_percent": round(gap.percent, 3), "per_cpu_second": round(gap.per_second), **mismatches}


def _deltas(folder: Path) -> Deltas:
    data = np.load(folder / "delta.npz")
    cells = np.where(data["cells"] < 0, 0, data["cells"])
    costs = data["cost_noop_m"], data["cost_offer_m"]
    return Deltas(data["k"].astype(np.int64), cells, data["tw_noop"], data["tw_offer"], *costs)


def _edge_cases(world: Recorded, scenario: Scenario, name: str, options: dict[str, Any]) -> dict[str, Any]:
    excess, wrong, below = [], 0, 0
    for line in (world.folder / "edge.jsonl").read_text().splitlines():
        case = json.loads(line)
        fleet = replace(scenario.fleet, size=case["fleet"], capacity=case["capacity"])
        cells, tw = np.array([case["cells"]]), np.array([case["tw"]])
        try:
            solution = make_oracle(name, scenario.city, fleet, **options).solve(cells, tw)
        except ShoalError as error:
            return {"skipped": str(error)}
        wrong += len(find_violations(solution, scenario.city, fleet, cells, tw))
        metres = solution.cost[0] * fleet.unit
        below += metres < case["lower_bound_m"] - 0.5
        excess.append(metres / case["cost_m"] - 1)
    return {
        "gap_percent": round(100 * float(np.mean(excess)), 3),
        "optimal": f"{int(np.sum(np.array(excess) < 1e-9))} of {len(excess)}",
        "violation mismatches": wrong,
        "below the bound mismatches": int(below),
    }


def _differ(ours: Any, recorded: Any) -> int:
    ours, recorded = np.asarray(ours), np.asarray(recorded)
    return int((ours != recorded).sum()) if ours.shape == recorded.shape else max(ours.size, recorded.size)


def _mismatches(report: Any) -> int:
    if not isinstance(report, dict):
        return 0
    return sum(value if key.endswith("mismatches") else _mismatches(value) for key, value in report.items())
