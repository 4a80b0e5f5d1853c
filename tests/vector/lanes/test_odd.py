"""Environments as strangers write them: they train, or one sentence says why not."""

import pytest

import shoal
from shoal.errors import ShoalError

QUICK = {
    "num_envs": 2,
    "backend": "serial",
    "total_steps": 32,
    "eval_episodes": 2,
    "algo": {"num_steps": 8, "minibatches": 2, "hidden": [8], "epochs": 1},
    "quiet": True,
}
FINE = (
    "Prints", "SingleNumber", "DoublesAsLists", "NoInfo", "NestedParts", "CountsFromMinusOne", "EndsAtOnce", "Hands",
    "RewardOfOne", "SingleNumberAction", "ChoicesInRows", "SwitchesInRows", "EmptyPart", "ClosesBadly",
)  # fmt: skip
BROKEN = {
    "Leaves": r"Lane 0 raised SystemExit in step\(\): 3",
    "FourValues": r"expected 5, got 4\) \(Environments have reset.*older Gym",
    "OnlyObs": r"raised ValueError in reset\(\).*older Gym",
    "NoSeed": r"unexpected keyword argument 'seed' \(Environments have reset",
    "NoSpaces": "NoSpaces has no observation_space. Set it",
    "NeedsSize": "NeedsSize needs 'size'. Pass it as an argument of the environment: --env-kwargs",
    "NothingToSee": "hold no numbers, so there is nothing to learn from",
    "InfoList": "the info is a list, not a dict",
    "HugeReward": "the reward is too large for a float",
    "TwoRewards": r"the reward is array\(\[1., 1.\]\), not a number",
    "Wanders": "Lane 0 has the observation_space .*, the others",
}


@pytest.mark.parametrize("name", FINE)
def test_what_is_odd_trains(name, tmp_path):
    assert shoal.train(f"tests.vector.lanes.odd:{name}", runs_dir=tmp_path, **QUICK).total_steps == 32


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_said_in_a_sentence(name, tmp_path):
    with pytest.raises(ShoalError, match=BROKEN[name]):
        shoal.train(f"tests.vector.lanes.odd:{name}", runs_dir=tmp_path, **QUICK)


def test_one_that_leaves_on_a_worker_does_not_take_the_run_with_it():
    batch = shoal.make("tests.vector.lanes.odd:Leaves", 2, backend="workers", on_fault="restart")
    batch.reset(seed=0)
    *_, truncated, info = batch.step([0, 1])
    batch.close()
    assert truncated.all()
    assert info["_fault"].all()
