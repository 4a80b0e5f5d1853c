"""The rink turned upside down plays the same game: what mirrored transitions rest on."""

from contextlib import closing

import numpy as np

import shoal
from shoal.worlds.hockey.lanes.tables import action_signs, action_table, mirrored_choices, obs_signs

LANES = 64


def test_mirrored_states_and_actions_have_mirrored_successors():
    rng = np.random.default_rng(0)
    with (
        closing(shoal.make("hockey", LANES, opponent="external")) as rink,
        closing(shoal.make("hockey", LANES, opponent="external")) as mirror,
    ):
        obs, _ = rink.reset(seed=1)
        mirror.reset(seed=1)
        compared = 0
        for _ in range(40):
            mirror.set_state(obs[:, 0] * obs_signs(18))
            # an observation says nothing of these
            mirror.set_lanes(t=rink.lane_state["t"], touching=rink.lane_state["touching"])
            action = rng.uniform(-1, 1, (LANES, 2, 4)).astype(np.float32)
            obs, reward, terminated, truncated, _ = rink.step(action)
            turned, turned_reward, turned_end, _, _ = mirror.step(action * action_signs(4))
            np.testing.assert_array_equal(terminated, turned_end)
            np.testing.assert_allclose(turned_reward, reward, atol=1e-4)
            going = ~(terminated | truncated)
            np.testing.assert_allclose(turned[going], (obs * obs_signs(18))[going], atol=1e-3)
            compared += going.sum()
        assert compared > 1000


def test_mirrored_choices_stand_for_mirrored_actions():
    for name in ("eight", "fine3", "combined"):
        table = action_table(name, True)
        turned = mirrored_choices(table)
        np.testing.assert_allclose(table[turned], table * action_signs(4))
        np.testing.assert_array_equal(turned[turned], np.arange(len(table)))
