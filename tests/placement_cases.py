"""Where tensors are, on a GPU that is not there. `test_placement.py` runs this file in a process of its own.

`FakeTensorMode` computes shapes, types and devices and refuses operations on mixed devices. A torch without CUDA cannot
index a fake `cuda` tensor, so the device is one that Python may register, `gpu`, as foreign to the CPU as CUDA is.
"""

from contextlib import nullcontext
from typing import get_args

import numpy as np
import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

import shoal
from shoal.agents.config import DDDQNConfig, PPOConfig, SACConfig
from shoal.agents.dddqn import DDDQN
from shoal.agents.ppo import PPO
from shoal.agents.sac import SAC
from shoal.worlds.dvrp.lanes.oracles.neural.oracle import NeuralOracle
from shoal.worlds.dvrp.lanes.oracles.neural.vehicle import make_problem
from shoal.worlds.dvrp.lanes.scenario import make_scenario
from shoal.worlds.dvrp.lanes.settings import Place
from shoal.worlds.kg.lab.network import make_network
from shoal.worlds.kg.lanes.data.dataset import load_dataset
from shoal.worlds.kg.lanes.engine.tables import make_settings
from shoal.worlds.kg.lanes.options import ProofOptions
from shoal.worlds.kg.lanes.tensor.expand import Expander
from shoal.worlds.kg.lanes.tensor.fill import ActionLister
from shoal.worlds.kg.lanes.tensor.resident import Resident, advanced
from shoal.worlds.kg.world import NetworkOptions, StateEncoding

_setup_privateuseone_for_python_backend("gpu")
GPU = torch.device("gpu", 0)


def on_gpu(tensor):
    return torch.empty(tensor.shape, dtype=tensor.dtype, device=GPU)


def module_on_gpu(module):
    """`module` with fake weights and buffers on `GPU`."""
    for part in module.modules():
        for name, weight in part._parameters.items():
            if weight is not None:
                part._parameters[name] = nn.Parameter(on_gpu(weight), requires_grad=weight.requires_grad)
        for name, buffer in part._buffers.items():
            if buffer is not None:
                part._buffers[name] = on_gpu(buffer)
    return module


def test_a_mistake_would_be_seen():
    with FakeTensorMode(), pytest.raises(RuntimeError, match="same device"):
        torch.zeros(3, device=GPU) + torch.zeros(3)


@pytest.mark.parametrize(
    "options",
    [
        {"memory": True, "skip_unary": True, "end_action": True},
        {"memory": False, "kge_action": True, "end_true_action": True},
        {"cut": "random", "max_states": 4, "selection": "bound_first"},
    ],
)
def test_the_tensor_engine(options):
    kb = load_dataset("families:1").kb
    settings = make_settings(ProofOptions(**{"max_states": 40, **options}), kb.vocabulary)
    lister = ActionLister(Expander(kb, 6, bound_first=settings.bound_first), settings)
    with FakeTensorMode():
        module_on_gpu(lister)
        shapes = ((4, 6, 3), (4, 3), (4, 5), (4,), (4,))
        on = Resident(*(torch.zeros(shape, dtype=torch.int64, device=GPU) for shape in shapes))
        listed = lister(*on)
        moves = torch.ones(4, dtype=torch.bool, device=GPU)
        after = advanced(lister, on, listed.rows, on.num_past, moves)
    assert all(tensor.device == GPU for tensor in (*listed, *after))


@pytest.mark.parametrize("encoder", sorted({*get_args(StateEncoding)} - {"rnn"}))  # a GRU has no fake kernel
def test_the_proof_network(encoder):
    network = make_network(shoal.make("kg", 2), NetworkOptions(state_encoder=encoder), (32, 32))
    with FakeTensorMode():
        module_on_gpu(network)
        state = torch.zeros(5, 6, 3, dtype=torch.int32, device=GPU)
        successors = torch.zeros(5, 64, 6, 3, dtype=torch.int32, device=GPU)
        logits, value = network._score_padded(state, successors)
        (logits.sum() + value.sum()).backward()
    assert logits.device == value.device == GPU
    assert all(weight.grad.device == GPU for weight in network.parameters() if weight.grad is not None)


@pytest.mark.parametrize("world", ["cartpole", "pendulum"])
def test_ppo_acts_and_judges(world):
    batch = shoal.make(world, 4)
    agent = PPO(batch.single_observation_space, batch.single_action_space, PPOConfig(hidden=(16,)))
    obs, _ = batch.reset(seed=0)
    noise = agent.head.draw_noise(4, agent.generator)
    with FakeTensorMode():
        module_on_gpu(agent.network)
        params, value, _ = agent.network(on_gpu(torch.as_tensor(np.array(obs))), None)
        raw = agent.head.sample(params, on_gpu(noise))
        terms = agent.head.log_prob(params, raw), agent.head.entropy(params), value
    assert all(term.device == GPU for term in terms)


@pytest.mark.parametrize(
    ("kind", "world", "config"),
    [
        (SAC, "pendulum", SACConfig(hidden=(16,))),
        (SAC, "cartpole", SACConfig(hidden=(16,))),
        (DDDQN, "cartpole", DDDQNConfig(hidden=(16,))),
    ],
)
def test_an_update_from_a_replay_memory(kind, world, config, monkeypatch):
    """Numbers cannot be read off fake tensors: weights have no seed, the optimisers count in Python."""
    monkeypatch.setattr(f"{kind.__module__}.own_weights", nullcontext)
    monkeypatch.setattr(nn.Module, "to", lambda module, device: module_on_gpu(module))  # `to` swaps, which fakes refuse
    monkeypatch.setattr(FakeTensorMode, "__deepcopy__", lambda mode, memo: mode, raising=False)
    batch = shoal.make(world, 4)
    with FakeTensorMode():
        agent = kind(batch.single_observation_space, batch.single_action_space, config, device="gpu:0")
        for adam in agent.optimizers().values():
            adam.num_updates = 0
        errors = agent.learn(torch.zeros(8, agent.columns.width, device=GPU), torch.ones(8, device=GPU))
    assert errors.device == GPU
    assert all(weight.device == GPU for network in agent.networks().values() for weight in network.parameters())


def test_the_neural_oracle_poses_and_encodes():
    scenario = make_scenario(Place())
    oracle = NeuralOracle(scenario.city, scenario.fleet)
    cells = torch.zeros(3, 9, dtype=torch.int64)
    with FakeTensorMode():
        module_on_gpu(oracle.model)
        tables = (on_gpu(table) for table in (oracle._seconds, oracle._price))
        windows, wanted = torch.zeros(3, 9, 2, device=GPU), torch.ones(3, 9, dtype=torch.bool, device=GPU)
        problem = make_problem(on_gpu(cells), windows, wanted, *tables, oracle.fleet)
        memory = oracle.model.encode(problem, torch.zeros(3, 9, 2, device=GPU))
    assert all(part.device == GPU for part in memory if isinstance(part, torch.Tensor))
    assert problem.closes.device == GPU
