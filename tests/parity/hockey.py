"""Hockey against recordings of the original: every transition from its recorded state, and whole episodes open loop.

State-like arrays of a recording have N + E rows for N transitions in E episodes: transition i of episode e goes from
row i + e to row i + e + 1. `tests/worlds/hockey/lanes/recordings` holds a small sample.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from shoal.worlds.hockey.lanes.batch import HockeyBatch
from shoal.worlds.hockey.lanes.bots import STRONG_GAIN, WEAK_GAIN, bot_action
from shoal.worlds.hockey.lanes.constants import DT, MASS, PUCK
from shoal.worlds.hockey.lanes.kernel import HockeyTwoSeats, inform_both, observe_seat

BARS = {"free": 1e-4, "contact_within": 1e-3, "contact_share": 0.995, "contact_worst": 0.1, "obs": 1e-6, "bots": 1e-5}
TOGETHER = 0.05  # an open-loop episode stays together if no component ever differs by more
COMPARED = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16]  # not the puck's angle and spin
INFO_NAMES = ("winner", "reward_closeness_to_puck", "reward_touch_puck", "reward_puck_direction")
RACKETS, PUCK_FIXTURE = (10, 11), 12
SENSORS = (6, 8)


def main(argv: list[str]) -> int:
    """Compare all recordings in a folder, print JSON, return 0 if every bar is met."""
    if len(argv) != 1 or not Path(argv[0]).is_dir():
        print("usage: python -m tests.parity hockey DIR, where DIR holds recordings (*.npz)", file=sys.stderr)
        return 2
    paths = sorted(Path(argv[0]).glob("*.npz"))
    if not paths:
        print(f"There are no recordings (*.npz) in {argv[0]}.", file=sys.stderr)
        return 2
    results = {path.stem: compare(dict(np.load(path))) for path in paths}
    report = summarise(results)
    stats = Path(argv[0]) / "stats.json"
    if stats.exists():
        from tests.parity.hockey_stats import compare_distributions

        report["distributions"] = compare_distributions(json.loads(stats.read_text()))
        report["passed"] = report["passed"] and report["distributions"]["passed"]
    print(json.dumps(report, indent=2))
    return 0 if report["passed"] else 1


def compare(d: dict[str, np.ndarray], compiled: bool = True) -> dict[str, Any]:
    """All comparisons of one file; arrays are per transition."""
    episode = np.repeat(np.arange(len(d["ep_length"])), d["ep_length"])
    before = np.arange(len(episode)) + episode
    touching, contact = touches(d)
    batch = make_batch(len(before), bool(d["keep_mode"]), compiled)
    load(batch, d, before, episode, touching)
    _, _, terminated, truncated, _ = batch.step(actions(d, slice(None)))
    s, after = batch.lane_state, before + 1
    error = np.abs(as_recorded(s) - d["state"][after])[:, COMPARED].max(axis=1)
    counts = d["istate"][after]
    return {
        "error": error,
        "contact": contact[after],
        "mismatches": {
            "counters": int((s["held"] != counts[:, :2]).any(axis=1).sum()),
            "step_counter": int((s["t"] != counts[:, 2]).sum()),
            "done": int(((terminated | truncated) != d["done"]).sum() + (s["done"] != (counts[:, 3] != 0)).sum()),
            "winner": int((s["winner"] != counts[:, 4]).sum()),
        },
        **recompute(d, after, episode, touching),
        "bots": bot_errors(d, before, episode, touching),
        "open_loop": open_loop(d, touching, compiled),
    }


def make_batch(num_envs: int, keep: bool, compiled: bool = False) -> HockeyBatch:
    """Lanes with the original's rules, both seats given from outside."""
    kernel = HockeyTwoSeats(keep_mode=keep, extra_step=True, timeout_terminates=True)
    batch = HockeyBatch(kernel, num_envs, autoreset_mode="disabled", num_threads=1, compiled=compiled)
    batch.reset(seed=0)
    return batch


def actions(d: dict[str, np.ndarray], rows: Any) -> np.ndarray:
    """Recorded actions [N, 2, 4 or 3], clipped as the original does."""
    given = np.clip(d["action"][rows], -1.0, 1.0).astype(np.float32)
    return np.ascontiguousarray(given.reshape(len(given), 2, -1))


def touches(d: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Per state row: does each racket touch the puck [N+E, 2], and does anything solid touch [N+E]."""
    rows = len(d["con_n"])
    row = np.repeat(np.arange(rows), d["con_n"])
    pair = np.sort(d["con_fix"], axis=1)
    on = d["con_flag"][:, 0] != 0
    touching = np.zeros((rows, 2), np.int8)
    for k, racket in enumerate(RACKETS):
        touching[row[on & (pair[:, 0] == racket) & (pair[:, 1] == PUCK_FIXTURE)], k] = 1
    contact = np.zeros(rows, np.bool_)
    contact[row[on & ~np.isin(pair, SENSORS).any(axis=1)]] = True
    return touching, contact


def first_rackets(d: dict[str, np.ndarray]) -> np.ndarray:
    """Per episode: which racket the original's engine numbers first in their contact, 0 or 1."""
    row = np.repeat(np.arange(len(d["con_n"])), d["con_n"])
    episode_of_row = np.repeat(np.arange(len(d["ep_length"])), d["ep_length"] + 1)
    first = np.zeros(len(d["ep_length"]), np.int8)
    first[episode_of_row[row[(d["con_fix"] == RACKETS[::-1]).all(axis=1)]]] = 1
    return first


def load(batch: HockeyBatch, d: dict, rows: np.ndarray, episode: np.ndarray, touching: np.ndarray) -> None:
    """Put the recorded state rows into the lanes."""
    state, counts = d["state"][rows].astype(np.float64), d["istate"][rows]
    zero = np.zeros(len(rows))
    columns = {"cx": (18, 20, 12), "cy": (19, 21, 13), "vx": (3, 9, 15), "vy": (4, 10, 16), "spin": (5, 11, 17)}
    fields = {name: np.stack([*state.T[list(at)], zero], axis=1) for name, at in columns.items()}
    fields["angle"] = np.stack([state[:, 2], state[:, 8], zero, zero], axis=1)
    first = rows == np.concatenate([[0], np.cumsum(d["ep_length"] + 1)[:-1]])[episode]
    kick = np.where(first[:, None], d["ep_puck_force"][episode], 0.0) * DT / MASS[PUCK]
    batch.set_lanes(
        **fields,
        held=counts[:, :2],
        t=counts[:, 2],
        done=counts[:, 3] != 0,
        winner=counts[:, 4],
        touching=touching[rows],
        first_racket=first_rackets(d)[episode],
        still=state[:, 22:25],
        mode=d["ep_mode"][episode],
        kick_x=kick[:, 0],
        kick_y=kick[:, 1],
    )


def as_recorded(s: np.ndarray) -> np.ndarray:
    """Lanes in the columns of a recorded state, [N, 25]."""
    out = np.zeros((len(s), 25))
    for k in range(3):
        for j, name in enumerate(("x", "y", "angle", "vx", "vy", "spin")):
            out[:, 6 * k + j] = s[name][:, k]
    return out


def recompute(d: dict, after: np.ndarray, episode: np.ndarray, touching: np.ndarray) -> dict[str, float]:
    """Largest errors of observations, infos and rewards, worked out from the recorded state after each transition."""
    batch = make_batch(len(after), bool(d["keep_mode"]))
    load(batch, d, after, episode, touching)
    lanes = batch.lane_state.view(np.recarray)
    info = np.zeros(len(after), batch.kernel.info).view(np.recarray)
    obs = np.zeros((2, *d["obs1"][after].shape))
    for i in range(len(after)):
        observe_seat(lanes[i], 0, obs[0, i])
        observe_seat(lanes[i], 1, obs[1, i])
        inform_both(lanes[i], info[i])
    mine = np.stack([info[name] for name in INFO_NAMES], axis=1)
    theirs = np.stack([info[f"opponent_{name}"] for name in INFO_NAMES], axis=1)
    return {
        "obs": max(worst(obs[0] - d["obs1"][after]), worst(obs[1] - d["obs2"][after])),
        "info": max(worst(mine - d["info1"]), worst(theirs - d["info2"])),
        "reward": worst(info["opponent_reward"] - d["reward2"]),
    }


def bot_errors(d: dict, before: np.ndarray, episode: np.ndarray, touching: np.ndarray) -> dict[str, Any]:
    """Largest error of the bots' actions, given their recorded phases."""
    if "phase" not in d:
        return {"count": 0, "max_error": 0.0}
    batch = make_batch(len(before), bool(d["keep_mode"]))
    load(batch, d, before, episode, touching)
    batch.lane_state["phase"] = np.nan_to_num(d["phase"])
    lanes, recorded = batch.lane_state.view(np.recarray), d["action"].reshape(len(before), 2, -1)
    gains = {"weak": WEAK_GAIN, "strong": STRONG_GAIN}
    errors = [0.0]
    for i, e in enumerate(episode):
        for k, who in enumerate(str(d["ep_kind"][e]).split("_")[:2]):
            if who in gains and np.isfinite(d["phase"][i, k]):
                action = bot_action(lanes[i], k, gains[who], bool(d["keep_mode"]))
                errors.append(worst(recorded[i, k] - action[: recorded.shape[2]]))
    return {"count": len(errors) - 1, "max_error": max(errors)}


def open_loop(d: dict[str, np.ndarray], touching: np.ndarray, compiled: bool) -> dict[str, int]:
    """Replay the recorded actions from the first state of each episode, all episodes side by side."""
    lengths = d["ep_length"]
    first_row = np.concatenate([[0], np.cumsum(lengths + 1)[:-1]])
    first_action = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    batch = make_batch(len(lengths), bool(d["keep_mode"]), compiled)
    load(batch, d, first_row, np.arange(len(lengths)), touching)
    error, winner = np.zeros(len(lengths)), np.zeros(len(lengths))
    for t in range(lengths.max()):
        going = t < lengths
        _, _, terminated, truncated, _ = batch.step(actions(d, np.where(going, first_action + t, first_action)))
        here = np.abs(as_recorded(batch.lane_state) - d["state"][first_row + np.minimum(t + 1, lengths)])
        error = np.where(going, np.maximum(error, here[:, COMPARED].max(axis=1)), error)
        winner = np.where(going, batch.lane_state["winner"], winner)
        go_on_after_the_end(batch, terminated | truncated)
    return {
        "episodes": len(lengths),
        "together": int((error <= TOGETHER).sum()),
        "winner_agrees": int((winner == d["istate"][first_row + lengths, 4]).sum()),
    }


def go_on_after_the_end(batch: HockeyBatch, ended: np.ndarray) -> None:
    """Some recordings step past the end, which a batch forbids: reset these lanes, then put their records back."""
    if ended.any():
        records = batch.lane_state.copy()
        batch.reset(options={"reset_mask": ended})
        batch.lane_state[:] = records


def worst(difference: np.ndarray) -> float:
    """The largest absolute value."""
    return float(np.abs(difference).max(initial=0.0))


def summarise(results: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Figures over all files, and whether they meet the bars."""
    files = list(results.values())
    error = np.concatenate([r["error"] for r in files])
    contact = np.concatenate([r["contact"] for r in files])
    free, touched = error[~contact], error[contact]
    within = touched <= BARS["contact_within"]
    report = {
        "world": "hockey",
        "transitions": len(error),
        "free": {"count": len(free), "max_error": worst(free)},
        "contact": {
            "count": len(touched),
            "share_within_1e-3": float(within.mean()) if len(touched) else 1.0,
            "beyond_1e-3": int((~within).sum()),
            "worst": worst(touched),
        },
        "mismatches": {key: sum(r["mismatches"][key] for r in files) for key in files[0]["mismatches"]},
        "errors": {key: max(r[key] for r in files) for key in ("obs", "info", "reward")},
        "bots": {
            "actions": sum(r["bots"]["count"] for r in files),
            "max_error": max(r["bots"]["max_error"] for r in files),
        },
        "open_loop": {key: sum(r["open_loop"][key] for r in files) for key in files[0]["open_loop"]},
        "files": {name: per_file(r) for name, r in results.items()},
    }
    report["passed"] = meets_bars(report)
    return report


def meets_bars(report: dict[str, Any]) -> bool:
    """Is every figure as good as it must be?"""
    return bool(
        report["free"]["max_error"] <= BARS["free"]
        and report["contact"]["share_within_1e-3"] >= BARS["contact_share"]
        and report["contact"]["worst"] <= BARS["contact_worst"]
        and not any(report["mismatches"].values())
        and max(report["errors"].values()) <= BARS["obs"]
        and report["bots"]["max_error"] <= BARS["bots"]
    )


def per_file(r: dict[str, Any]) -> dict[str, Any]:
    """One line of the report for a file."""
    return {
        "transitions": len(r["error"]),
        "free_max": worst(r["error"][~r["contact"]]),
        "contact_worst": worst(r["error"][r["contact"]]),
        "beyond_1e-3": int((r["error"] > BARS["contact_within"]).sum()),
        "open_loop": r["open_loop"],
    }
