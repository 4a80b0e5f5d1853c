from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
import torch

from shoal.errors import ConfigError
from shoal.worlds.kg.lab.network import ProofNetwork, Sizes, make_network
from shoal.worlds.kg.lab.policy import CachedPolicy
from shoal.worlds.kg.lanes.data.dataset import load_dataset
from shoal.worlds.kg.lanes.env import KGBatch
from shoal.worlds.kg.lanes.options import ProofOptions
from shoal.worlds.kg.world import AtomEncoding, NetworkOptions, StateEncoding

OPTIONS = ProofOptions(end_action=True, kge_action=True)


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
    torch.manual_seed(0)
    return make_network(batch, NetworkOptions(**{"embedding_size": 16, **settings}), (32, 32))


@pytest.mark.parametrize("atom", get_args(AtomEncoding))
@pytest.mark.parametrize("state", get_args(StateEncoding))
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

    network = ProofNetwork(Sizes(10, 20, 5, 3, 6), NetworkOptions(), kge=Trainable(2, 2))
    assert not any("kge" in name for name in network.state_dict())


def test_bad_settings_are_refused(batch):
    with pytest.raises(ConfigError, match="transe"):
        network_of(batch, atom_encoder="trans")
    with pytest.raises(ConfigError, match="role"):
        network_of(batch, state_encoder="roles")
    with pytest.raises(ConfigError, match="odd"):
        network_of(batch, atom_encoder="complex", embedding_size=15)
    with pytest.raises(ConfigError, match="KGE"):
        network_of(batch, logit_bias=1.0)
    with pytest.raises(ConfigError, match="one width"):
        ProofNetwork(Sizes(10, 20, 5, 3, 6), NetworkOptions(), hidden=(32, 64))


@pytest.mark.parametrize("kge", [None, Constant()], ids=["plain", "kge"])
@pytest.mark.parametrize("encoder", get_args(StateEncoding))
def test_vmap_gives_what_the_ragged_pass_gives(batch, encoder, kge):
    """TorchRL's value estimators call networks under vmap, with stacked weights, on data of shape [lanes, steps]."""
    batch.kge = kge
    network = network_of(batch, state_encoder=encoder, logit_bias=0.0 if kge is None else 2.0)
    batch.kge = None
    obs, _ = observe(batch)
    stacked = {key: torch.stack([part, part.flip(0)]).unflatten(1, (4, 6)) for key, part in obs.items()}
    weights = {name: torch.stack([p, 2 * p]) for name, p in network.state_dict().items()}

    def run(weights, obs):
        return torch.func.functional_call(network, weights, (obs,))[:2]

    logits, value = torch.func.vmap(run)(weights, stacked)
    assert logits.shape == (2, 4, 6, 64)
    assert value.shape == (2, 4, 6)
    for k in range(2):
        one = {name: p[k] for name, p in weights.items()}
        alone = run(one, {key: part[k] for key, part in stacked.items()})
        assert torch.allclose(logits[k], alone[0], atol=1e-4, rtol=1e-4)
        assert torch.allclose(value[k], alone[1], atol=1e-4, rtol=1e-4)
