"""Hooks of training: how many queries of which kind are proved, and which depths are asked when."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.errors import ConfigError
from shoal.worlds.kg.dataset import UNKNOWN
from shoal.worlds.kg.vocabulary import Vocabulary


class ProofStatistics:
    """Recorder and callback: shares of true and of corrupted queries that were proved in an iteration."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._ended: list[np.ndarray] = []  # [k, 4] of (label, success, annotated depth, predicate)

    def after_step(self, t: int, rollout: Any, info: dict[str, Any]) -> None:
        """Note the episodes that ended in this step."""
        if "final_info" in info:
            done, final = info["_final_info"], info["final_info"]
            columns = (final["label"], final["success"], final["query_depth"], final["query"][:, 0])
            self._ended.append(np.stack([column[done] for column in columns], 1))

    def after_iteration(self, loop: Any) -> dict[str, float]:
        """Shares by label, and for true queries by annotated depth and by predicate."""
        if not self._ended:
            return {}
        label, success, depth, predicate = np.concatenate(self._ended).T
        self._ended = []
        true = label == 1
        found = {"proofs/true": _share(success, true), "proofs/corrupted": _share(success, ~true)}
        for value in np.unique(depth[true]):
            if value != UNKNOWN:
                found[f"proofs/depth_{value}"] = _share(success, true & (depth == value))
        for value in np.unique(predicate[true]):
            found[f"proofs/{self._vocabulary.predicates[value]}"] = _share(success, true & (predicate == value))
        return {name: share for name, share in found.items() if share == share}


def _share(success: np.ndarray, which: np.ndarray) -> float:
    return float(success[which].mean()) if which.any() else float("nan")


class DepthCurriculum:
    """Asks shallow queries first: one phase per greatest depth, then one for everything, all equally long."""

    def __init__(self, batch: Any, depths: list[int], total_steps: int) -> None:
        annotated = np.unique(batch.source.depth[batch.source.depth > 0])
        if not len(annotated) or min(depths) < annotated[0]:
            raise ConfigError(
                f"curriculum={depths} leaves a phase without queries: annotated depths are {annotated.tolist()}."
            )
        self._batch, self._depths, self._total, self._phase = batch, depths, total_steps, -1

    def advance(self, loop: Any) -> str | None:
        """Begin the phase that is due."""
        phase = min(len(self._depths), loop.step * (len(self._depths) + 1) // self._total)
        if phase == self._phase:
            return None
        self._begin(phase)
        return "all depths" if phase == len(self._depths) else f"depth up to {self._depths[phase]}"

    def _begin(self, phase: int) -> None:
        self._phase = phase
        if phase == len(self._depths):
            self._batch.set_depth_weights(None)
        else:
            self._batch.set_depth_weights(dict.fromkeys(range(1, self._depths[phase] + 1), 1.0))

    def state_dict(self) -> dict[str, Any]:
        """The phase, so that a resumed run draws the same queries."""
        import torch

        return {"phase": torch.tensor(self._phase)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go back to a saved phase."""
        if int(state["phase"]) >= 0:
            self._begin(int(state["phase"]))
