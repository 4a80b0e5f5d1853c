"""How a proof looks in the replay player: the goals, what they could become, and how likely the policy finds each."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import numpy as np

from shoal.vector.rendering import Renderer

SHOWN = 6  # successors per frame, the likeliest first


def frames(batch: Any, obs: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """Frames without a policy: successors in their order, no probabilities."""
    return _frames(batch, obs, None)


def frames_of_agent(batch: Any, obs: dict[str, np.ndarray], agent: Any) -> list[dict[str, Any]]:
    """Frames with the probability that `agent` gives to each successor."""
    import torch

    with torch.no_grad():
        logits = agent.network({key: torch.as_tensor(value) for key, value in obs.items()}, None)[0]
        present = torch.as_tensor(obs["derived_sub_indices"][..., 0, 0] > 0)
        probability = torch.softmax(logits.masked_fill(~present, -torch.inf), -1)
    return _frames(batch, obs, probability.numpy())


def _frames(batch: Any, obs: dict[str, np.ndarray], probability: np.ndarray | None) -> list[dict[str, Any]]:
    vocabulary, lanes = batch.data.kb.vocabulary, batch.lanes
    found = []
    for lane in range(batch.num_envs):
        rows = obs["derived_sub_indices"][lane]
        count = int((rows[:, 0, 0] > 0).sum())
        weight = np.zeros(count) if probability is None else probability[lane, :count]
        best = np.argsort(-weight, kind="stable")[:SHOWN]
        found.append(
            {
                "query": vocabulary.atom(lanes.query[lane]),
                "label": int(lanes.label[lane]),
                "goals": [vocabulary.atom(goal) for goal in obs["sub_index"][lane, 0] if goal[0]],
                "options": [[int(i), vocabulary.state(rows[i]), round(float(weight[i]), 3)] for i in best],
                "count": count,
            }
        )
    return found


PROOFS = Renderer(
    "kg",
    files(__package__).joinpath("rendering.js").read_text(),
    frames=frames,
    frames_of_agent=frames_of_agent,
    fps=1.0,
)
