"""Who learns in lanes with seats: networks per role, a central value, one controller, and agents with a memory."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
import torch

import shoal
from shoal.agents.config import PPOConfig
from shoal.agents.ppo import PPO
from shoal.agents.roles import RoleAgents, lanes_of, role_agents
from shoal.agents.rollout import Rollout
from shoal.errors import ConfigError
from shoal.games.lanes.joint import JointBatch
from shoal.games.lanes.rows import CentralRows, RoleRows, SeatRows
from shoal.games.lanes.versus import VersusBatch
from shoal.testing import BROKEN, check_batch
from shoal.training.collect import collect
from shoal.training.hooks import Hooks
from shoal.training.loop import Clock
from shoal.vector.kernel import KernelBatch
from shoal.worlds.connect4.lanes.kernel import Connect4
from tests.games.test_training import rows
from tests.vector.kernel.seated import Hunt, Plank, Tug

SMALL = {"num_envs": 8, "eval_every": 0, "eval_episodes": 4, "quiet": True, "checkpoint_every": 512}
PPO_SMALL = {"num_steps": 16, "minibatches": 2, "hidden": (16,), "lr_final": None, "entropy_final": None}
OFF_POLICY = {"num_steps": 8, "hidden": (16,), "batch_size": 32, "warmup": 64}
REPLAY = {**OFF_POLICY, "name": "dddqn", "epsilon": 0.2, "epsilon_final": 0.2}
SAC = {**OFF_POLICY, "name": "sac"}
HUNT = "tests.vector.kernel.seated:Hunt"
VERSUS = {"seats": "versus", "opponents": ("itself", "pool=2"), "pool_every": 256, "eval_games": 4}


def small(kernel):
    """Uncompiled lanes, which begin at once."""
    return KernelBatch(kernel, 4, compiled=False)


def agents_for(lanes, **settings):
    def make(observation_space, action_space, number):
        return PPO(observation_space, action_space, PPOConfig(**{**PPO_SMALL, **settings}), seed=number)

    return role_agents(lanes.roles, lanes.lanes.spaces_of_seats, make)


def experience(lanes, agent):
    rollout = Rollout(lanes, agent)
    lanes.reset_into(rollout.step_buffers(rollout.num_steps - 1), seed=1)
    for _ in range(2):
        collect(lanes, agent, rollout, Hooks(), Clock())
    return rollout


@pytest.mark.parametrize("make", [CentralRows, RoleRows, JointBatch])
def test_other_ways_to_see_seats_keep_the_contract(make):
    def lanes(num_envs, **options):
        return make(KernelBatch(Hunt, num_envs, **options))

    rows_per_lane = 1 if make is JointBatch else 3
    batch = lanes(2)
    assert batch.num_envs == 2 * rows_per_lane
    if make is JointBatch:
        assert [f for f in check_batch(lanes, max_examples=3) if f.severity == BROKEN] == []


def test_what_all_seats_see_is_shown_beside_ones_own():
    plain, central = SeatRows(small(Hunt)), CentralRows(small(Hunt))
    flat, _ = plain.reset(seed=3)
    seen, _ = central.reset(seed=3)
    ends = 0
    for k in range(40):
        assert np.array_equal(seen["own"], flat)
        assert np.array_equal(seen["all"].reshape(4, 3, 9), np.repeat(flat.reshape(4, 1, 9), 3, axis=1))
        action = np.random.default_rng(k).integers(2, size=12)
        flat, _, *_, told = plain.step(action)
        seen, _, *_, info = central.step(action)
        if "final_obs" in told:
            ends += 1
            over = told["_final_obs"]
            assert np.array_equal(info["final_obs"]["own"][over], told["final_obs"][over])
            whole = info["final_obs"]["all"][over].reshape(-1, 3, 9)
            assert np.array_equal(whole[:, 0], told["final_obs"][over].reshape(-1, 9))
    assert ends


def test_one_controller_earns_the_mean_of_what_the_seats_earn():
    lanes, joint = small(Plank), JointBatch(small(Plank))
    lanes.reset(seed=0)
    _, info = joint.reset(seed=0)
    assert info["action_mask"].shape == (4, 9)
    action = np.zeros((4, 3), np.int64)
    for _ in range(40):
        _, reward, terminated, *_, told = lanes.step(action)
        _, paid, over, *_, info = joint.step(action)
        assert np.allclose(paid, reward.mean(1))
        assert np.array_equal(terminated, over)
        if "episode" in told:
            assert np.allclose(info["episode"]["r"][over], told["episode"]["r"][over].mean(1))


@pytest.mark.parametrize("memory", ["none", "gru"])
def test_every_role_learns_from_its_own_seats_alone(memory):
    lanes = RoleRows(small(Hunt), ("hunter", "hunter", "prey"))
    agent = agents_for(lanes, memory=memory)
    rollout = experience(lanes, agent)
    before = {name: tensor.clone() for name, tensor in agent.state_dict().items()}
    alone = agents_for(lanes, memory=memory)
    alone.load_state_dict(before)
    changed = lanes_of(rollout, np.arange(12))
    changed.reward[:, 2::3] += 100.0  # of the prey
    metrics, _ = agent.update(rollout), alone.update(changed)
    assert {"train/loss", "train_hunter/loss", "train_prey/loss"} <= metrics.keys()
    one, other = agent.state_dict(), alone.state_dict()
    moved = [name for name in before if "network" in name and not torch.equal(before[name], one[name])]
    assert {name.partition(".")[0] for name in moved} == {"hunter", "prey"}
    assert all(torch.equal(one[name], other[name]) for name in before if name.startswith("hunter."))
    assert any(not torch.equal(one[name], other[name]) for name in before if name.startswith("prey."))


def test_roles_act_as_their_agents_would_and_within_their_spaces():
    lanes = RoleRows(small(Hunt), ("hunter", "hunter", "prey"))
    agent = agents_for(lanes)
    obs, info = lanes.reset(seed=0)
    act = agent.act_batch(obs, True, info["action_mask"])
    hunter, prey = agent.roles.values()
    of_prey = np.arange(2, 12, 3)
    assert torch.equal(act.action[of_prey], prey.act_batch(obs[of_prey, :2], True).action)
    of_hunters = np.setdiff1d(np.arange(12), of_prey)
    assert torch.equal(act.action[of_hunters], hunter.act_batch(obs[of_hunters], True).action)
    drawn = torch.stack([agent.act_batch(obs, False, info["action_mask"]).action for _ in range(40)])
    assert drawn[:, of_prey].max() == 1
    assert drawn[:, of_hunters].max() == 2


def test_roles_go_on_exactly_from_their_state():
    lanes = RoleRows(small(Tug))
    agent, other = agents_for(lanes), agents_for(lanes)
    rollout = experience(lanes, agent)
    agent.update(rollout)
    other.load_state_dict(agent.state_dict())
    agent.update(rollout)
    other.update(rollout)
    for name, tensor in agent.state_dict().items():
        assert torch.equal(tensor, other.state_dict()[name])


CASES = {
    "separate": (HUNT, {"seats": "separate", "roles": ("hunter", "hunter", "prey"), "algo": PPO_SMALL}),
    "separate gru": (HUNT, {"seats": "separate", "algo": {**PPO_SMALL, "memory": "gru"}}),
    "central": ("spread", {"central_value": True, "seat_number": True, "algo": PPO_SMALL}),
    "joint": ("spread", {"seats": "joint", "algo": PPO_SMALL}),
    "shared dddqn": ("spread", {"algo": REPLAY}),
    "versus dddqn": ("connect4", {**VERSUS, "eval_against": ("random",), "algo": REPLAY}),
    "shared sac": ("tests.vector.kernel.seated:Tug", {"algo": SAC}),
    "versus sac": ("tests.vector.kernel.seated:Tug", {**VERSUS, "algo": SAC}),
    "versus dddqn, both players and a mirror": (
        "connect4",
        {**VERSUS, "both_players": True, "mirror": True, "eval_against": ("random",), "algo": REPLAY},
    ),
    "versus sac choices": ("connect4", {**VERSUS, "eval_against": ("random",), "algo": SAC}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_resumed_run_writes_the_same_numbers(tmp_path, case):
    world, options = CASES[case]
    through = shoal.train(world, runs_dir=tmp_path / "a", total_steps=1024, **SMALL, **options)
    half = shoal.train(world, runs_dir=tmp_path / "b", total_steps=512, **SMALL, **options)
    resumed = shoal.train(resume=half.run, total_steps=1024, quiet=True)
    ours, theirs = rows(through.run)[-1], rows(resumed.run)[-1]
    assert ours == theirs
    assert any(name.startswith("seats/return_") for row in rows(through.run) for name in row)
    for name, tensor in through.agent.state_dict().items():
        assert torch.equal(tensor, resumed.agent.state_dict()[name])
    assert isinstance(through.agent, RoleAgents) == (options.get("seats") == "separate")


def test_an_agent_with_a_replay_memory_never_takes_a_forbidden_column():
    from shoal.agents.config import DDDQNConfig
    from shoal.agents.dddqn import DDDQN

    lanes = SeatRows(KernelBatch(Connect4, 8))
    agent = DDDQN(lanes.single_observation_space, lanes.single_action_space, DDDQNConfig(num_steps=8, hidden=(16,)))
    obs, info = lanes.reset(seed=0)
    for _ in range(60):
        action = agent.act_batch(obs, False, info["action_mask"]).action.numpy()
        assert info["action_mask"][np.arange(16), action].all()
        obs, *_, info = lanes.step(action)


def test_roles_of_somebody_elses_game_learn_in_spaces_of_their_own(tmp_path):
    pytest.importorskip("mpe2")
    settings = {**SMALL, "num_envs": 2, "backend": "serial", "algo": PPO_SMALL}
    roles = ("hunter", "hunter", "hunter", "prey")
    result = shoal.train(
        "pettingzoo/mpe2.simple_tag_v3:parallel_env", runs_dir=tmp_path, total_steps=128, seats="separate",
        roles=roles, **settings,
    )  # fmt: skip
    hunter, prey = result.agent.roles
    assert (hunter.seats, prey.seats) == ((0, 1, 2), (3,))
    assert (hunter.observation_space.shape, prey.observation_space.shape) == ((16,), (14,))
    assert "train_prey/loss" in result.metrics
    assert shoal.make("pettingzoo/mpe2.simple_tag_v3:parallel_env", 2, backend="serial").num_seats == 4


def test_the_other_player_is_seen_as_the_learner_would_be_in_that_seat():
    def first(obs, action_mask=None, seat=None):
        return action_mask.argmax(1)

    lanes, batch = KernelBatch(Connect4, 6), VersusBatch(KernelBatch(Connect4, 6))
    batch.set_opponents([first], [0, 0, 0, 0, 0, 1])
    batch.show_other()
    seen, told = lanes.reset(seed=5)
    _, info = batch.reset(seed=5)
    rng = np.random.default_rng(0)
    for _ in range(60):
        seat = info["seat"]
        action = (rng.random((6, 7)) * info["action_mask"]).argmax(1)
        *_, info = batch.step(action)
        other, rest = info["other"], (np.arange(6), 1 - seat)
        assert np.array_equal(other["obs"], seen[rest])
        assert np.array_equal(other["mask"], told["action_mask"][rest])
        both = np.zeros((6, 2), np.int64)
        both[np.arange(6), seat], both[rest] = action, other["action"]
        seen, reward, over, _, told = lanes.step(both)
        assert np.array_equal(other["reward"], reward[rest])
        assert np.array_equal(other["next_obs"][~over], seen[rest][~over])
        if over.any():
            assert np.array_equal(other["next_obs"][over], told["final_obs"][rest][over])
        assert other["valid"].all()


def test_the_mirror_of_connect_four_is_the_game_from_behind():
    from shoal.worlds.connect4.lab import LAB

    mirror = LAB.mirror(None)
    one, two = KernelBatch(Connect4, 8), KernelBatch(Connect4, 8)
    (seen, info), (image, _) = one.reset(seed=0), two.reset(seed=0)
    rng = np.random.default_rng(1)
    for _ in range(50):
        action = (rng.random((8, 2, 7)) * info["action_mask"]).argmax(-1)
        seen, reward, *_, info = one.step(action)
        image, paid, *_ = two.step(mirror.action[action])
        assert np.array_equal(image, seen[..., mirror.order] * mirror.obs)
        assert np.array_equal(reward, paid)


@pytest.mark.slow
@pytest.mark.parametrize(
    "way", [{"seats": "shared"}, {"seats": "shared", "central_value": True}, {"seats": "separate"}]
)
def test_every_way_of_ppo_learns_to_spread_out(tmp_path, way):
    result = shoal.train("spread", runs_dir=tmp_path, total_steps=300_000, quiet=True, eval_every=0, **way)
    assert result.mean_reward > -27  # of somebody who acts at random: -37


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"seats": "versus", "central_value": True}, "central_value is for seats='shared', not 'versus'"),
        ({"seats": "shared", "roles": ("a", "a", "b")}, "roles are for seats='separate', not 'shared'"),
        ({"seats": "separate", "roles": ("a", "b")}, "roles names 2 roles for 3 seats"),
        ({"seats": "separate", "roles": ("a", "b", "b")}, "of the role 'b' observe or do different things"),
        ({"seats": "joint", "seat_number": True}, "seat_number is for seats='shared' and 'separate', not 'joint'"),
        ({"seats": "separate", "algo": "dddqn"}, "seats='separate' is for PPO, not for dddqn"),
        ({"central_value": True, "algo": {"memory": "gru"}}, "A central value has no memory"),
        ({"seats": "shared", "both_players": True}, "both_players is for seats='versus', not 'shared'"),
        ({"opponents": ("random",)}, "opponents are for seats='versus', not 'shared'"),
        ({"mirror": True}, "Hunt declares no symmetry"),
        ({"seats": "shared", "runners": 2}, "Runners share lanes and not seats"),
    ],
)
def test_ways_that_do_not_go_together_are_refused(tmp_path, options, sentence):
    with pytest.raises(ConfigError, match=sentence):
        shoal.train(HUNT, runs_dir=tmp_path, total_steps=128, **{**SMALL, **options})


def test_a_central_value_needs_rows_of_numbers():
    class Picture(Hunt):
        """Sees a grid."""

        observation_space = gym.spaces.Box(-20, 20, (2, 2), np.float32)

        def observe(s, p, out):
            for k in range(3):
                out[k, 0, 0] = s.at[k]

    with pytest.raises(ConfigError, match="needs seats that observe a row of numbers"):
        CentralRows(small(Picture))
