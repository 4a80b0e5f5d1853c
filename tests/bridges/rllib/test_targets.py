"""The arithmetic of advantages and targets: worked examples, and equality of all modes on the same transitions."""

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ray.rllib.algorithms.ppo.torch.default_ppo_torch_rl_module import DefaultPPOTorchRLModule
from ray.rllib.connectors.learner import (
    AddColumnsFromEpisodesToTrainBatch,
    AddObservationsFromEpisodesToBatch,
    AddOneTsToEpisodesAndTruncate,
    BatchIndividualItems,
    GeneralAdvantageEstimation,
    LearnerConnectorPipeline,
    NumpyToTensor,
)
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from shoal.bridges.rllib.lanes import Cut
from shoal.bridges.rllib.targets import Trajectory, episode_rows, join, lane_rows, lane_targets, standardise
from shoal.bridges.rllib.train_batch import value_pass

GAMMA, LAMBDA = 0.9, 0.8


def own_value(obs):
    """In the worked examples an observation is its own value."""
    return obs[:, 0].astype(np.float32)


def lanes_of(values, terminated, truncated, skip=None, cuts=()):
    """A trajectory [T, N] whose observations are their values and whose rewards are 1, but 0 where skipped."""
    obs = np.array(values, np.float32)[..., None]  # [T + 1, N, 1]
    T, N = len(obs) - 1, obs.shape[1]
    flags = np.zeros((3, T, N), np.bool_)
    for flag, places in zip(flags, (terminated, truncated, skip or ()), strict=True):
        for t, lane in places:
            flag[t, lane] = True
    reward = np.where(flags[2], 0.0, 1.0).astype(np.float32)
    blank = np.zeros((T, N), np.float32)
    cuts = [(t, Cut(np.array([lane]), np.array([[value]], np.float32))) for t, lane, value in cuts]
    return Trajectory(obs, blank, blank, blank[..., None], reward, flags[0], flags[1], flags[2] if skip else None, cuts)


def test_worked_example_of_next_step():
    values = [(1, 0.5), (2, 1.5), (3, 2.5), (4, 0.5), (1, 1), (2, 2), (3, 3)]
    lanes = lanes_of(values, terminated=[(2, 0)], truncated=[(4, 1)], skip=[(3, 0), (5, 1)])
    advantage, target = lane_targets(lanes, own_value, GAMMA, LAMBDA)
    first = [1.9872, 0.26, -2.0, None, 3.024, 1.7], [2.9872, 2.26, 1.0, None, 4.024, 3.7]
    second = [3.571957, 2.391606, 0.89112, 2.696, 1.8, None], [4.071957, 3.891606, 3.39112, 3.196, 2.8, None]
    for lane, (advantages, targets) in enumerate((first, second)):
        for t in range(6):
            if advantages[t] is not None:
                assert advantage[t, lane] == pytest.approx(advantages[t], abs=1e-5)
                assert target[t, lane] == pytest.approx(targets[t], abs=1e-5)
    rows = join([lane_rows(lanes, own_value, GAMMA, LAMBDA)], keep_skipped=False)
    assert len(rows.target) == 10
    assert len(join([lane_rows(lanes, own_value, GAMMA, LAMBDA)], keep_skipped=True).target) == 12


def test_worked_example_of_same_step():
    values = [(1, 0.5), (2, 1.5), (3, 2.5), (1, 0.5), (2, 1)]
    lanes = lanes_of(values, terminated=[(2, 0)], truncated=[(1, 1)], cuts=[(1, 1, 4.0)])
    advantage, _ = lane_targets(lanes, own_value, GAMMA, LAMBDA)
    assert advantage[:, 0] == pytest.approx([1.9872, 0.26, -2.0, 1.8], abs=1e-5)
    assert advantage[:, 1] == pytest.approx([4.082, 3.1, -0.042, 1.4], abs=1e-5)


def test_skipped_rows_do_not_count_in_the_standardisation():
    advantage = np.array([1.0, 2.0, 3.0, 99.0], np.float32)
    skip = np.array([False, False, False, True])
    assert standardise(advantage, skip)[:3] == pytest.approx(standardise(advantage[:3], None))


# ---------------------------------------------------------------------- all modes on the same transitions

SPACES = gym.spaces.Box(-10, 10, (2,), np.float32), gym.spaces.Discrete(3)


@pytest.fixture(scope="module")
def module():
    spec = RLModuleSpec(DefaultPPOTorchRLModule, *SPACES, model_config={"fcnet_hiddens": [16]})
    return MultiRLModuleSpec(rl_module_specs={DEFAULT_MODULE_ID: spec}).build()


class Story:
    """Random episodes of N lanes, told once and cut into fragments of T steps the way each mode sees them."""

    def __init__(self, seed, num_envs, num_steps, end_rate):
        self.rng = np.random.default_rng(seed)
        self.N, self.T, self.end_rate = num_envs, num_steps, end_rate
        self.ended = np.zeros(num_envs, np.bool_)
        self.last = self._obs()

    def _obs(self, rows=None):
        return self.rng.normal(size=(rows or self.N, 2)).astype(np.float32)

    def same_step(self):
        """T steps of all lanes in which an ended lane begins anew at once."""
        obs, cuts = [self.last], []
        blank = np.zeros((self.T, self.N), np.float32)
        reward = self.rng.normal(size=(self.T, self.N)).astype(np.float32)
        draw = self.rng.random((self.T, self.N))
        terminated, truncated = draw < self.end_rate, draw > 1 - self.end_rate
        for t in range(self.T):
            lanes = np.flatnonzero(truncated[t])
            cuts.append((t, Cut(lanes, self._obs(len(lanes)) if len(lanes) else np.zeros((0, 2), np.float32))))
            obs.append(self._obs())
        self.last = obs[-1]
        action = self.rng.integers(0, 3, (self.T, self.N))
        dist = self.rng.normal(size=(self.T, self.N, 3)).astype(np.float32)
        return Trajectory(np.stack(obs), action, blank, dist, reward, terminated, truncated, None, cuts)


def as_episodes(lanes):
    """The same transitions as RLlib's episodes, one per part of a lane between two ends."""
    episodes = []
    finals = {(t, lane): obs for t, cut in lanes.cuts for lane, obs in zip(cut.lanes, cut.obs, strict=True)}
    for lane in range(lanes.reward.shape[1]):
        episode = None
        for t in range(lanes.num_steps):
            if episode is None:
                episode = SingleAgentEpisode(observation_space=SPACES[0], action_space=SPACES[1])
                episode.add_env_reset(lanes.obs[t, lane])
            terminated, truncated = bool(lanes.terminated[t, lane]), bool(lanes.truncated[t, lane])
            episode.add_env_step(
                finals.get((t, lane), lanes.obs[t + 1, lane]),
                lanes.action[t, lane],
                lanes.reward[t, lane],
                terminated=terminated,
                truncated=truncated,
                extra_model_outputs={
                    "action_logp": lanes.log_prob[t, lane],
                    "action_dist_inputs": lanes.dist_inputs[t, lane],
                },
            )
            if terminated or truncated or t == lanes.num_steps - 1:
                episodes.append(episode.to_numpy())
                episode = None
    return episodes


def with_reset_rows(lanes):
    """The same transitions under NEXT_STEP: after an end comes one row more, which only resets the lane.

    Lanes then differ in length; each is padded at its end with rows to skip, in front of which the trace is cut.
    """
    columns = [[] for _ in range(lanes.reward.shape[1])]  # (obs, reward, terminated, truncated, skip, row in `lanes`)
    finals = {(t, lane): obs for t, cut in lanes.cuts for lane, obs in zip(cut.lanes, cut.obs, strict=True)}
    for lane, column in enumerate(columns):
        for t in range(lanes.num_steps):
            flags = bool(lanes.terminated[t, lane]), bool(lanes.truncated[t, lane])
            column.append((lanes.obs[t, lane], lanes.reward[t, lane], *flags, False, t))
            if any(flags):
                final = finals.get((t, lane), np.zeros(2, np.float32))
                column.append((final, 0.0, False, False, True, t))
    return columns


def rllibs_targets(episodes, module):
    """Value targets by RLlib's own pipeline, without the artificial rows it adds."""
    pipeline = LearnerConnectorPipeline(
        connectors=[
            AddOneTsToEpisodesAndTruncate(),
            AddObservationsFromEpisodesToBatch(as_learner_connector=True),
            AddColumnsFromEpisodesToTrainBatch(),
            BatchIndividualItems(),
            NumpyToTensor(as_learner_connector=True),
            GeneralAdvantageEstimation(gamma=GAMMA, lambda_=LAMBDA),
        ],
        input_observation_space=SPACES[0],
        input_action_space=SPACES[1],
    )
    batch = pipeline(rl_module=module, batch={}, episodes=episodes, shared_data={})[DEFAULT_MODULE_ID]
    return batch["value_targets"][batch["loss_mask"]].numpy()


@settings(max_examples=8)
@given(
    seed=st.integers(0, 2**31 - 1),
    num_envs=st.integers(1, 4),
    num_steps=st.integers(1, 12),
    end_rate=st.sampled_from([0.0, 0.1, 0.3]),
)
def test_all_modes_agree_with_rllib_across_ends_and_fragments(module, seed, num_envs, num_steps, end_rate):
    story = Story(seed, num_envs, num_steps, end_rate)
    net = module[DEFAULT_MODULE_ID]

    def values(obs):
        return value_pass(net, obs, "cpu")

    for _ in range(3):
        lanes = story.same_step()
        advantage, target = lane_targets(lanes, values, GAMMA, LAMBDA)
        by_lane = target.T.reshape(-1), advantage.T.reshape(-1)  # episodes come lane by lane
        of_episodes = episode_rows(as_episodes(lanes), values, GAMMA, LAMBDA)
        assert of_episodes.target == pytest.approx(by_lane[0], abs=1e-4)
        assert of_episodes.advantage == pytest.approx(by_lane[1], abs=1e-4)
        assert rllibs_targets(as_episodes(lanes), module) == pytest.approx(by_lane[0], abs=1e-4)
        for lane, column in enumerate(with_reset_rows(lanes)):
            # the lane's last observation, then the same arithmetic with rows to skip
            ended = column[-1][4]
            last = column[-1][0] if ended else lanes.obs[-1, lane]
            obs, rewards, ends, cuts, skips, rows = (list(part) for part in zip(*column, strict=True))
            single = Trajectory(
                np.stack([*obs, last])[:, None],
                *np.zeros((2, len(rows), 1), np.float32),
                np.zeros((len(rows), 1, 3), np.float32),
                np.array(rewards, np.float32)[:, None],
                *(np.array(flag)[:, None] for flag in (ends, cuts, skips)),
            )
            kept = join([lane_rows(single, values, GAMMA, LAMBDA)], keep_skipped=False)
            assert kept.target == pytest.approx(target[:, lane], abs=1e-4)
            assert kept.advantage == pytest.approx(advantage[:, lane], abs=1e-4)


def test_a_trajectory_is_cut_between_lanes():
    lanes = Story(0, 4, 5, 0.3).same_step()
    assert len(lanes) == lanes.env_steps() == 20
    parts = [lanes[:10], lanes.slice(slice(10, None), len_lookback_buffer=1)]
    whole, halves = lane_targets(lanes, own_value, GAMMA, LAMBDA)[1], []
    halves = [lane_targets(part, own_value, GAMMA, LAMBDA)[1] for part in parts]
    assert np.array_equal(np.concatenate(halves, axis=1), whole)
    with pytest.raises(ValueError, match="whole lanes"):
        lanes[:7]
