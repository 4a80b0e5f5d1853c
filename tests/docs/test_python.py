"""Every block of Python on every page runs, in order, in one folder."""

from __future__ import annotations

import pytest

import shoal
from tests.docs.blocks import PAGES, blocks_of

OF_OTHERS = {
    "bridges.md": "tests/bridges/test_docs.py",
    "kernels.md": "tests/vector/kernel/test_docs.py",
    "worlds.md": "tests/worlds/test_stranger.py",
}
"""Pages whose blocks are run, and checked more closely, elsewhere."""
SMALLER = {
    "cage2.md": {"25 * 50": "25", "workflows=20": "workflows=2"},
    "experiments.md": {"seeds=8": "seeds=2, total_steps=2048, eval_episodes=2, eval_every=0"},
    "offpolicy.md": {"num_envs=4": "num_envs=4, total_steps=64, eval_episodes=2, eval_every=0"},
    "start.md": {"total_steps=60_000": "total_steps=8_192, eval_every=0"},
    "training.md": {"total_steps=20_000": "total_steps=8_192, eval_every=0", "8_192, num": "2_048, num"},
}
"""What is written instead, so that a test is short."""
SLOW = {"experiments.md"}
RUN = {"num_envs": 4, "total_steps": 256, "algo": {"num_steps": 32}, "eval_episodes": 2, "eval_every": 0}
WITH_PYTHON = [page for page in PAGES if blocks_of(page, "python") and page not in OF_OTHERS]


@pytest.mark.parametrize("page", [pytest.param(p, marks=pytest.mark.slow) if p in SLOW else p for p in WITH_PYTHON])
def test_the_blocks_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "configs").symlink_to(PAGES["README.md"].parent / "configs")
    if page == "deploy.md":  # which is about a run that there is
        shoal.train("cartpole", run_name="pole", quiet=True, **RUN)
    blocks = blocks_of(page, "python")
    for number, block in enumerate(blocks):
        text = block.text
        for long, short in SMALLER.get(page, {}).items():
            text = text.replace(long, short)
        path = tmp_path / (block.file or f"block_{number}.py")
        path.write_text(text)  # a kernel's source must be in a file
        exec(compile(text, str(path), "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("page", SMALLER)
def test_what_is_made_smaller_is_there(page):
    text = "".join(block.text for block in blocks_of(page, "python"))
    assert all(long in text for long in SMALLER[page])


@pytest.mark.parametrize("page", OF_OTHERS)
def test_the_others_read_their_page(page):
    assert page in (PAGES["README.md"].parent / OF_OTHERS[page]).read_text()
