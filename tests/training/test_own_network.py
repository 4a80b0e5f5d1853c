"""Networks of a user's own: found again by every verb, or a sentence says what is wrong."""

import json

import numpy as np
import pytest

import shoal
from shoal.cli import main
from shoal.errors import ConfigError
from shoal.training.settings import modernised
from tests.training import nets
from tests.training.worlds import EnvWalk

QUICK = {
    "world": "tests.training.worlds:EnvWalk",
    "backend": "serial",
    "num_envs": 2,
    "total_steps": 32,
    "eval_episodes": 2,
    "algo": {"num_steps": 8, "minibatches": 2, "epochs": 1},
}


@pytest.mark.parametrize("given", ["tests.training.nets:Net", nets.Net])
def test_a_named_network_is_evaluated_played_and_resumed_by_every_verb(given, tmp_path, capsys):
    result = shoal.train(**QUICK, network=given, runs_dir=tmp_path)
    assert json.loads((result.run / "config.json").read_text())["algo"]["network"] == "tests.training.nets:Net"
    assert type(result.agent.network) is nets.Net
    for words in (["eval", "--episodes", "2"], ["play", "--max-steps", "5"]):
        assert main([words[0], str(result.run), *words[1:]]) == 0
    assert main(["train", "--resume", str(result.run), "--total-steps", "64"]) == 0
    assert shoal.load(result.run)(np.zeros((1, 2), np.float32)).shape == (1,)


def test_the_weights_of_a_named_network_follow_from_the_seed(tmp_path):
    runs = [
        shoal.train(**QUICK, network=nets.Net, runs_dir=tmp_path, run_name=name, quiet=True) for name in ("one", "two")
    ]
    one, two = (result.agent.network.policy.weight for result in runs)
    assert (one == two).all()


def test_the_name_stands_where_standard_networks_are_named(tmp_path, capsys):
    named = {**QUICK, "algo": {**QUICK["algo"], "network": "tests.training.nets:Net"}, "quiet": True}
    assert type(shoal.train(**named, runs_dir=tmp_path).agent.network) is nets.Net
    assert shoal.train(**QUICK, network="mlp", runs_dir=tmp_path, quiet=True).agent.config.network == "mlp"
    with pytest.raises(ConfigError, match=r"No network 'natur'\. Did you mean 'nature'"):
        shoal.train(**QUICK, network="natur")
    assert main(["train", "cartpole", "--network", "mlp"]) == 2
    assert "--algo.network" in capsys.readouterr().err


def test_configs_of_earlier_versions_named_it_beside_the_agent():
    old = {"world": "cartpole", "network": "tests.training.nets:Net", "algo": {"name": "ppo", "network": "auto"}}
    assert modernised(old)["algo"]["network"] == "tests.training.nets:Net"
    assert modernised({**old, "network": None}) == {"world": "cartpole", "algo": {"name": "ppo", "network": "auto"}}


def test_a_network_that_is_made_in_python_says_what_will_not_be_possible(tmp_path, capsys):
    space = EnvWalk.observation_space, EnvWalk.action_space
    result = shoal.train(**QUICK, network=nets.Net(*space), runs_dir=tmp_path)
    assert "The network Net was made in Python" in " ".join(capsys.readouterr().out.split())
    assert main(["eval", str(result.run)]) == 2
    assert "made in Python and has no name to import" in capsys.readouterr().err
    again = shoal.train(resume=result.run, total_steps=64, network=nets.Net(*space), quiet=True)
    assert again.total_steps == 64


@pytest.mark.parametrize(
    ("network", "sentence"),
    [
        ("OnlyPolicy", r"OnlyPolicy must return \(params, value, state\), not a Tensor of shape \[2, 2\]"),
        ("WideValue", r"WideValue returned value of shape \[2, 1\] for 2 observations; .* must be \[2\]"),
        ("Forgetful", r"Forgetful has state_size=3, but no `unroll`"),
        ("plain", r"Sequential failed when it was called as network\(obs, state\): TypeError"),
        ("Lonely", r"Lonely could not be made from \(observation_space, action_space\): TypeError"),
        ("nothing", r"network=tests.training.nets:nothing made a int, not an nn.Module"),
    ],
)
def test_what_is_wrong_with_a_network_is_said_before_it_trains(network, sentence, tmp_path):
    with pytest.raises(ConfigError, match=sentence):
        shoal.train(**QUICK, network=f"tests.training.nets:{network}", runs_dir=tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_has_no_name_is_refused():
    with pytest.raises(ConfigError, match=r"has no name to import. Put it into a module"):
        shoal.train(**QUICK, network=lambda *spaces: nets.Net(*spaces))
    with pytest.raises(ConfigError, match="network=3 is not a network"):
        shoal.train(**QUICK, network=3)
