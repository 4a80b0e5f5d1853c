"""The Python blocks of docs/bridges.md run as they stand."""

import re
from pathlib import Path

import pytest
import torch

DOC = Path(__file__).parents[2] / "docs" / "bridges.md"
BLOCKS = re.findall(r"```python\n(.*?)```", DOC.read_text(), flags=re.S)


PROVES = {
    "torchrl": lambda seen: seen["data"].shape == (64, 64) and torch.isfinite(seen["losses"]["loss_objective"]),
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
    (block,) = (block for block in BLOCKS if word in block)
    seen = {"__name__": "__main__"}
    exec(compile(block, word, "exec"), seen)
    assert PROVES[word](seen)


def test_every_block_is_run_by_somebody():
    assert all(any(word in block for word in (*PROVES, "rllib")) for block in BLOCKS)
