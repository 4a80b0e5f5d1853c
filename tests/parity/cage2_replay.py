"""Recorded episodes of CAGE2 replayed through the compiled kernel, all episodes of a file as one batch."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from shoal import make
from shoal.vector.kernel import KernelBatch
from shoal.worlds.cage2.lanes.batch import give
from shoal.worlds.cage2.lanes.names import NUM_HOSTS, REMOVE, SUCCESS

NOBODY = NUM_HOSTS  # for green: scan no host


def replay_file(path: Path) -> dict:
    """Replay one file: sizes, and mismatching values per compared quantity (all zero if it is the same world)."""
    with np.load(path) as stored:
        trace = {name: stored[name] for name in stored.files}
    variant, red = path.stem.split("_")[1:3]
    episodes, steps = trace["blue_action"].shape
    wrong: dict[str, int] = {}
    for table in ("seed", "cage"):
        _replay(trace, _make(trace, variant, "given", table), f"obs_{table}", wrong, "")
    _replay(trace, _make(trace, variant, red, "seed"), "obs_seed", wrong, "agent ")
    return {"episodes": episodes, "steps": episodes * steps, "mismatches": wrong}


def _make(trace: dict, variant: str, red: str, table: str) -> KernelBatch:
    episodes, steps = trace["blue_action"].shape
    green = bool((trace["green_target"] >= 0).any())
    return make("cage2", episodes, variant=variant, red=red, table=table, green=green, length=steps + 1, num_threads=1)


def _replay(trace: dict, batch: KernelBatch, obs_name: str, wrong: dict[str, int], prefix: str) -> None:
    """Step through the episodes, adding mismatches to `wrong`. `prefix` "agent " compares red's memory as well."""
    batch.reset(seed=0)
    for t in range(trace["blue_action"].shape[1]):
        now = {name: values[:, t] for name, values in trace.items() if values.ndim > 1}
        give(
            batch,
            kind=now["red_type"].astype(np.int64),
            target=now["red_target"],
            exploit=now["red_exploit"],
            noticed=now["red_detected"],
            pick=now["red_pick"],
            green=np.where(now["green_target"] >= 0, now["green_target"], NOBODY),
        )
        obs, reward, *_ = batch.step(now["blue_action"].astype(np.int64))
        pairs = {**_seen(obs, reward, now, obs_name), **_hidden(batch.lane_state, now)}
        if prefix:
            pairs |= _memory(batch.lane_state, now)
        for name, (ours, theirs) in pairs.items():
            wrong[prefix + name] = wrong.get(prefix + name, 0) + int((ours != theirs).sum())


def _seen(obs: np.ndarray, reward: np.ndarray, now: dict, obs_name: str) -> dict:
    """What Blue sees: (ours, recorded) by name."""
    return {
        obs_name: (obs, np.unpackbits(now[obs_name], axis=-1)[:, :52]),
        "reward": (reward, (now["reward10"] / 10).astype(np.float32)),
    }


def _hidden(s: np.ndarray, now: dict) -> dict:
    """The true state and the draws made: (ours, recorded) by name."""
    footholds = np.stack([s["ssh"], s["noticed"], s["unnoticed"], s["root"]], axis=-1)
    decoys = s["decoys"][:, :, None] >> np.arange(8) & 1
    service = s["ot_up"] | s["ot_immune"].astype(np.uint8) << 1 | s["ot_known"].astype(np.uint8) << 2
    held = (now["sess"].any(2) << np.arange(NUM_HOSTS)).sum(1)
    owned = ((now["sess"][:, :, 3] > 0) << np.arange(NUM_HOSTS)).sum(1)
    return {
        "red_type": (s["red_kind"], now["red_type"]),
        "red_target": (s["red_target"], now["red_target"]),
        "red_exploit": (s["red_exploit"], now["red_exploit"]),
        "red_detected": (s["red_noticed"], now["red_detected"]),
        "red_pick": (s["red_pick"], now["red_pick"]),
        "red_success": (s["red_success"], now["red_success"]),
        "blue_success": (s["blue_success"], np.where(_is_remove(now), SUCCESS, now["blue_success"])),
        "footholds": (footholds, now["sess"]),
        "held": (s["held"], held),
        "owned": (s["owned"], owned),
        "malware": (s["malware"], now["malware"]),
        "decoys": (decoys, now["decoys"] > 0),
        "hasmem": (s["has_ports"], now["hasmem"]),
        "portmem": (s["ports_seen"], now["portmem"]),
        "known_ip": (s["known_ip"], now["known_ip"]),
        "known_host": (s["known_host"], now["known_host"]),
        "known_subnets": (s["known_subnets"], now["known_sub"]),
        "ot": (service, now["ot"]),
    }


def _is_remove(now: dict) -> np.ndarray:
    """Where Blue removes: in `debugged` the recorded flag follows process numbers, an accepted difference."""
    return (now["blue_action"] >= REMOVE) & (now["blue_action"] < REMOVE + NUM_HOSTS)


def _memory(s: np.ndarray, now: dict) -> dict:
    """What the red agent remembers right after choosing: (ours, recorded) by name."""
    if "bline_state" in now:
        return {"stage": (s["stage"], now["bline_state"])}
    if "me_scanned" not in now:
        return {}
    fields = {"me_subnets": "nets_scanned", "me_scanned": "scanned", "me_exploited": "exploited"}
    fields |= {"me_escalated": "escalated", "me_mapped": "mapped"}
    return {theirs: (s[ours], now[theirs]) for theirs, ours in fields.items()}
