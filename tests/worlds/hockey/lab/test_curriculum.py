"""Curriculum files: the original's load unchanged; every mistake is named with file and field."""

import json

import pytest

from shoal.errors import ConfigError
from shoal.training.settings import read_settings, resolve_config
from shoal.worlds.hockey.lab.curriculum import SHAPING, Mixture, load, read
from shoal.worlds.hockey.lab.curriculum_settings import settings_from
from shoal.worlds.hockey.lab.policies import stored_policies
from shoal.worlds.hockey.world import WORLD

SIMPLE = {  # the field names of the original system, as its simple curriculum has them
    "curriculum": {
        "phases": [
            {
                "name": "shooting",
                "episodes": 8000,
                "environment": {"mode": "TRAIN_SHOOTING", "keep_mode": True},
                "opponent": {"type": "none", "weight": 1.0, "checkpoint": None, "deterministic": True},
                "reward_shaping": None,
            },
            {
                "name": "defence",
                "episodes": 8000,
                "environment": {"mode": "TRAIN_DEFENSE", "keep_mode": True},
                "opponent": {"type": "basic_weak"},
                "reward_shaping": {"N": 600, "K": 400, "CLOSENESS_START": 20, "CLOSENESS_FINAL": 1.5},
                "reward_bonus": None,
                "clear_buffer": True,
            },
            {
                "name": "normal",
                "episodes": 15000,
                "environment": {"mode": "NORMAL", "keep_mode": True},
                "opponent": {
                    "type": "weighted_mixture",
                    "opponents": [
                        {"type": "basic_weak", "weight": 0.8},
                        {"type": "basic_strong", "weight": 0.2, "agent_type": "DDDQN"},
                    ],
                },
            },
            {
                "name": "strong",
                "episodes": 40000,
                "environment": {
                    "mixture": [{"mode": "NORMAL", "weight": 0.9}, {"mode": "TRAIN_DEFENSE", "weight": 0.1}]
                },
                "opponent": {"type": "archive", "distribution": {"pfsp": 0.5, "random": 0.3, "baseline": 0.2}},
            },
        ]
    },
    "hyperparameters": {"learning_rate": 5e-4, "batch_size": 512},
    "training": {
        "max_episode_steps": 500,
        "updates_per_step": 1,
        "warmup_steps": 80_000,
        "train_freq": 4,
        "reward_scale": 0.5,
        "checkpoint_save_freq": 100,
        "eval_frequency": 100_000,
    },
    "agent": {
        "type": "DDDQN",
        "hyperparameters": {
            "hidden_dims": [256, 512, 256],
            "target_update_freq": 2000,
            "eps_min": 0.1,
            "use_huber": True,
        },
        "checkpoint_path": None,
    },
}  # fmt: skip


def changed(**changes):
    """The simple curriculum with its first phase changed."""
    values = json.loads(json.dumps(SIMPLE))
    values["curriculum"]["phases"][0] |= changes
    return values


def config_of(file, **given):
    """The configuration of a run with this file."""
    return resolve_config(WORLD, given, read_settings(file), source=str(file))


def test_the_originals_file_loads_unchanged(tmp_path):
    file = tmp_path / "simple.json"
    file.write_text(json.dumps(SIMPLE))
    config = config_of(file, num_envs=4)
    assert (config.world, config.num_envs, config.algo.name) == ("hockey", 4, "dddqn")
    assert (config.algo.lr, config.algo.batch_size, config.algo.hidden) == (5e-4, 512, (256, 512, 256))
    assert (config.algo.target_every, config.algo.epsilon_final, config.algo.loss) == (2000, 0.1, "huber")
    assert (config.algo.warmup, config.algo.updates_per_step, config.algo.reward_scale) == (80_000, 0.25, 0.5)
    assert (config.algo.gamma, config.algo.n_step, config.algo.tau, config.algo.scale_obs) == (0.99, 1, None, False)
    assert (config.env.opponent, config.env.actions, config.env.hold) == ("pool", "eight", 1)
    assert not config.extra.mirror
    assert config.total_steps == 2 * 8000 * 80 + 15_000 * 250 + 40_000 * 250
    phases = read(config.extra.curriculum, "config.json")
    assert [phase.name for phase in phases] == ["shooting", "defence", "normal", "strong"]
    assert phases[0].opponents == Mixture(nobody=1.0)
    assert phases[2].opponents == Mixture(weak=0.8, strong=0.2)
    assert phases[3].opponents == Mixture(weak=0.1, strong=0.1, pool=0.8)
    assert phases[3].modes == (("NORMAL", 0.9), ("TRAIN_DEFENSE", 0.1))


def test_shaping_is_held_then_fades_linearly():
    schedule = read(SIMPLE, "file")[1].shaping
    infos = ("reward_closeness_to_puck", "reward_touch_puck", "reward_puck_direction", "winner")
    assert schedule.at(0) == schedule.at(600) == dict(zip(infos, (20, 15, 0, 0), strict=True))
    assert schedule.at(800) == dict(zip(infos, (10.75, 8, 1, 0), strict=True))
    assert schedule.at(1000) == schedule.at(9999)
    assert schedule.at(1000)["reward_touch_puck"] == SHAPING["TOUCH_FINAL"]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (changed(epsodes=3), r"phases\[0\] has an unknown key 'epsodes'"),
        (changed(episodes=0), r"phases\[0\]\.episodes=0 must be a whole number of at least 1"),
        (changed(episodes=None), "needs episodes, steps or win_rate"),
        (changed(win_rate=1.5), r"win_rate=1.5 must be a number from 0 to 1"),
        (changed(environment={"mode": "HARD"}), r"environment\.mode='HARD' is not a mode"),
        (changed(environment={"keep_mode": False}), "keep_mode must be the same in all phases"),
        (
            changed(environment={"mixture": [{"mode": "NORMAL", "weight": 0}]}),
            r"the weights of .*environment\.mixture sum to 0",
        ),
        (changed(opponent={"type": "basic"}), r"opponent\.type='basic' is unknown: use none, basic_weak"),
        (
            changed(opponent={"type": "weighted_mixture", "opponents": [{"type": "none", "weight": 0.0}]}),
            r"the weights of .*opponent\.opponents sum to 0",
        ),
        (
            changed(opponent={"type": "self_play", "checkpoint": "gone.safetensors"}),
            r"opponent\.checkpoint: There is no policy 'gone.safetensors'",
        ),
        (changed(reward_shaping={"N": -1}), r"reward_shaping\.N=-1.0 is negative"),
        (changed(reward_shaping={"CLOSENESS": 3}), "has an unknown key 'CLOSENESS'"),
        ({"curriculum": {"phases": []}}, "must be a list of at least one phase"),
    ],
)
def test_mistakes_are_named_with_file_and_field(values, words):
    with pytest.raises(ConfigError, match=words) as caught:
        read(values, "my.json")
    assert str(caught.value).startswith("my.json has")


def test_all_mistakes_are_listed_together(tmp_path):
    with pytest.raises(ConfigError, match=r"3 error\(s\)"):
        read(changed(episodes=0, opponent={"type": "x"}, colour="red"), "my.json")
    file = tmp_path / "bad.json"
    agent = {"type": "TDMPC2", "hyperparameters": {"speed": 1}}
    file.write_text(json.dumps({**changed(episodes=0), "agent": agent, "extra": 1}))
    with pytest.raises(ConfigError, match=r"bad.json has 4 error") as caught:
        config_of(file)
    for words in ("episodes=0", "agent.type='TDMPC2' is not available", "unknown key 'speed'", "unknown key 'extra'"):
        assert words in str(caught.value)


def test_what_is_not_a_table_is_told_among_the_other_mistakes(tmp_path):
    values = {**SIMPLE, "agent": 3, "training": "fast", "hyperparameters": [1]}
    with pytest.raises(ConfigError, match=r"3 error\(s\): agent must hold named values, not 3; hyperparameters must"):
        settings_from(values, tmp_path / "my.json")
    (tmp_path / "list.json").write_text("[1]")
    with pytest.raises(ConfigError, match=r"list\.json must hold named values, not \[1\]"):
        load(str(tmp_path / "list.json"))


def test_a_scale_is_not_learned_where_little_moves(tmp_path):
    game = {"environment": {"mode": "NORMAL"}, "opponent": {"type": "basic_weak"}}
    agent = {"type": "DDDQN", "hyperparameters": {"scale_obs": True}}
    for change in ({"environment": {"mode": "TRAIN_SHOOTING"}}, {"opponent": {"type": "none"}}):
        with pytest.raises(ConfigError, match="scale_obs learns how large numbers are in the first phase"):
            settings_from({**changed(**{**game, **change}), "agent": agent}, tmp_path / "my.json")
    assert settings_from({**changed(**game), "agent": agent}, tmp_path / "my.json")["algo"]["scale_obs"]


def test_the_shipped_curricula_are_valid():
    config = config_of("configs/hockey_curriculum.json")
    assert config.algo.name == "dddqn"
    assert config.extra.mirror
    for name in ("all_round", "rather_the_bots"):
        (phase,) = read(*load(f"configs/hockey_{name}.json"))
        assert phase.opponents.files[0][0] == str(stored_policies()["self-play"])


def test_opponents_are_found_beside_the_file_or_by_their_names(tmp_path):
    sac = stored_policies()["sac"]
    (tmp_path / "mine.safetensors").write_bytes(sac.read_bytes())
    for checkpoint, path in (("mine.safetensors", tmp_path / "mine.safetensors"), ("sac", sac)):
        file = tmp_path / "file.json"
        file.write_text(json.dumps(changed(opponent={"type": "self_play", "checkpoint": checkpoint})))
        phase = read(*load(config_of(file).extra.curriculum))[0]
        assert phase.opponents == Mixture(files=((str(path), 1.0),))


def test_a_memory_that_is_too_small_names_file_and_field(tmp_path):
    file = tmp_path / "small.json"
    agent = {"type": "DDDQN", "hyperparameters": {"buffer_size": 100}}
    file.write_text(json.dumps({**SIMPLE, "agent": agent}))
    with pytest.raises(ConfigError, match=r"small\.json: replay_capacity=100 is smaller than batch_size=512"):
        config_of(file)
