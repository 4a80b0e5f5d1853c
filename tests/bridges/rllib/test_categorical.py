"""Draws and losses among choices, against RLlib's own distribution and learner."""

import numpy as np
import pytest
import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner
from ray.rllib.core.distribution.torch.torch_distribution import TorchCategorical, TorchDiagGaussian
from ray.rllib.utils.torch_utils import FLOAT_MIN

from shoal.bridges.rllib.categorical import draw, ppo_loss

ROWS, ACTIONS = 50, 3


def test_draws_have_the_probabilities_of_the_network():
    torch.manual_seed(0)
    logits = torch.tensor([[0.0, 1.0, -1.0, FLOAT_MIN]]).expand(20_000, 4)
    action, log_prob = draw(TorchCategorical, logits, explore=True)
    expected = torch.softmax(logits[0], -1)
    shares = torch.bincount(action, minlength=4) / len(action)
    assert torch.allclose(shares, expected, atol=0.015)
    assert shares[3] == 0  # forbidden
    assert torch.allclose(log_prob, TorchCategorical.from_logits(logits).logp(action), atol=1e-6)


def test_without_exploring_it_is_the_likeliest_action():
    logits = torch.tensor([[0.0, 1.0], [3.0, 1.0]])
    assert draw(TorchCategorical, logits, explore=False)[0].tolist() == [1, 0]
    means = torch.tensor([[0.5, -1.0]])  # and their logarithmic deviations
    assert draw(TorchDiagGaussian, means, explore=False)[0].tolist() == [[0.5]]


class Holder:
    """As much of a learner as RLlib's loss asks for."""

    def __init__(self, value):
        self.value, self.told = value, {}
        self.module, self.metrics = {"m": self}, self
        self.entropy_coeff_schedulers_per_module, self.curr_kl_coeffs_per_module = {"m": self}, {"m": 0.3}

    def unwrapped(self):
        return self

    def get_train_action_dist_cls(self):
        return TorchCategorical

    get_exploration_action_dist_cls = get_train_action_dist_cls

    def compute_values(self, batch, embeddings):
        return self.value

    def get_current_value(self):
        return 0.02

    def log_dict(self, values, **kwargs):
        self.told = values


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("use_kl", [False, True])
def test_the_loss_is_rllibs(masked, use_kl):
    torch.manual_seed(1)
    config = PPOConfig().training(clip_param=0.1, vf_clip_param=0.5, vf_loss_coeff=0.7, use_kl_loss=use_kl)
    then = torch.randn(ROWS, ACTIONS)
    then[::5, 0] = FLOAT_MIN
    action = torch.randint(1, ACTIONS, (ROWS,))
    batch = {
        "obs": torch.zeros(ROWS, 1),
        "actions": action,
        "action_logp": TorchCategorical.from_logits(then).logp(action),
        "action_dist_inputs": then,
        "advantages": torch.randn(ROWS),
        "value_targets": torch.randn(ROWS),
    }
    if masked:
        batch["loss_mask"] = torch.rand(ROWS) < 0.6
    now = torch.where(then == FLOAT_MIN, then, then + 0.3 * torch.randn(ROWS, ACTIONS)).requires_grad_()
    value = torch.randn(ROWS).requires_grad_()
    holder = Holder(value)
    theirs = PPOTorchLearner.compute_loss_for_module(
        holder, module_id="m", config=config, batch=batch, fwd_out={"action_dist_inputs": now}
    )
    ours, terms = ppo_loss(batch, now, value, config, 0.02, 0.3)
    assert ours.item() == pytest.approx(theirs.item(), abs=1e-6)
    gradients = [torch.autograd.grad(loss, (now, value), retain_graph=True) for loss in (theirs, ours)]
    for expected, found in zip(*gradients, strict=True):
        assert torch.allclose(found, expected, atol=1e-6)
    assert terms().keys() == holder.told.keys()
    for name, number in terms().items():
        assert np.isclose(number.item(), holder.told[name].item(), atol=1e-6)
