"""What the options of training ask for, and for whom."""

import numpy as np
import pytest

import shoal
from shoal.errors import ConfigError
from shoal.worlds.hockey.lab.hooks import mirror_of
from shoal.worlds.hockey.lab.options import HockeyTraining
from shoal.worlds.hockey.world import HockeyOptions

TINY = {"total_steps": 64, "num_envs": 2, "eval_episodes": 1, "quiet": True}


def test_every_kind_of_action_has_a_mirror_image():
    assert mirror_of(HockeyOptions()).action.tolist() == [1, -1, -1, 1]
    assert mirror_of(HockeyOptions(keep_mode=False)).action.tolist() == [1, -1, -1]
    for eight in (HockeyOptions(discrete=True), HockeyOptions(actions="eight")):
        assert mirror_of(eight).action.tolist() == [0, 1, 2, 4, 3, 6, 5, 7]
    assert len(mirror_of(HockeyOptions(keep_mode=False)).obs) == 16


@pytest.mark.parametrize(
    ("extra", "sentence"),
    [
        ({"mirror": True}, "PPO does not remember transitions, so it cannot mirror them"),
        ({"both_players": True}, "both_players needs an agent with a replay memory, and lanes with --opponent pool"),
        ({"self_play": 0.5}, "Curricula and self-play need lanes whose opponents can change"),
    ],
)
def test_what_an_agent_or_lanes_cannot_do_is_told(extra, sentence, tmp_path):
    with pytest.raises(ConfigError, match=sentence):
        shoal.train("hockey", algo={"num_steps": 8, "minibatches": 1}, extra=extra, runs_dir=tmp_path, **TINY)


def test_shares_and_curricula_that_contradict_each_other_are_told():
    with pytest.raises(ConfigError, match=r"self_play must be a share between 0 and 1, not 1\.5"):
        HockeyTraining(self_play=1.5)
    with pytest.raises(ConfigError, match="self_play is for training without a curriculum"):
        HockeyTraining(self_play=0.5, curriculum="file.json")


def test_an_evaluation_in_training_logs_games_won(tmp_path):
    settings = {**TINY, "eval_episodes": 6}
    result = shoal.train("hockey", algo={"num_steps": 32, "minibatches": 1}, runs_dir=tmp_path, **settings)
    for bot in ("weak", "strong"):
        won, lost = result.metrics[f"eval/won_{bot}"], result.metrics[f"eval/lost_{bot}"]
        assert 0.0 <= won <= 1.0 - lost
        assert np.isclose(won * 6, round(won * 6)), "six games against each"
