"""The learner's side: connectors that turn what the runners send into PPO's train batch, and learners with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.evaluation.postprocessing import Postprocessing

from shoal.bridges.rllib.connectors import to_tensors
from shoal.bridges.rllib.targets import Rows, Values, episode_rows, join, lane_rows, standardise
from shoal.bridges.rllib.trajectory import Trajectory, read_packed
from shoal.vector.spaces import index_tree

VALUE_ROWS = 2**18  # rows of one value pass, so that its activations stay small


class TrainBatch(ConnectorV2):
    """Base of the learner connectors: rows with targets -> shuffled tensors under PPO's names."""

    def __init__(
        self,
        input_observation_space: Any = None,
        input_action_space: Any = None,
        *,
        gamma: float,
        lambda_: float,
        same_step: bool = False,
        keep_skipped: bool = False,
    ):
        super().__init__(input_observation_space, input_action_space)
        self.gamma, self.lambda_, self.same_step, self.keep_skipped = gamma, lambda_, same_step, keep_skipped

    def rows(self, episodes: list[Any], values: Values) -> Rows:
        raise NotImplementedError

    def __call__(self, *, rl_module: Any, episodes: list[Any], **kwargs: Any) -> dict[str, Any]:
        # with several learners the module comes wrapped for the exchange of gradients, which has no value function
        module = rl_module[DEFAULT_MODULE_ID].unwrapped()
        device = next(module.parameters()).device
        rows = self.rows(episodes, lambda obs: value_pass(module, obs, device))
        columns = {
            Columns.OBS: rows.obs,
            Columns.ACTIONS: rows.action,
            Columns.ACTION_LOGP: rows.log_prob,
            Columns.ACTION_DIST_INPUTS: rows.dist_inputs,
            Postprocessing.ADVANTAGES: standardise(rows.advantage, rows.skip),
            Postprocessing.VALUE_TARGETS: rows.target,
        }
        if rows.skip is not None:
            columns[Columns.LOSS_MASK] = ~rows.skip
        # RLlib does not shuffle the first epoch, and rows in order would make a minibatch of one moment in time
        order = torch.randperm(len(rows.target), device=device)
        return {DEFAULT_MODULE_ID: index_tree(to_tensors(columns, device), order)}


class LanesToBatch(TrainBatch):
    """`packed_vec` and `columnar`: packed episodes or trajectories."""

    def rows(self, episodes: list[Any], values: Values) -> Rows:
        trajectories = (e if isinstance(e, Trajectory) else read_packed(e, self.same_step) for e in episodes)
        parts = [lane_rows(trajectory, values, self.gamma, self.lambda_) for trajectory in trajectories]
        return join(parts, self.keep_skipped)


class EpisodesToBatch(TrainBatch):
    """`vec`: RLlib's own episodes."""

    def rows(self, episodes: list[Any], values: Values) -> Rows:
        return episode_rows(episodes, values, self.gamma, self.lambda_)


@torch.no_grad()
def value_pass(module: Any, obs: Any, device: Any) -> np.ndarray:
    """Values [R] of observations [R, ...]."""
    size = len(next(iter(obs.values())) if isinstance(obs, dict) else obs)
    parts = []
    for start in range(0, size, VALUE_ROWS):
        part = to_tensors(index_tree(obs, slice(start, start + VALUE_ROWS)), device)
        parts.append(module.compute_values({Columns.OBS: part}).float().cpu().numpy())
    return np.concatenate(parts) if len(parts) > 1 else parts[0]


class VecLearner(PPOTorchLearner):
    """PPO on RLlib's episodes, with targets for all of them at once."""

    connector: type[TrainBatch] = EpisodesToBatch
    config: Any
    _learner_connector: Any

    def build(self) -> None:
        super().build()
        config = self.config
        self._learner_connector.append(
            self.connector(
                gamma=config.gamma,
                lambda_=config.lambda_,
                same_step=config.env_config.get("same_step", False),
                keep_skipped=config.num_learners > 1,
            )
        )


class LaneLearner(VecLearner):
    """PPO on lanes. Steps are counted as the lanes' own, not as rows of a packed episode."""

    connector = LanesToBatch

    def _make_batch_if_necessary(self, training_data: Any) -> Any:
        batch = super()._make_batch_if_necessary(training_data)
        if training_data.episodes is not None:
            batch.count = sum(map(num_samples, training_data.episodes))
        return batch

    def _create_iterator_if_necessary(
        self, *, training_data: Any, num_total_minibatches: int = 0, num_epochs: int = 1, minibatch_size: Any = None,
        **kwargs: Any,
    ) -> Any:  # fmt: skip
        # The group counts minibatches by len(episode), which is T for T * N packed samples: almost none would be
        # trained. All learners hold equally many, so each finds the same number here and none waits for the others.
        if num_total_minibatches and minibatch_size:
            samples = sum(map(num_samples, training_data.episodes))
            num_total_minibatches = max(1, num_epochs * samples // minibatch_size)
        return super()._create_iterator_if_necessary(
            training_data=training_data,
            num_total_minibatches=num_total_minibatches,
            num_epochs=num_epochs,
            minibatch_size=minibatch_size,
            **kwargs,
        )


def num_samples(episode: Any) -> int:
    """Environment steps of a trajectory or of a packed episode."""
    return len(episode) if isinstance(episode, Trajectory) else len(episode) * len(episode.get_actions(0))
