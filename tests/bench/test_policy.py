"""The suite "policy", whole but short."""

import json

from shoal.bench.policy import PolicyArgs, run


def test_every_form_of_a_policy_has_its_row(tmp_path):
    out = tmp_path / "rows.json"
    assert run(PolicyArgs(out, rounds=2, calls=5)) == 0
    names = {row["name"] for row in json.loads(out.read_text())["rows"]}
    assert {"shoal.load", "torch.export", "c header"} <= names
