"""How a proof looks in the replay player: the goals, what they could become, and how likely the policy finds each."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from shoal.options import Values
from shoal.vector.batch import Batch, Tree
from shoal.vector.rendering import Renderer
from shoal.worlds.kg.lanes.env import KGBatch

if TYPE_CHECKING:
    from shoal.agents.ppo import PPO

SHOWN = 6  # successors per frame, the likeliest first


def frames_of_agent(batch: Batch, obs: Tree, agent: PPO) -> list[Values]:
    """Frames with the probability that `agent` gives to each successor."""
    import torch

    with torch.no_grad():
        logits = agent.network({key: torch.as_tensor(value) for key, value in obs.items()}, None)[0]
        present = torch.as_tensor(obs["derived_sub_indices"][..., 0, 0] > 0)
        probability = torch.softmax(logits.masked_fill(~present, -torch.inf), -1)
    return frames(batch, obs, probability.numpy())


def frames(batch: Batch, obs: Tree, probability: np.ndarray | None = None) -> list[Values]:
    """Frames of all lanes; without probabilities [B, S] the successors are in their order."""
    assert isinstance(batch, KGBatch)
    vocabulary, lanes = batch.data.kb.vocabulary, batch.lanes
    shown = []
    for lane in range(batch.num_envs):
        rows = obs["derived_sub_indices"][lane]
        count = int((rows[:, 0, 0] > 0).sum())
        weight = np.zeros(count) if probability is None else probability[lane, :count]
        best = np.argsort(-weight, kind="stable")[:SHOWN]
        shown.append(
            {
                "query": vocabulary.atom(lanes.query[lane]),
                "label": int(lanes.label[lane]),
                "goals": [vocabulary.atom(goal) for goal in obs["sub_index"][lane, 0] if goal[0]],
                "options": [[int(i), vocabulary.state(rows[i]), round(float(weight[i]), 3)] for i in best],
                "count": count,
            }
        )
    return shown


_SCRIPT = files(__package__).joinpath("rendering.js").read_text()
PROOFS = Renderer("kg", _SCRIPT, frames=frames, frames_of_agent=frames_of_agent, fps=1.0)
