"""Hooks of training: how many queries of which kind are proved, and which depths are asked when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from shoal.agents.rollout import Rollout
from shoal.errors import ConfigError
from shoal.training.hooks import Reads
from shoal.training.loop import Loop
from shoal.worlds.kg.lanes.data.dataset import UNKNOWN
from shoal.worlds.kg.lanes.data.vocabulary import Vocabulary
from shoal.worlds.kg.lanes.env import KGBatch


class ProofStatistics:
    """Recorder and callback: shares of true and of corrupted queries that were proved in an iteration."""

    reads = Reads(final=("label", "success", "query_depth", "query"))

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._ended: list[np.ndarray] = []  # [k, 4] of (label, success, annotated depth, predicate)

    def after_step(self, t: int, rollout: Rollout, info: dict[str, Any]) -> None:
        """Note the episodes that ended in this step."""
        if "final_info" in info:
            done, final = info["_final_info"], info["final_info"]
            columns = (final["label"], final["success"], final["query_depth"], final["query"][:, 0])
            self._ended.append(np.stack([column[done] for column in columns], 1))

    def after_iteration(self, loop: Loop) -> dict[str, float]:
        """Shares by label, and for true queries by annotated depth and by predicate."""
        if not self._ended:
            return {}
        label, success, depth, predicate = np.concatenate(self._ended).T
        self._ended = []
        true = label == 1
        shares = {"proofs/true": _share(success, true), "proofs/corrupted": _share(success, ~true)}
        for value in np.unique(depth[true]):
            if value != UNKNOWN:
                shares[f"proofs/depth_{value}"] = _share(success, true & (depth == value))
        for value in np.unique(predicate[true]):
            shares[f"proofs/{self._vocabulary.predicates[value]}"] = _share(success, true & (predicate == value))
        return {name: share for name, share in shares.items() if share == share}


def _share(success: np.ndarray, which: np.ndarray) -> float:
    return float(success[which].mean()) if which.any() else float("nan")


class DepthCurriculum:
    """Asks shallow queries first: one phase per greatest depth, then one for everything, all equally long."""

    def __init__(self, batch: KGBatch, depths: Sequence[int], total_steps: int) -> None:
        annotated = np.unique(batch.source.depth[batch.source.depth > 0])
        if not len(annotated) or min(depths) < annotated[0]:
            raise ConfigError(
                f"curriculum={list(depths)} leaves a phase without queries: annotated depths are {annotated.tolist()}."
            )
        self._batch, self._depths, self._total, self._phase = batch, depths, total_steps, -1

    def advance(self, loop: Loop) -> str | None:
        """Begin the phase that is due."""
        phase = min(len(self._depths), loop.step * (len(self._depths) + 1) // self._total)
        if phase == self._phase:
            return None
        self._begin(phase)
        return "all depths" if phase == len(self._depths) else f"depth up to {self._depths[phase]}"

    def _begin(self, phase: int) -> None:
        self._phase, last = phase, phase == len(self._depths)
        self._batch.set_depth_weights(None if last else dict.fromkeys(range(1, self._depths[phase] + 1), 1.0))

    def state_dict(self) -> dict[str, Tensor]:
        """The phase, so that a resumed run draws the same queries."""
        return {"phase": torch.tensor(self._phase)}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Go back to a saved phase."""
        if int(state["phase"]) >= 0:
            self._begin(int(state["phase"]))
