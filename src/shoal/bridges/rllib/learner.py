"""Learners: RLlib's PPO on the train batches of our connectors, with little Python around each minibatch."""

from __future__ import annotations

import math
from typing import Any

import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner
from ray.rllib.core import ALL_MODULES, DEFAULT_MODULE_ID
from ray.rllib.core.columns import Columns
from ray.rllib.core.distribution.torch.torch_distribution import TorchCategorical
from ray.rllib.core.learner.training_data import TrainingData
from ray.rllib.utils.metrics import (
    MODULE_TRAIN_BATCH_SIZE_MEAN,
    NUM_ENV_STEPS_TRAINED,
    NUM_ENV_STEPS_TRAINED_LIFETIME,
    NUM_MODULE_STEPS_TRAINED,
    NUM_MODULE_STEPS_TRAINED_LIFETIME,
    WEIGHTS_SEQ_NO,
)
from ray.rllib.utils.typing import ParamDict, TensorType
from torch import Tensor
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from shoal.bridges.rllib.categorical import Terms, ppo_loss
from shoal.bridges.rllib.connectors import TrainColumns
from shoal.bridges.rllib.train_batch import EpisodesToBatch, LanesToBatch, TrainBatch
from shoal.trees import index_tree

TRAINED = (
    (DEFAULT_MODULE_ID, NUM_MODULE_STEPS_TRAINED, NUM_MODULE_STEPS_TRAINED_LIFETIME),
    (ALL_MODULES, NUM_MODULE_STEPS_TRAINED, NUM_MODULE_STEPS_TRAINED_LIFETIME),
    (ALL_MODULES, NUM_ENV_STEPS_TRAINED, NUM_ENV_STEPS_TRAINED_LIFETIME),
)
"""Where RLlib counts rows trained: of this update, and ever."""


class VecLearner(PPOTorchLearner):
    """PPO on RLlib's episodes: targets of all of them at once, and an update that costs little besides arithmetic.

    Loss, clipping and optimizer are those of RLlib's learner. It logs every minibatch, of which the last is kept; here
    only the last is logged.
    """

    connector: type[TrainBatch] = EpisodesToBatch
    config: Any
    module: Any
    metrics: Any
    _module: Any
    _learner_connector: Any
    _terms: Terms | None = None  # of the newest minibatch
    _norm: Tensor | None = None  # of all gradients of the newest minibatch

    def build(self) -> None:
        super().build()
        config, same_step = self.config, self.config.env_config.get("same_step", False)
        connector = self.connector(config.gamma, config.lambda_, same_step, keep_skipped=config.num_learners > 1)
        self._learner_connector.append(connector)

    def configure_optimizers_for_module(self, module_id: str, config: PPOConfig) -> None:  # type: ignore[override]
        """RLlib's Adam, in one call for all parameters."""
        params = self.get_parameters(self._module[module_id])
        optimizer = torch.optim.Adam(params, fused=True)
        self.register_optimizer(module_id=module_id, optimizer=optimizer, params=params, lr_or_lr_schedule=config.lr)

    def update(  # type: ignore[override]  # what LearnerGroup passes
        self,
        *,
        training_data: TrainingData,
        timesteps: dict[str, int] | None = None,
        num_total_minibatches: int = 0,
        num_epochs: int = 1,
        minibatch_size: int | None = None,
        **kwargs: object,
    ) -> dict[str, Any]:
        """Shuffled passes over the samples of `training_data`, in minibatches."""
        self.before_gradient_based_update(timesteps=timesteps or {})
        training_data.solve_refs()
        self._weights_seq_no += 1
        columns = self._learner_connector(
            rl_module=self.module, batch={}, episodes=training_data.episodes, shared_data={}, metrics=self.metrics
        )[DEFAULT_MODULE_ID]
        rows = len(columns[Columns.ACTIONS])
        count = self.num_minibatches(rows, minibatch_size or rows, num_epochs, num_total_minibatches)
        order = minibatch_rows(rows, minibatch_size or rows, count).to(columns[Columns.ACTIONS].device)
        loss: dict[str, Tensor] = {}
        for which in order:
            _, loss, _ = self._update({DEFAULT_MODULE_ID: index_tree(columns, which)})
        self._log_update(loss, order)
        self.after_gradient_based_update(timesteps=timesteps or {})
        return self.metrics.reduce()

    def num_minibatches(self, rows: int, size: int, epochs: int, of_group: int) -> int:
        """Learners in a group must do equally many, or they would wait for each other's gradients for ever."""
        return of_group or math.ceil(epochs * rows / size)

    def compute_loss_for_module(  # type: ignore[override]
        self, *, module_id: str, config: PPOConfig, batch: TrainColumns, fwd_out: TrainColumns
    ) -> TensorType:
        module = self.module[module_id].unwrapped()
        if module.get_train_action_dist_cls() is not TorchCategorical or not config.use_critic:
            return super().compute_loss_for_module(module_id=module_id, config=config, batch=batch, fwd_out=fwd_out)
        value = module.compute_values(batch, embeddings=fwd_out.get(Columns.EMBEDDINGS))
        entropy_coeff: Any = self.entropy_coeff_schedulers_per_module[module_id].get_current_value()
        kl_coeff: Any = self.curr_kl_coeffs_per_module[module_id]
        dist_inputs = fwd_out[Columns.ACTION_DIST_INPUTS]
        loss, self._terms = ppo_loss(batch, dist_inputs, value, config, entropy_coeff, kl_coeff)
        return loss

    def postprocess_gradients(self, gradients_dict: ParamDict) -> ParamDict:
        """RLlib's clipping by the global norm, for all parameters at once; other kinds are left to it."""
        if self.config.grad_clip and self.config.grad_clip_by != "global_norm":
            self._norm = None
            return super().postprocess_gradients(gradients_dict)
        self._norm = get_total_norm([gradient for gradient in gradients_dict.values() if gradient is not None])
        if self.config.grad_clip:
            clip_grads_with_norm_(list(self._params.values()), self.config.grad_clip, self._norm)
        return gradients_dict

    def apply_gradients(self, gradients_dict: ParamDict) -> None:
        """A step of the optimizer; what RLlib does about gradients that are not finite is left to it."""
        plain = self._grad_scalers is None and self._lr_scheduler_classes is None
        if plain and self._norm is not None and torch.isfinite(self._norm):
            self.get_optimizer().step()
        else:
            super().apply_gradients(gradients_dict)

    def _log_update(self, loss: dict[str, Tensor], order: Tensor) -> None:
        log = self.metrics.log_value
        for module_id, value in loss.items():
            log((module_id, self.TOTAL_LOSS_KEY), value, window=1)
        if self._terms is not None:
            self.metrics.log_dict(self._terms(), key=DEFAULT_MODULE_ID, window=1)
            self._terms = None  # and with it the minibatch
        if self._norm is not None:
            log((DEFAULT_MODULE_ID, "gradients_default_optimizer_global_norm"), self._norm, window=1)
        log((DEFAULT_MODULE_ID, WEIGHTS_SEQ_NO), self._weights_seq_no, window=1)
        log((DEFAULT_MODULE_ID, MODULE_TRAIN_BATCH_SIZE_MEAN), order.shape[1], reduce="mean")
        for group, now, ever in TRAINED:
            log((group, now), order.numel(), reduce="sum")
            log((group, ever), order.numel(), reduce="lifetime_sum", with_throughput=True)


class LaneLearner(VecLearner):
    """PPO on lanes."""

    connector = LanesToBatch

    def num_minibatches(self, rows: int, size: int, epochs: int, of_group: int) -> int:
        # The group counts by len(episode), which is T for T * N packed samples: almost none would be trained. All
        # learners hold equally many rows here, so each finds the same number by itself.
        return super().num_minibatches(rows, size, epochs, 0)


def minibatch_rows(rows: int, size: int, count: int) -> Tensor:
    """[count, size] which rows are in which minibatch: shuffled passes over all rows, laid end to end and cut.

    The last minibatch is filled from a further pass, as RLlib has it.
    """
    passes = [torch.randperm(rows) for _ in range(math.ceil(count * size / rows))]
    return torch.cat(passes)[: count * size].reshape(count, size)
