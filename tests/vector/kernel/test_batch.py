import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.errors import ActionError, ConfigError, StateError
from shoal.trees import copy_tree
from shoal.vector.kernel import KernelBatch
from shoal.worlds.classic.lanes.cartpole import CartPole
from tests.vector.kernel.kernels import Corridor, Mixed

KERNELS = [Corridor, Mixed, CartPole]


def same(a, b):
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        return all(same(a[key], b[key]) for key in a if key != "t")  # wall time differs
    return np.array_equal(a, b)


def trajectory(batch, seed, num_steps, lanes=None):
    """What the first `lanes` lanes go through under actions that depend on (seed, lane) alone."""
    lanes = lanes or batch.num_envs
    spaces = [_space(batch, seed, i) for i in range(batch.num_envs)]
    obs, info = batch.reset(seed=seed)
    seen = [copy_tree((obs, info))]
    for _ in range(num_steps):
        action = np.array([space.sample() for space in spaces])
        seen.append(copy_tree(batch.step(action)))
    return [first(part, lanes) for part in seen]


def _space(batch, seed, lane):

    space = copy.deepcopy(batch.single_action_space)
    space.seed(seed + 1000 * lane)
    return space


def first(tree, lanes):
    if isinstance(tree, dict):
        return {key: first(value, lanes) for key, value in tree.items()}
    if isinstance(tree, tuple):
        return tuple(first(value, lanes) for value in tree)
    return tree[:lanes]


def masked(tree):
    """Only what means something: rows under their mask, keys that are there for these lanes."""
    obs, *rest, info = tree
    kept = {}
    for key, value in info.items():
        if key.startswith("_"):
            continue
        mask = info.get("_" + key)
        kept[key] = value if mask is None else _rows(value, mask)
    return (obs, *rest, {key: value for key, value in kept.items() if not _empty(value)})


def _rows(value, mask):
    return {k: _rows(v, mask) for k, v in value.items()} if isinstance(value, dict) else value[mask]


def _empty(value):
    return all(_empty(v) for v in value.values()) if isinstance(value, dict) else len(value) == 0


def assert_same_trajectory(one, other):
    for a, b in zip(one, other, strict=True):
        for x, y in zip(masked(a), masked(b), strict=True):
            assert same(x, y)


@pytest.mark.parametrize("kernel", KERNELS)
@given(seed=st.integers(0, 2**31), few=st.integers(1, 4), more=st.integers(0, 5))
@settings(max_examples=15, deadline=None)
def test_compiled_and_uncompiled_are_equal_bit_for_bit(kernel, seed, few, more):
    compiled = trajectory(KernelBatch(kernel, few + more), seed, 25, lanes=few)
    uncompiled = trajectory(KernelBatch(kernel, few, compiled=False), seed, 25)
    assert_same_trajectory(compiled, uncompiled)


@pytest.mark.parametrize("kernel", KERNELS)
def test_threads_change_nothing(kernel):
    one = trajectory(KernelBatch(kernel, 37, num_threads=1), 3, 30)
    two = trajectory(KernelBatch(kernel, 37, num_threads=3), 3, 30)
    assert_same_trajectory(one, two)


@pytest.mark.parametrize("kernel", KERNELS)
def test_state_is_a_value(kernel):
    batch = KernelBatch(kernel, 5)
    batch.reset(seed=1)
    batch.action_space.seed(0)
    actions = [batch.action_space.sample() for _ in range(20)]
    for action in actions[:10]:
        batch.step(action)
    saved = batch.get_state()
    later = [copy_tree(batch.step(action)) for action in actions[10:]]
    fresh = KernelBatch(kernel, 5)
    fresh.set_state(saved)
    assert_same_trajectory(later, [copy_tree(fresh.step(action)) for action in actions[10:]])


def test_state_of_another_size_is_refused():
    batch = KernelBatch(CartPole, 3)
    batch.reset(seed=0)
    other = KernelBatch(CartPole, 4)
    with pytest.raises(StateError, match="4 lanes of CartPole"):
        other.set_state(batch.get_state())


def test_same_step_delivers_final_obs_and_statistics():
    batch = KernelBatch(CartPole(max_steps=4), 2)
    mirror = KernelBatch(CartPole(max_steps=4), 2, autoreset_mode="disabled")
    batch.reset(seed=0)
    mirror.reset(seed=0)
    action = np.array([0, 1])
    for _ in range(3):
        _, _, _, _, info = batch.step(action)
        mirror.step(action)
        assert "final_obs" not in info
        assert "episode" not in info
    obs, _, _, truncated, info = batch.step(action)
    last = mirror.step(action)[0]
    assert truncated.all()
    assert np.array_equal(info["final_obs"], last)
    assert info["_final_obs"].all()
    assert info["episode"]["r"].tolist() == [4, 4]
    assert info["episode"]["l"].tolist() == [4, 4]
    begun = mirror.reset(options={"reset_mask": np.array([True, True])})[0]
    assert np.array_equal(obs, begun)  # the lane's stream goes on in the same way


def test_next_step_ignores_the_action_and_pays_nothing():
    batch = KernelBatch(CartPole(max_steps=3), 1, autoreset_mode="next_step")
    batch.reset(seed=0)
    for _ in range(3):
        *_, truncated, info = batch.step(np.array([1]))
    assert truncated[0]
    assert info["episode"]["l"][0] == 3
    assert "final_obs" not in info
    obs, reward, terminated, truncated, _ = batch.step(np.array([1]))
    assert reward[0] == 0
    assert not terminated[0]
    assert not truncated[0]
    assert (abs(obs) <= 0.05).all()


def test_masked_reset_leaves_the_others_alone():
    batch = KernelBatch(CartPole, 4, autoreset_mode="disabled")
    batch.reset(seed=0)
    for _ in range(5):
        obs, *_ = batch.step(np.ones(4, np.int64))
    after, _ = batch.reset(options={"reset_mask": np.array([False, True, False, False])})
    assert np.array_equal(after[[0, 2, 3]], obs[[0, 2, 3]])
    assert not np.array_equal(after[1], obs[1])


def test_disabled_refuses_to_step_an_ended_lane():
    batch = KernelBatch(CartPole(max_steps=1), 2, autoreset_mode="disabled")
    batch.reset(seed=0)
    batch.step(np.zeros(2, np.int64))
    with pytest.raises(StateError, match="lane 0 has ended"):
        batch.step(np.zeros(2, np.int64))


def test_step_into_writes_nowhere_else():
    batch = KernelBatch(CartPole, 3)
    batch.reset(seed=0)
    rollout = np.full((4, 3, 4), 7, np.float32)
    out = batch.empty_step()._replace(obs=rollout[1])
    batch.step_into(np.ones(3, np.int64), out)
    assert (rollout[[0, 2, 3]] == 7).all()
    assert not (rollout[1] == 7).any()


def test_foreign_buffers_are_checked():
    batch = KernelBatch(CartPole, 3)
    batch.reset(seed=0)
    with pytest.raises(ConfigError, match=r"float64.*needs a writable, C-contiguous \(3, 4\) of float32"):
        batch.step_into(np.ones(3, np.int64), batch.empty_step()._replace(obs=np.zeros((3, 4))))
    constant = np.zeros(3, np.float32)
    constant.flags.writeable = False
    with pytest.raises(ConfigError, match=r"needs a writable, C-contiguous \(3,\) of float32"):
        batch.step_into(np.ones(3, np.int64), batch.empty_step()._replace(reward=constant))


def test_copy_false_hands_out_the_same_memory():
    batch = KernelBatch(CartPole, 2, copy=False)
    first_obs, _ = batch.reset(seed=0)
    assert batch.step(np.array([0, 1]))[0] is first_obs


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (np.array([0, 1]), "2 actions of shape .* for 3 environments"),
        (np.array([0, 2, 1]), "lane 1 is outside the action space: 2. Allowed is a whole number from 0 to 1"),
        (np.array([0.5, 0, 1]), "type float64"),
        (1, "a single number"),
    ],
)
def test_bad_actions_are_refused_and_nothing_moves(action, message):
    batch = KernelBatch(CartPole, 3)
    batch.reset(seed=0)
    before = batch.get_state()
    with pytest.raises(ActionError, match=message):
        batch.step(action)
    assert all(np.array_equal(before[key], value) for key, value in batch.get_state().items())


@pytest.mark.parametrize("num_threads", [1, 2])
def test_nan_action_is_refused_and_nothing_moves(num_threads):
    batch = KernelBatch(Mixed, 4, num_threads=num_threads)
    batch.reset(seed=0)
    before = batch.get_state()
    action = np.zeros((4, 3), np.float32)
    action[3, 1] = np.nan
    with pytest.raises(ActionError, match="lane 3 is NaN"):
        batch.step(action)
    assert all(np.array_equal(before[key], value) for key, value in batch.get_state().items())


@pytest.mark.parametrize("num_envs", [0, -3, 2.5, True, "8"])
def test_num_envs_must_be_a_count(num_envs):
    with pytest.raises(ConfigError, match="num_envs"):
        KernelBatch(CartPole, num_envs)


def test_calls_at_the_wrong_moment():
    batch = KernelBatch(CartPole, 1)
    with pytest.raises(StateError, match="before reset"):
        batch.step(np.array([0]))
    batch.reset(seed=0)
    batch.close()
    with pytest.raises(StateError, match="after close"):
        batch.step(np.array([0]))
    with pytest.raises(StateError, match="after close"):
        batch.reset()


def test_lanes_have_settings():
    batch = KernelBatch(Corridor, 3, lanes={"length": [1, 2, 3]})
    batch.reset(seed=0)
    assert batch.lane_state["length"].tolist() == [1, 2, 3]
    with pytest.raises(ConfigError, match="no state field 'colour'"):
        batch.set_lanes(colour=1)
    with pytest.raises(ConfigError, match=r"Give one value for all lanes, or an array \[\d"):
        batch.set_lanes(**{batch.kernel.state.names[0]: [1, 2, 3, 4, 5, 6, 7]})


def test_mask_and_infos_are_dense():
    batch = KernelBatch(Corridor, 6)
    _, info = batch.reset(seed=0)
    assert info["action_mask"].shape == (6, 3)
    assert np.array_equal(info["action_mask"][:, 0], batch.lane_state["pos"] > 0)
    for _ in range(12):
        *_, info = batch.step(np.full(6, 2))
        assert np.array_equal(info["distance"], 7 - batch.lane_state["pos"])
        if "final_info" in info:
            done = info["_final_info"]
            assert (info["final_info"]["visits"][done] == info["episode"]["l"][done]).all()


def test_reset_without_seed_continues_and_differs():
    batch = KernelBatch(CartPole, 1)
    first_start, _ = batch.reset(seed=0)
    second_start, _ = batch.reset()
    assert not np.array_equal(first_start, second_start)
    again, _ = batch.reset(seed=0)
    assert np.array_equal(first_start, again)
    a, b = KernelBatch(CartPole, 1).reset()[0], KernelBatch(CartPole, 1).reset()[0]
    assert not np.array_equal(a, b)
