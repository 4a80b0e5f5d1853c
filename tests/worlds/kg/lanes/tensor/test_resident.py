"""Lanes of the tensor engine live on its device; torch.compile takes it as one graph."""

import numpy as np
import pytest
import torch

import shoal
from shoal.errors import ConfigError
from shoal.worlds.kg.lanes.data.dataset import load_dataset
from shoal.worlds.kg.lanes.engine.tables import make_settings
from shoal.worlds.kg.lanes.env import KGBatch
from shoal.worlds.kg.lanes.options import EngineOptions, ProofOptions
from shoal.worlds.kg.lanes.tensor.expand import Expander
from shoal.worlds.kg.lanes.tensor.fill import ActionLister
from shoal.worlds.kg.lanes.tensor.resident import Resident, TensorFill

EVERYTHING = (
    {"memory": True, "skip_unary": True, "end_action": True},
    {"memory": False, "kge_action": True, "end_true_action": True},
    {"cut": "random", "max_states": 4, "selection": "bound_first"},
)


@pytest.fixture(scope="module")
def data():
    return load_dataset("families:1")


def walk(env, steps):
    rng = np.random.default_rng(0)
    for _ in range(steps):
        yield env.step((rng.random(env.num_envs) * env.lanes.num_actions).astype(np.int64))


def assert_alike(env):
    """Do device and host know the same lanes?"""
    lanes, on = env.lanes, env._tensor.on_device
    for name in ("state", "query", "num_past", "episode_key"):
        assert np.array_equal(getattr(on, name).numpy(), getattr(lanes, name)), name
    for lane in range(env.num_envs):
        past, actions = lanes.num_past[lane], lanes.num_actions[lane]
        assert np.array_equal(on.history[lane, :past].numpy(), lanes.history[lane, :past])
        assert np.array_equal(env._tensor.successors[lane, :actions].numpy(), lanes.successors[lane, :actions])


@pytest.mark.parametrize("options", EVERYTHING)
def test_device_and_host_know_the_same_lanes(data, options):
    made = ProofOptions(**{"max_depth": 6, "max_states": 40, **options})
    env, other = (KGBatch(8, data, made, engine=EngineOptions("tensor", "cpu:0")) for _ in range(2))
    env.reset(seed=0)
    for _ in walk(env, 15):
        assert_alike(env)
    other.reset(seed=1)
    other.set_state(env.get_state())
    for ours, theirs in zip(walk(env, 10), walk(other, 10), strict=True):
        assert all(np.array_equal(ours[0][key], theirs[0][key]) for key in ours[0])
    assert_alike(other)


def test_a_step_sends_actions_and_not_lanes(data, monkeypatch):
    env = KGBatch(8, data, ProofOptions(max_depth=20), engine=EngineOptions("tensor"))
    env.reset(seed=0)
    sent, put = [], TensorFill._put
    monkeypatch.setattr(TensorFill, "_put", lambda fill, array: (sent.append(array.nbytes), put(fill, array))[1])
    bytes_of = []
    for _, _, terminated, truncated, _ in walk(env, 20):
        if not (terminated | truncated).any():
            bytes_of.append(sum(sent))
        sent.clear()
    assert bytes_of
    assert max(bytes_of) <= 8 * (8 + 1 + 1 + 1)  # per lane an action, and whether it moves, is idle, is meant


def states_of(data, options, max_atoms=6):
    settings = make_settings(options, data.kb.vocabulary)
    lister = ActionLister(Expander(data.kb, max_atoms, bound_first=settings.bound_first), settings)
    state = torch.zeros(4, max_atoms, 3, dtype=torch.int64)
    query = torch.as_tensor(data.train.triples[:4]).long()
    state[:, 0] = query
    past, none = torch.zeros(4, 5, dtype=torch.int64), torch.zeros(4, dtype=torch.int64)
    return lister, Resident(state, query, past, none, none.clone())


def compiled_like_the_definition(data, options, backend):
    lister, on = states_of(data, options)
    compiled = torch.compile(lister, backend=backend, fullgraph=True)
    for got, wanted in zip(compiled(*on), lister(*on), strict=True):
        assert torch.equal(got, wanted)


def test_the_tensor_engine_is_one_graph(data):
    everything = ProofOptions(end_action=True, kge_action=True, cut="random")
    compiled_like_the_definition(data, everything, "eager")


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [{"end_action": True, "kge_action": True, "cut": "random", "max_states": 4}, {"selection": "bound_first"}],
)
def test_inductor_compiles_the_tensor_engine(data, options, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    compiled_like_the_definition(data, ProofOptions(**options), "inductor")


def test_a_device_that_is_not_there_is_one_sentence():
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(ConfigError, match=r"engine_device='cuda' is not available here \(.*\)\. Use 'cpu'\."):
        shoal.make("kg", 2, engine="tensor", engine_device="cuda")
