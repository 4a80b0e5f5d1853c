"""The C on docs/deploy.md compiles with headers that `shoal export` writes, and acts as the agent."""

from __future__ import annotations

import ctypes
import subprocess

import numpy as np
import pytest

from shoal.policy.export import c
from tests.docs.blocks import blocks_of
from tests.policy.agents import PLAIN, STACK, exportable, observations, random_agent

BLOCKS = blocks_of("deploy.md", "c")


@pytest.mark.parametrize(("function", "space"), [("choose", PLAIN), ("look", STACK)], ids=["choose", "look"])
def test_it_compiles_and_acts(function, space, tmp_path):
    (block,) = [block for block in BLOCKS if f"int {function}(" in block.text]
    agent = random_agent(space=space)
    c.write(exportable(agent, space), tmp_path / "policy.h")
    (tmp_path / "page.c").write_text(block.text)
    command = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", "page.so", "page.c", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    act = getattr(ctypes.CDLL(str(tmp_path / "page.so")), function)
    obs = observations(space, 20)
    actions = [act(np.ascontiguousarray(row).ctypes.data_as(ctypes.c_void_p)) for row in obs]
    assert actions == agent.act_batch(obs, True).action.tolist()


def test_no_block_is_left_out():
    assert len(BLOCKS) == 2
