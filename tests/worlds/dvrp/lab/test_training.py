"""Training through the generic loop: banner and lines, masks in the policy, exact resume, evaluation."""

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import shoal  # noqa: E402
from shoal import train  # noqa: E402
from shoal.cli import main  # noqa: E402
from shoal.errors import ConfigError  # noqa: E402
from shoal.training.checkpoint import Checkpoints  # noqa: E402
from shoal.worlds.dvrp.lab.negotiation import Threads  # noqa: E402
from shoal.worlds.dvrp.lab.network import OfferNetwork  # noqa: E402
from tests.terminal import terminal  # noqa: E402

SMALL = {"customers": 5, "iterations": 1, "quotes": True, "compare_noop": True, "reward": "vs_noop_path"}
ALGO = {"num_steps": 5, "minibatches": 2, "epochs": 2, "lr_final": None}


def run(folder, epochs, resume=None, **extra):
    settings = {"env": SMALL, "algo": ALGO, "num_envs": 8, "seed": 3, "eval_episodes": 8, "checkpoint_every": 40}
    if resume is not None:
        return train(resume=resume, total_steps=epochs * 40, quiet=True)
    return train("dvrp", total_steps=epochs * 40, runs_dir=folder, quiet=True, extra=extra, **settings)


def test_the_command_of_the_specification(tmp_path, capsys):
    flags = "--episodes 36 --customers 5 --num-envs 8 --iterations 1 --save-interval 2 --log-interval 2 --device cpu"
    assert main(["train", "dvrp", *flags.split(), "--seed", "42", "--save-dir", str(tmp_path), "--eval"]) == 0
    printed = capsys.readouterr().out
    assert "32 episodes in 8 parallel environments, 4 epochs (1 epoch = 8 episodes), 5 customers" in printed
    lines = [line for line in printed.splitlines() if line.startswith("epoch ")]
    assert [line.split()[1] for line in lines] == ["2/4", "4/4"]
    words = ("average cost", "failure rate", "policy loss", "value loss", "entropy", "total steps 160", "epsilon 0.000")
    for word in (*words, "acceptance", "improvement over no-op", "steps/s"):
        assert word in lines[1], word
    folder = next(tmp_path.iterdir())
    assert Checkpoints(folder / "checkpoints").steps() == [80, 160]
    out = tmp_path / "eval.json"
    assert main(["eval", str(folder), "--episodes", "16", "--seed", "999", "--out", str(out)]) == 0
    assert "without offers over 16 episodes" in capsys.readouterr().out
    assert len(json.loads(out.read_text())["costs"]) == 16


def test_on_a_terminal_every_epoch_stays_above_the_panel(tmp_path, monkeypatch):
    settings = {"env": SMALL, "algo": ALGO, "num_envs": 8, "eval_episodes": 8, "total_steps": 480, "runs_dir": tmp_path}
    with terminal(monkeypatch) as screen:
        train("dvrp", extra={"embedding": "filter"}, **settings)
    lines = "\n".join(screen.lines)
    assert [line.split()[1] for line in screen.lines if line.startswith("epoch ")] == [f"{k}/12" for k in range(1, 13)]
    assert lines.index("12 epochs (1 epoch = 8 episodes)") < lines.index("epoch 1/12")
    assert lines.index("epoch 9/12") < lines.index("flexibility distribution") < lines.index("epoch 10/12")
    assert lines.count("480 / 480") == 1  # one panel, below everything that was said on the way
    assert lines.index("epoch 12/12") < lines.index("480 / 480") < lines.index("Done: ")


def test_quiet_is_silent_on_a_terminal_and_off_it(tmp_path, monkeypatch, capsys):
    with terminal(monkeypatch) as screen:
        run(tmp_path, epochs=1)
    run(tmp_path, epochs=1)
    assert screen.lines == [""]
    assert capsys.readouterr().out == ""


def test_torch_has_one_thread_while_lanes_are_stepped_and_all_to_learn():
    before, threads = torch.get_num_threads(), Threads()
    threads.collect()
    assert torch.get_num_threads() == 1
    threads.learn()
    assert torch.get_num_threads() == before


def test_masks_are_learned_and_belong_to_the_policy(tmp_path):
    result = run(tmp_path, epochs=12, embedding="filter", epsilon=0.3)
    masks = result.agent.network.masks
    assert masks[0].all()
    assert not masks[1:6].all()
    assert masks[:, 12].all()
    assert masks[6:].all()  # customers who never came
    assert "rollout/improvement" in result.metrics


def test_a_resumed_run_writes_the_same_numbers(tmp_path):
    whole = run(tmp_path / "a", epochs=12, epsilon=0.0)  # a schedule would depend on the length
    part = run(tmp_path / "b", epochs=11, epsilon=0.0)
    again = run(tmp_path / "b", epochs=12, resume=part.run)
    for name, value in whole.agent.state_dict().items():
        assert torch.equal(value, again.agent.state_dict()[name]), name
    same = ("rollout/improvement", "rollout/acceptance", "train/loss", "eval/mean_reward")
    assert [again.metrics[name] for name in same] == [whole.metrics[name] for name in same]


def test_the_policy_ignores_what_a_customer_would_refuse():
    batch = shoal.make("dvrp", 4, **SMALL)
    network = OfferNetwork(batch.single_observation_space)
    network.masks[1:] = False
    network.masks[1:, 12] = True
    obs, _ = batch.reset(seed=0)
    logits, value, _ = network({name: torch.as_tensor(part) for name, part in obs.items()}, None)
    assert logits.argmax(1).tolist() == [12] * 4
    assert logits.shape == (4, 16)
    assert value.shape == (4,)


def test_a_likely_offer_is_made_whatever_the_type():
    batch = shoal.make("dvrp", 4, **SMALL, trip_ids=True)
    network = OfferNetwork(batch.single_observation_space)
    network.masks[1:] = False
    network.masks[1:, 12] = True
    network.chances[1:] = 0
    network.chances[1:, 9] = 0.9
    obs, _ = batch.reset(seed=0)
    logits, _, _ = network({name: torch.as_tensor(part) for name, part in obs.items()}, None)
    assert ((logits > -1e8).nonzero()[:, 1].reshape(4, 2) == torch.tensor([9, 12])).all()
    who, trip = batch.present_trip()
    assert obs["trip"].tolist() == (1 + 40 * who + trip).tolist()


def test_raw_observations_train_without_masks(tmp_path):
    env = {**SMALL, "obs_mode": "raw"}
    result = train(
        "dvrp", env=env, algo=ALGO, num_envs=8, total_steps=40, eval_episodes=8, runs_dir=tmp_path, quiet=True
    )
    assert not hasattr(result.agent.network, "masks")


def test_policies_are_evaluated_on_the_same_episodes(tmp_path, capsys):
    verdicts = {}
    for policy in ("noop", "max", "random"):
        out = tmp_path / f"{policy}.json"
        words = ["--policy", policy, "--episodes", "40", "--num-envs", "20", "--customers", "10", "--out", str(out)]
        assert main(["eval", "dvrp", *words]) == 0
        verdicts[policy] = json.loads(out.read_text())
    assert "knowing everything beforehand" in capsys.readouterr().out
    assert verdicts["noop"]["improvement_percent"] == 0
    assert verdicts["max"]["improvement_percent"] > 0
    assert verdicts["max"]["acceptance"] == 1
    assert verdicts["noop"]["clairvoyant_percent"] == pytest.approx(4.6, abs=0.2)
    np.testing.assert_allclose(verdicts["noop"]["noop_costs"], verdicts["random"]["noop_costs"], rtol=0.05)


def test_whoever_knows_more_saves_more(tmp_path):
    verdicts = {}
    for policy in ("quote-type", "quote-customer", "quote-trip"):
        out = tmp_path / f"{policy}.json"
        words = ["--policy", policy, "--episodes", "128", "--num-envs", "128", "--customers", "15", "--out", str(out)]
        assert main(["eval", "dvrp", *words]) == 0
        verdicts[policy] = json.loads(out.read_text())
    assert verdicts["quote-trip"]["acceptance"] == 1
    assert verdicts["quote-trip"]["improvement_percent"] > verdicts["quote-customer"]["improvement_percent"]
    assert verdicts["quote-customer"]["improvement_percent"] > verdicts["quote-type"]["improvement_percent"] > 0


@pytest.mark.parametrize(
    ("algo", "extra", "words"),
    [
        ({"num_steps": 7}, {}, "algo.num_steps is 7. Set it to 5"),
        ({}, {"epsilon": 1.5}, "epsilon must be at least 0 and below 1, not 1.5"),
        ({}, {"log_interval": 0}, "log_interval must be at least 1 epoch, not 0"),
    ],
)
def test_settings_that_do_not_fit_are_refused(tmp_path, algo, extra, words):
    with pytest.raises(ConfigError, match=words):
        train("dvrp", env=SMALL, algo={**ALGO, **algo}, num_envs=8, extra=extra, runs_dir=tmp_path, quiet=True)


def test_only_ppo_explores_beyond_masks(tmp_path):
    with pytest.raises(ConfigError, match="which dddqn does not have"):
        train("dvrp", algo="dddqn", customers=5, num_envs=8, runs_dir=tmp_path, quiet=True)
