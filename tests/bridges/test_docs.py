"""The Python blocks of docs/bridges.md run as they stand."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

DOC = Path(__file__).parents[2] / "docs" / "bridges.md"
BLOCKS = re.findall(r"```python\n(.*?)```", DOC.read_text(), flags=re.S)


RELATIONS = (
    "hypernym", "derivationally_related_form", "instance_hypernym", "also_see", "member_meronym", "verb_group",
    "synset_domain_topic_of", "has_part", "member_of_domain_usage", "member_of_domain_region", "similar_to",
)  # fmt: skip
RULES = """
r0:0.9:derivationally_related_form(y,x) -> derivationally_related_form(x,y)
r1:0.6:verb_group(y,x) -> verb_group(x,y)
r2:0.5:derivationally_related_form(x,z), derivationally_related_form(z,y) -> hypernym(x,y)
r3:0.5:hypernym(x,z), hypernym(z,y) -> hypernym(x,y)
r4:0.4:similar_to(x,z), also_see(z,y) -> also_see(x,y)
"""


def write_wordnet(folder):
    """A graph of the form of WN18RR: its 11 relations, many entities, few edges each, a handful of rules."""
    rng = np.random.default_rng(0)
    folder.mkdir()
    edges = {(RELATIONS[rng.integers(11)], *rng.integers(10_000, 11_000, 2)) for _ in range(3000)}
    edges |= {(relation, k, k + 1) for relation in RELATIONS for k in range(10_000, 10_100)}
    lines = [f"{relation}({first},{second})." for relation, first, second in sorted(edges)]
    rng.shuffle(lines)
    for name, part in (("train", lines[200:]), ("valid", lines[:100]), ("test", lines[100:200])):
        (folder / f"{name}.txt").write_text("\n".join(part) + "\n")
    (folder / "rules.txt").write_text(RULES.strip() + "\n")


def shapes_of_the_kg_recipe(seen):
    """Those of the table below the block, and that something was learned from every key."""
    data, lanes = seen["data"], (4, 16)
    shapes = {
        "sub_index": (1, 6, 3), "derived_sub_indices": (32, 6, 3), "action_mask": (32,), "logits": (32,), "action": (),
        "action_log_prob": (), "state_value": (1,), "advantage": (1,), "value_target": (1,), ("next", "reward"): (1,),
        ("next", "done"): (1,), ("next", "terminated"): (1,), ("next", "state_value"): (1,),
        ("next", "sub_index"): (1, 6, 3), ("next", "derived_sub_indices"): (32, 6, 3), ("next", "action_mask"): (32,),
    }  # fmt: skip
    for key, shape in shapes.items():
        assert data[key].shape == (*lanes, *shape), key
    assert data["action_mask"].gather(-1, data["action"].unsqueeze(-1)).all()
    assert seen["env"].batch.data.kb.vocabulary.num_regular == len(RELATIONS)
    terms = [seen["losses"][f"loss_{name}"] for name in ("objective", "critic", "entropy")]
    assert all(term.shape == () and torch.isfinite(term) for term in terms)
    grads = [p.grad for name, p in seen["network"].named_parameters() if "twin_bias" not in name]
    assert all(torch.isfinite(grad).all() and grad.any() for grad in grads)
    return True


PROVES = {
    "wn18rr": shapes_of_the_kg_recipe,
    'ShoalEnv("cartpole"': lambda seen: (
        seen["data"].shape == (64, 64) and torch.isfinite(seen["losses"]["loss_objective"])
    ),
    "sb3": lambda seen: seen["model"].num_timesteps == 8192 and len(seen["model"].ep_info_buffer) == 100,
    "pettingzoo": lambda seen: (
        seen["info"]["reward_of"].shape == (2, 2) and seen["game"].agents == ["player_1", "player_2"]
    ),
    "recv": lambda seen: len(seen["lanes"]) >= 4 and len(seen["obs"]) == len(seen["lanes"]),
}
"""By a word of the block: what must hold of its variables once it has run."""


@pytest.mark.parametrize("word", PROVES)
def test_the_blocks_of_the_page_run(word, tmp_path, monkeypatch):
    """All but RLlib's, which `rllib/test_training.py` runs where there is a Ray."""
    monkeypatch.chdir(tmp_path)
    write_wordnet(tmp_path / "wn18rr")
    (block,) = (block for block in BLOCKS if word in block)
    seen = {"__name__": "__main__"}
    exec(compile(block, word, "exec"), seen)
    assert PROVES[word](seen)


def test_every_block_is_run_by_somebody():
    assert all(any(word in block for word in (*PROVES, "rllib")) for block in BLOCKS)
