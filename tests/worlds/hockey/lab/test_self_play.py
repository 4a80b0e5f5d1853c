"""The pool, phases in a real run (resumed exactly), tournaments, and frozen policies."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import shoal
from shoal.agents.frozen import FrozenPolicy, freeze
from shoal.agents.n_step import Steps
from shoal.errors import ConfigError
from shoal.games.lab.pool import Pool, Ratings
from shoal.training.metrics import deterministic, read_rows
from shoal.worlds.hockey.lab.curriculum import Mixture, read
from shoal.worlds.hockey.lab.games import find_entrant, name_of, play, play_pair
from shoal.worlds.hockey.lab.hooks import Phases, opponent_weights
from shoal.worlds.hockey.lab.policies import freeze_run
from shoal.worlds.hockey.lanes.tables import action_table

SMALL = {
    "num_steps": 8,
    "hidden": [16],
    "batch_size": 16,
    "warmup": 200,
    "updates_per_step": 0.05,
    "replay_capacity": 5000,
}
CURRICULUM = {
    "curriculum": {
        "phases": [
            {"name": "alone", "episodes": 6, "environment": {"mode": "TRAIN_SHOOTING"}, "opponent": {"type": "none"}},
            {
                "name": "all",
                "steps": 2400,
                "opponent": {
                    "type": "weighted_mixture",
                    "opponents": [
                        {"type": "basic_strong"},
                        {"type": "self_play"},
                        {"type": "self_play", "strategy": "uniform", "weight": 2.0},
                    ],
                },
                "reward_shaping": {"N": 2, "K": 4},
                "clear_buffer": True,
            },
        ]
    }
}  # fmt: skip


def frozen(seed=0, width=4):
    rng = np.random.default_rng(seed)
    return FrozenPolicy(
        [(rng.normal(size=(18, 8)), np.zeros(8)), (rng.normal(size=(8, width)), np.zeros(width))], "tanh"
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A small DDDQN run through both phases, with everything switched on."""
    folder = tmp_path_factory.mktemp("runs")
    extra = {"curriculum": CURRICULUM, "mirror": True, "both_players": True, "pool_every": 500}
    env = {"opponent": "pool", "actions": "eight"}
    settings = {"num_envs": 8, "total_steps": 6000, "checkpoint_every": 700, "eval_every": 0, "eval_episodes": 2}
    algo = {"name": "dddqn", **SMALL}
    return shoal.train("hockey", runs_dir=folder, quiet=True, extra=extra, env=env, algo=algo, **settings)


def test_phases_follow_each_other_and_end_the_run(run):
    rows = read_rows(run.run / "metrics.jsonl")
    phases = [row["curriculum/phase"] for row in rows]
    assert sorted(set(phases)) == [0.0, 1.0]
    assert phases == sorted(phases)
    assert run.reason == "all 2 phases done"
    assert rows[-1]["step"] < 6000
    assert rows[-1]["curriculum/pool_size"] >= 3
    cleared = next(i for i, phase in enumerate(phases) if phase == 1.0)
    assert rows[cleared]["train/replay_size"] < rows[cleared - 1]["train/replay_size"]


def test_both_players_are_learned_from(run):
    rows = read_rows(run.run / "metrics.jsonl")
    steps = [(row["step"], row["train/replay_size"]) for row in rows if row["curriculum/phase"] == 1.0]
    (first_step, first_size), (last_step, last_size) = steps[1], steps[-1]
    added = (last_size - first_size) / (last_step - first_step)
    assert 1.4 < added < 2.0  # three quarters of the opponents are policies of the same table


def go_back_to_first_checkpoint(run):
    """As if the run had been killed after it: what was written since then is still there."""
    folders = sorted((run / "checkpoints").glob("step_*"), key=lambda f: int(f.name[5:]))
    for folder in folders[1:]:
        shutil.rmtree(folder)
    latest = run / "checkpoints" / "latest"
    latest.unlink()
    latest.symlink_to(folders[0].name)


def test_a_run_with_a_pool_resumes_exactly(run):
    before = [deterministic(row) for row in read_rows(run.run / "metrics.jsonl")]
    go_back_to_first_checkpoint(run.run)
    shoal.train(resume=run.run, quiet=True)
    assert [deterministic(row) for row in read_rows(run.run / "metrics.jsonl")] == before


def test_a_run_frozen_from_its_folder_acts_as_its_agent(run):
    obs = np.random.default_rng(0).normal(size=(50, 18)).astype(np.float32)
    table = action_table("eight")
    chosen = run.agent.act_batch(obs, deterministic=True).action.numpy()
    np.testing.assert_array_equal(freeze_run(run.run)(obs), table[chosen])
    np.testing.assert_array_equal(freeze(run.agent, table)(obs), table[chosen])


@pytest.mark.parametrize("algo", ["sac", "ppo"])
def test_frozen_actors_act_as_their_agents(algo, tmp_path):
    settings = {"sac": {**SMALL, "scale_obs": True}, "ppo": {"num_steps": 8, "normalise_obs": True, "minibatches": 2}}
    made = shoal.train(
        "hockey", algo={"name": algo, **settings[algo]}, num_envs=4, total_steps=256, eval_every=0, eval_episodes=1,
        runs_dir=tmp_path, quiet=True, env={"opponent": "weak"}, extra={"mirror": False},
    )  # fmt: skip
    obs = np.random.default_rng(0).normal(size=(50, 18)).astype(np.float32)
    wanted = made.agent.act_batch(obs, deterministic=True).action.numpy()
    np.testing.assert_allclose(freeze_run(made.run)(obs), wanted, atol=1e-4)
    policy = freeze(made.agent)
    np.testing.assert_allclose(policy(obs), wanted, atol=1e-4)
    policy.save(tmp_path / "policy.safetensors", {"command": "a test"})
    np.testing.assert_array_equal(FrozenPolicy.load(tmp_path / "policy.safetensors")(obs), policy(obs))


def test_a_policy_for_other_spaces_is_refused(tmp_path):
    frozen(width=3).save(tmp_path / "three.safetensors")
    with pytest.raises(
        ConfigError, match=r"three\.safetensors was made for observations of 18 numbers and actions of 3"
    ):
        find_entrant(str(tmp_path / "three.safetensors"))
    values = {
        "curriculum": {
            "phases": [{"episodes": 5, "opponent": {"type": "self_play", "checkpoint": "three.safetensors"}}]
        }
    }
    with pytest.raises(ConfigError, match=r"my\.json .*phases\[0\]\.opponent\.checkpoint: .* and actions of 3"):
        read(values, "my.json", tmp_path)
    (tmp_path / "none.safetensors").write_bytes(b"nothing")
    with pytest.raises(ConfigError, match=r"none\.safetensors is not a stored policy"):
        find_entrant(str(tmp_path / "none.safetensors"))
    with pytest.raises(ConfigError, match="'somebody' cannot take part"):
        find_entrant("somebody")


def test_the_pool_prefers_opponents_that_are_neither_beaten_nor_hopeless():
    pool = Pool(capacity=3)
    for step in (10, 20, 30):
        pool.add(frozen(step), step)
    for _ in range(100):
        pool.note(0, 1.0)
        pool.note(1, 0.0)
    weights = pool.weights("prioritised")
    assert weights[2] > 0.9
    assert weights.min() > 0
    assert pool.weights("latest").tolist() == [0, 0, 1]
    assert pool.weights("uniform").tolist() == [1 / 3] * 3
    pool.add(frozen(40), 40)  # in place of the one that is always beaten
    assert [member.step for member in pool.members] == [40, 20, 30]


def test_weights_of_opponents_keep_to_the_shares_of_the_mixture():
    mixture, pool = Mixture(weak=0.25, learner=0.25, pool=0.5, files=(("x", 1.0),)), Pool()
    assert opponent_weights(mixture, pool) == [0.0, 0.25, 0.0, 0.75, 1.0]
    pool.add(frozen(), 1)
    pool.add(frozen(), 2)
    assert opponent_weights(mixture, pool) == [0.0, 0.25, 0.0, 0.25, 1.0, 0.25, 0.25]


def test_winners_rise_and_draws_do_not_tell_players_apart():
    ratings = Ratings()
    for _ in range(20):
        ratings.note("good", "bad", 1.0)
        ratings.note("one", "two", 0.5)
    assert ratings.shown("good") > ratings.shown("one") > ratings.shown("bad")
    assert ratings.shown("one") == pytest.approx(ratings.shown("two"), abs=0.5)
    assert ratings.table()[0][0] == "good"


def test_a_pair_is_seen_from_both_sides():
    def still(obs):
        return np.zeros((len(obs), 4), np.float32)

    still.hold = 1
    assert play_pair("strong", still, 60, seed=0).mean() > 0.1
    assert play_pair(still, "strong", 60, seed=0).mean() < -0.1
    assert len(play_pair(frozen(1), frozen(2), 30, seed=0)) == 30


def test_the_tournament_verb_prints_and_draws(run, tmp_path, capsys):
    from shoal.cli import main

    page = tmp_path / "tour.html"
    assert main(["tournament", str(run.run), "weak", "strong", "--games", "20", "--out", str(page)]) == 0
    printed = capsys.readouterr().out
    assert "rating" in printed
    name = name_of(str(run.run))
    assert name.startswith("dddqn 0 ")
    assert name in printed
    assert "won by the row" in page.read_text()
    values = json.loads(page.with_suffix(".json").read_text())
    assert values["names"] == [name, "weak", "strong"]
    for i in range(3):
        for j in range(i):
            assert values["won"][i][j] + values["won"][j][i] + values["drawn"][i][j] == pytest.approx(1.0)
    assert (Path(run.run) / "sections" / "tournament.json").exists()
    with pytest.raises(ConfigError, match="at least two"):
        play({"weak": "weak"}, 10)
    assert main(["tournament", "weak", "strong", "--world", "cartpole"]) == 2
    assert main(["tournament", "weak", "weak"]) == 2
    assert "A player is named twice" in capsys.readouterr().err


def test_a_won_game_pays_a_bonus_to_the_steps_that_led_to_it():
    bonus = {"N": 0, "K": 10, "WIN_BONUS_START": 10, "WIN_BONUS_FINAL": 2, "WIN_DISCOUNT_START": 0.5}
    values = {"curriculum": {"phases": [{"episodes": 5, "reward_bonus": {**bonus, "WIN_DISCOUNT_FINAL": 0.5}}]}}
    season = Phases(read(values, "file"), pool_every=1)
    season.index, season.games = 0, 5
    zeros, nothing = np.zeros((6, 2), np.float32), np.zeros((6, 2, 1), np.float32)
    terminated = np.zeros((6, 2), np.bool_)
    terminated[4] = True
    steps = Steps(
        nothing, nothing, zeros.copy(), terminated, ~terminated & False, nothing, nothing, nothing, ~terminated
    )
    steps.reward[4] = [10.0, -10.0]  # won in the first lane, lost in the second
    for lane in range(2):
        season._pay_bonus(0.5, steps, lane, 1, 4)
    # halfway the bonus is 6; step t of a game of T steps gets b * discount ** (T - 2 - t), scaled like every reward
    np.testing.assert_allclose(steps.reward[:, 0], [0, 0.75, 1.5, 3, 10, 0])
    np.testing.assert_allclose(steps.reward[:, 1], [0, 0, 0, 0, -10, 0])


@pytest.mark.slow
def test_a_run_with_bonuses_resumes_exactly(tmp_path):
    phases = [{"name": "paid", "steps": 6000, "opponent": {"type": "basic_weak"}, "reward_bonus": {}}]
    extra = {"curriculum": {"curriculum": {"phases": phases}}, "mirror": False}
    made = shoal.train(
        "hockey", runs_dir=tmp_path, quiet=True, extra=extra, env={"opponent": "pool", "actions": "eight"},
        num_envs=8, total_steps=6000, checkpoint_every=2500, eval_every=0, eval_episodes=2,
        algo={"name": "dddqn", **SMALL},
    )  # fmt: skip
    before = [deterministic(row) for row in read_rows(made.run / "metrics.jsonl")]
    go_back_to_first_checkpoint(made.run)
    shoal.train(resume=made.run, quiet=True)
    assert [deterministic(row) for row in read_rows(made.run / "metrics.jsonl")] == before
