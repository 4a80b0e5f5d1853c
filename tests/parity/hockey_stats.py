"""Hockey against the original's statistics: the same pairings played here, compared by two-sample tests."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import shoal
from shoal.worlds.hockey.lanes.kernel import IDLE, POLICY, STRONG, WEAK

EPISODES = 1024  # of each pairing here
IN_TURN = 8  # of them in one lane
LIMIT = 4.5  # standard errors; with some 700 comparisons one beyond 4.5 by chance has a probability below 1 %
SEATS = {"weak": WEAK, "strong": STRONG, "zero": IDLE}  # players that sit inside the kernel
MEANS = ("length", "return_p1", "return_p2", "closeness_p1", "closeness_p2", "touch_p1", "touch_p2", "direction_p1")
MEANS += ("max_puck_speed",)
SUMS = {
    "closeness_p1": "reward_closeness_to_puck",
    "closeness_p2": "opponent_reward_closeness_to_puck",
    "touch_p1": "reward_touch_puck",
    "touch_p2": "opponent_reward_touch_puck",
    "direction_p1": "reward_puck_direction",
    "return_p2": "opponent_reward",
}


def compare_distributions(stats: dict[str, Any]) -> dict[str, Any]:
    """Play every pairing, reset every mode: the largest distance in standard errors, and all beyond the limit."""
    distances: dict[str, float] = {}
    for seed, run in enumerate(stats["runs"]):
        distances |= {f"{run['name']} {key}": value for key, value in compare_run(run, seed).items()}
    distances |= compare_resets(stats["resets"])
    beyond = {name: round(value, 2) for name, value in distances.items() if not abs(value) <= LIMIT}
    return {
        "comparisons": len(distances),
        "largest_in_standard_errors": round(max(map(abs, distances.values())), 2),
        "beyond_4.5": beyond,
        "passed": not beyond,
    }


def compare_run(run: dict[str, Any], seed: int) -> dict[str, float]:
    """Distances in standard errors between a recorded pairing and ours."""
    ours = play(run, seed)
    n, m = run["episodes"], len(ours["length"])
    distances = {}
    for key, winner in (("p1_win", 1), ("draw", 0), ("p2_win", -1)):
        share = float((ours["winner"] == winner).mean())
        pooled = (share * m + run[key] * n) / (m + n)
        distances[key] = _ratio(share - run[key], math.sqrt(pooled * (1 - pooled) * (1 / m + 1 / n)))
    for key in MEANS:
        if key in run:
            spread = math.sqrt(ours[key].var() / m + run[key]["std"] ** 2 / n)
            distances[key] = _ratio(float(ours[key].mean()) - run[key]["mean"], spread)
    return distances


def _ratio(difference: float, spread: float) -> float:
    """Difference over spread; where nothing varies, any visible difference is too much."""
    if spread < 1e-9:
        return 0.0 if abs(difference) < 1e-4 else math.inf
    return difference / spread


def play(run: dict[str, Any], seed: int) -> dict[str, np.ndarray]:
    """One figure per episode, [EPISODES]. A lane plays several in turn, so that counters can be carried over."""
    lanes = EPISODES // IN_TURN
    env = shoal.make(
        "hockey",
        lanes,
        mode=run["mode"],
        keep_mode=run["keep_mode"],
        opponent="external",
        starter="alternate",
        carry_counters=run["carry"],
        extra_step=True,
        copy=False,
    )
    names, width = (run["player1"], run["player2"]), env.single_action_space.shape[1]
    env.set_lanes(seat=[SEATS.get(who, POLICY) for who in names])
    players = [Random(who, lanes, width, [seed, k]) for k, who in enumerate(names)]
    env.reset(seed=seed)
    total = {key: np.zeros(lanes) for key in (*SUMS, "return_p1", "max_puck_speed", "length")}
    left, rows = np.full(lanes, IN_TURN), []
    action = np.zeros((lanes, *env.single_action_space.shape), np.float32)
    while left.any():
        for k, player in enumerate(players):
            action[:, k] = player()
        obs, reward, terminated, truncated, info = env.step(action)
        done = terminated | truncated
        last = info["final_info"] if done.any() else info
        for key, name in SUMS.items():
            total[key] += np.where(done, last[name], info[name])
        total["return_p1"] += reward
        total["length"] += 1
        puck = (
            np.where(done[:, None], info["final_obs"][:, 0, 14:16], obs[:, 0, 14:16])
            if done.any()
            else obs[:, 0, 14:16]
        )
        total["max_puck_speed"] = np.maximum(total["max_puck_speed"], np.hypot(puck[:, 0], puck[:, 1]))
        for lane in np.flatnonzero(done & (left > 0)):
            rows.append({key: values[lane] for key, values in total.items()} | {"winner": last["winner"][lane]})
        left -= done & (left > 0)
        for values in total.values():
            values[done] = 0.0
    return {key: np.array([row[key] for row in rows], np.float64) for key in rows[0]}


class Random:
    """The players that are not bots: `uniform`, `sticky`, or zeros."""

    def __init__(self, kind: str, lanes: int, width: int, seed: list[int]) -> None:
        self.kind, self.rng = kind, np.random.default_rng(seed)
        self.action = np.zeros((lanes, width), np.float32)
        self.left = np.zeros(lanes, np.int64)

    def __call__(self) -> np.ndarray:
        """The next actions, [B, width]."""
        if self.kind == "uniform":
            self.action[:] = self.rng.uniform(-1.0, 1.0, self.action.shape)
        elif self.kind == "sticky":
            new = self.left == 0
            fresh = self.rng.uniform(-1.0, 1.0, (new.sum(), self.action.shape[1]))
            choice = self.rng.uniform(size=(new.sum(), 1))
            thinned = np.where(self.rng.uniform(size=fresh.shape) < 0.4, 0.0, fresh)
            self.action[new] = np.where(choice < 0.25, np.sign(fresh), np.where(choice < 0.5, thinned, fresh))
            self.left[new] = self.rng.integers(3, 25, new.sum())
            self.left -= 1
        return self.action


def compare_resets(resets: dict[str, Any]) -> dict[str, float]:
    """Quantiles of first observations: how many standard errors our share below each recorded quantile is off."""
    distances = {}
    for mode, recorded in resets.items():
        env = shoal.make("hockey", 8192, mode=mode, opponent="external", starter="alternate", copy=False)
        first = env.reset(seed=1)[0][:, 0].copy()
        second = env.reset()[0][:, 0].copy()
        obs, n = np.concatenate([first, second]), recorded["n"]
        for level, row in zip(recorded["quantile_levels"], recorded["obs_quantiles"], strict=True):
            for j, value in enumerate(row):
                if not 0.0 < level < 1.0 or obs[:, j].std() < 1e-6:
                    continue
                share = float((obs[:, j] <= value).mean())
                distances[f"{mode} reset obs[{j}] q{level}"] = (share - level) / math.sqrt(level * (1 - level) / n)
    return distances
