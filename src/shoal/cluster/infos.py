"""Infos of lanes on runners: kept where the lanes are, then joined for the recorders as one process would see them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from shoal.agents.rollout import Ended, Rollout
from shoal.agents.share import Share
from shoal.training.hooks import Reads
from shoal.trees import Tree, assign_tree, copy_tree, index_tree, map_tree
from shoal.vector.batch import Info

OF_ENDS = ("episode", "final_info", "final_obs")
"""Infos of lanes whose episode ended; the last one is in the rollout anyway."""


class Kept(NamedTuple):
    """What is kept of one step of a runner's lanes, b of them, of which k ended an episode."""

    step: Info  # [b, ...] each
    ends: dict[str, tuple[np.ndarray, Tree]]  # by name: lanes [k] and what they have, [k, ...]


class InfoKeeper:
    """A recorder beside the lanes: keeps copies of the infos that the recorders of the run read."""

    def __init__(self, reads: Reads | None) -> None:
        """None keeps everything."""
        self.reads, self.kept = reads, list[Kept]()

    def after_step(self, t: int, rollout: Rollout, info: Info) -> None:
        """Row `t` of `rollout` is complete."""
        step = {name: copy_tree(value) for name, value in info.items() if self._is_read(name)}
        self.kept.append(Kept(step, {name: self._ends(name, info) for name in OF_ENDS[:2] if name in info}))

    def _is_read(self, name: str) -> bool:
        plain = name.removeprefix("_")
        if plain in OF_ENDS or name == "action_mask":
            return False
        return self.reads is None or plain in self.reads.step or name in self.reads.step

    def _ends(self, name: str, info: Info) -> tuple[np.ndarray, Tree]:
        values = info[name]
        if name == "final_info" and self.reads is not None:
            values = {key: value for key, value in values.items() if key.removeprefix("_") in self.reads.final}
        lanes = np.flatnonzero(info[f"_{name}"])
        return lanes, index_tree(values, lanes)


def joined(kept: Sequence[Kept], shares: Sequence[Share], rollout: Rollout, t: int, ended: Ended | None) -> Info:
    """The infos of step `t` of all lanes, from those of every runner; `ended` are the rows of lanes that ended."""
    total = rollout.num_envs
    info: Info = {}
    for name in dict.fromkeys(name for part in kept for name in part.step):
        parts = [(share.lanes, part.step[name]) for share, part in zip(shares, kept, strict=True) if name in part.step]
        info[name] = _dense(parts, total)
    for name in OF_ENDS[:2]:
        ends = [(share, part.ends[name]) for share, part in zip(shares, kept, strict=True) if name in part.ends]
        if ends:
            rows = [(share.first + lanes, values) for share, (lanes, values) in ends]
            info |= {name: _dense(rows, total), f"_{name}": _mask([lanes for lanes, _ in rows], total)}
    if ended is not None:
        assign_tree(rollout.final_obs, ended.lanes, ended.obs)
        info |= {"final_obs": rollout.final_obs, "_final_obs": _mask([ended.lanes], total)}
    return info if rollout.action_mask is None else {**info, "action_mask": rollout.action_mask[t + 1]}


def _dense(rows: Sequence[tuple[slice | np.ndarray, Tree]], total: int) -> Tree:
    """Arrays [total, ...] with these rows in their places and zeros elsewhere."""
    first = rows[0][1]
    dense = map_tree(lambda leaf: np.zeros((total, *leaf.shape[1:]), leaf.dtype), first)
    for place, values in rows:
        assign_tree(dense, place, values)
    return dense


def _mask(lanes: Sequence[np.ndarray], total: int) -> np.ndarray:
    mask = np.zeros(total, np.bool_)
    mask[np.concatenate(lanes)] = True
    return mask
