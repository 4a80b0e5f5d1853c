"""The Python blocks of docs/bridges.md run as they stand."""

import re
from pathlib import Path

import pytest

DOC = Path(__file__).parents[2] / "docs" / "bridges.md"
BLOCKS = re.findall(r"```python\n(.*?)```", DOC.read_text(), flags=re.S)


@pytest.mark.parametrize("number", [k for k, block in enumerate(BLOCKS) if "rllib" not in block])
def test_the_blocks_of_the_page_run(number, tmp_path, monkeypatch):
    """All but RLlib's, which `rllib/test_training.py` runs where there is a Ray."""
    monkeypatch.chdir(tmp_path)
    exec(compile(BLOCKS[number], f"block {number}", "exec"), {"__name__": "__main__"})
