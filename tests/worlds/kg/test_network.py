from __future__ import annotations

import numpy as np
import pytest
import torch

from shoal.agents.config import PPOConfig
from shoal.errors import ConfigError, UnknownName
from shoal.worlds.kg.dataset import load_dataset
from shoal.worlds.kg.encoders import ATOM_ENCODERS, STATE_ENCODERS
from shoal.worlds.kg.env import KGBatch
from shoal.worlds.kg.network import ProofNetwork, make_network
from shoal.worlds.kg.options import KGOptions
from shoal.worlds.kg.proving import CachedPolicy

OPTIONS = KGOptions(end_action=True, kge_action=True)


class Constant:
    """A KGE model that finds everything equally likely."""

    def log_score_tensor(self, triples):
        return torch.full((len(triples),), -0.5)

    def log_score(self, triples):
        return np.full(len(triples), -0.5)


@pytest.fixture(scope="module")
def batch():
    env = KGBatch(24, load_dataset(), OPTIONS)
    env.reset(seed=0)
    for _ in range(3):
        env.step(np.zeros(24, np.int64))
    return env


def observe(batch):
    out = batch.empty_step()
    batch._look(out, np.ones(batch.num_envs, bool))
    return {key: torch.as_tensor(value) for key, value in out.obs.items()}, out.action_mask


def network_of(batch, **settings):
    batch.network_settings = {"embedding_size": 16, **settings}
    torch.manual_seed(0)
    return make_network(batch, PPOConfig(hidden=(32, 32)))


@pytest.mark.parametrize("atom", ATOM_ENCODERS)
@pytest.mark.parametrize("state", STATE_ENCODERS)
def test_every_encoder_scores_and_learns(batch, atom, state):
    network = network_of(batch, atom_encoder=atom, state_encoder=state)
    obs, mask = observe(batch)
    logits, value, _ = network(obs, None)
    assert logits.shape == mask.shape
    assert value.shape == (24,)
    (logits[torch.as_tensor(mask)].sum() + value.sum()).backward()
    assert all(torch.isfinite(p.grad).all() for p in network.parameters() if p.grad is not None)
    assert network.predicate.weight.grad[1:].abs().sum() > 0
    assert not network.predicate.weight.grad[0].any()


def test_each_observation_is_scored_as_if_it_were_alone(batch):
    network = network_of(batch, state_encoder="role")
    obs, _ = observe(batch)
    together, value, _ = network(obs, None)
    for lane in range(0, 24, 5):
        alone, its_value, _ = network({key: part[lane : lane + 1] for key, part in obs.items()}, None)
        assert torch.allclose(alone[0], together[lane], atol=1e-5)
        assert torch.allclose(its_value[0], value[lane], atol=1e-5)


def test_a_state_does_not_depend_on_padding(batch):
    network = network_of(batch)
    rows = torch.as_tensor(batch.lanes.state).long()
    short = int((rows[..., 0] > 0).sum(1).max())
    assert torch.allclose(network.embed(rows), network.embed(rows[:, :short]), atol=1e-6)


def test_the_cache_gives_what_the_network_gives(batch):
    network = network_of(batch, state_encoder="role")
    obs, mask = observe(batch)
    logits = network(obs, None)[0].detach().masked_fill(~torch.as_tensor(mask), -torch.inf)
    wanted = torch.log_softmax(logits, -1)[torch.as_tensor(mask)].numpy()
    policy = CachedPolicy(network)
    for _ in range(2):  # the second time everything is known
        assert np.allclose(policy.log_probs(batch.ragged()), wanted, atol=1e-5)


def test_a_kge_model_moves_only_the_logits_it_is_asked_about(batch):
    plain = network_of(batch)
    batch.kge = Constant()
    biased = network_of(batch, logit_bias=2.0)
    batch.kge = None
    obs, mask = observe(batch)
    difference = (biased(obs, None)[0] - plain(obs, None)[0]).detach().numpy()
    vocabulary = batch.data.kb.vocabulary
    goals = obs["derived_sub_indices"][:, :, 0].numpy()
    ground = mask & (goals[..., 1:] <= vocabulary.num_constants).all(-1) & (goals[..., 1] > 0)
    regular = ground & (goals[..., 0] <= vocabulary.num_regular)
    twin = ground & (goals[..., 0] > vocabulary.end_true)
    assert np.allclose(difference[regular], -1.0, atol=1e-5)
    assert np.abs(difference[~ground]).max() < 1e-5
    assert twin.any()
    assert np.ptp(difference[twin]) < 1e-5


def test_no_weight_of_the_kge_model_is_saved(batch):
    class Trainable(torch.nn.Linear):
        pass

    network = ProofNetwork(10, 20, 5, 3, 6, kge=Trainable(2, 2))
    assert not any("kge" in name for name in network.state_dict())


def test_bad_settings_are_refused(batch):
    with pytest.raises(UnknownName, match="transe"):
        network_of(batch, atom_encoder="trans")
    with pytest.raises(UnknownName, match="role"):
        network_of(batch, state_encoder="roles")
    with pytest.raises(ConfigError, match="odd"):
        network_of(batch, atom_encoder="complex", embedding_size=15)
    with pytest.raises(ConfigError, match="KGE"):
        network_of(batch, logit_bias=1.0)
    with pytest.raises(ConfigError, match="one width"):
        ProofNetwork(10, 20, 5, 3, 6, hidden=(32, 64))
