"""`make house` counts what its docstring says, shown on a package of a few lines."""

import textwrap

import pytest

from tools import house

FILES = {
    "__init__.py": "",
    "cli/__init__.py": """
        import sys

        def main(argv):
            from shoal.room.train import train  # imported late, as a command line does
            if "--algo.no-fast" in argv:
                sys.exit(2)
            return train("--algo.no-compiled" not in argv)
    """,
    "room/__init__.py": "",
    "room/train.py": """
        from shoal.agents.agent import Agent
        from shoal.room.importing import registered
        from shoal.room.loop import Loop
        from shoal.world import World

        def train(fast):
            return Loop(World(), Agent(fast)).train()
    """,
    "room/importing.py": """
        from shoal.room.never import helper

        registered = [helper() for _ in range(3)]
    """,
    "room/never.py": "def helper(): return 1",
    "room/loop.py": """
        from shoal.room.log import log

        def collect(batch, agent):
            import numpy as np
            obs = np.zeros(3)
            batch.step_into(agent.act(obs))

        class Loop:
            def __init__(self, batch, agent):
                self.batch, self.agent, self.collect = batch, agent, collect

            def train(self):
                for _ in range(8):
                    self.collect(self.batch, self.agent)
                    log(self.agent.update(0.5))
    """,
    "room/log.py": "def log(number): return None",
    "agents/__init__.py": "",
    "agents/agent.py": """
        import numpy as np
        from shoal.agents.fast import quick
        from shoal.agents.plain import slow
        from shoal.agents.schedule import rate

        class Agent:
            def __init__(self, fast):
                self.learn = quick if fast else slow

            def act(self, obs):
                return self.learn(obs)

            def update(self, progress):
                return rate(progress) * self.learn(np.zeros(2))[0]
    """,
    "agents/schedule.py": "def rate(progress): return 1.0 - progress",
    "agents/plain.py": "def slow(x): return x + 1.0",
    "agents/fast.py": """
        from numba import njit
        from shoal.agents.parts import increase

        @njit
        def quick(x):
            return increase(x)
    """,
    "agents/parts.py": """
        from numba import njit

        @njit
        def increase(x):
            return x + 1.0
    """,
    "world.py": """
        from shoal.rink import move

        class World:
            def __init__(self):
                move(1.0)
                (self.run,) = (code.entry_point for code in move.overloads.values())

            def step_into(self, action):
                self.run(2.0)
    """,
    "rink.py": """
        from numba import njit

        @njit
        def move(x):
            return 2.0 * x
    """,
    "kernel.py": "class Kernel: pass",
    "lanes.py": """
        from typing import Any
        from shoal.kernel import Kernel
        from shoal.helpers import push

        class Base(Kernel):
            def step(s, a, b, c, d, e, f, g, h, i): push(s, a, b, c, d, e, f, g, h)

        class Ball(Base):
            def observe(s, a, b, c, d, e, f, g, h, i): pass

        class Plain:
            def eight(self, a, b, c, d, e, f, g, h): pass
            def nine(self, a, b, c, d, e, f, g, h, i: Any, *rest: Any, **more: "list[Any]") -> "Any | None": pass

        def long():




            return nine
    """,
    "helpers.py": """
        def push(s, a, b, c, d, e, f, g, h): spin(s, a, b, c, d, e, f, g, h)
        def spin(s, a, b, c, d, e, f, g, h): pass
        def idle(s, a, b, c, d, e, f, g, h): pass
    """,
}


@pytest.fixture
def package(tmp_path):
    root = tmp_path / "src" / "shoal"
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).strip() + "\n")
    return root


def test_the_source_is_counted_as_it_says(package):
    rows = {what: (figure, remark) for what, figure, remark in house.figures_of_source(package)}
    lines = sum(text.strip().count("\n") + 1 for text in FILES.values())
    assert rows["lines in src"] == (str(lines), f"{len(FILES)} files")
    # helpers of a kernel, however deep, are its scalar code; `self` is no parameter
    assert rows["functions of more than 8 parameters"] == ("2", "helpers.py idle\nlanes.py nine")
    assert rows["Any in signatures"][0] == "4"
    assert rows["longest function"] == ("6", "long in lanes.py")


def test_compiled_functions_and_what_is_nested_in_them_are_scalar_code(tmp_path):
    nested = (
        "@numba.njit(cache=True)\ndef outer():\n    def inner(a, b, c, d, e, f, g, h, i): pass\ndef other(): pass\n"
    )
    (tmp_path / "one.py").write_text(nested)
    functions = house.ScalarCode(house.read_package(tmp_path)).functions
    assert {function.name for function in functions} == {"outer", "inner"}


def test_walks_see_python_and_compiled_code(package, tmp_path):
    walk = house.trace(package, "iteration", ["train"], tmp_path)
    python = ["agents/agent.py", "agents/schedule.py", "room/log.py", "room/loop.py", "world.py"]
    assert walk["files"] == sorted([*python, "agents/fast.py", "agents/parts.py"])
    assert walk["kernel"] == ["rink.py"]
    start = house.trace(package, "start", ["train"], tmp_path)
    # neither what importing runs nor the iteration itself
    assert start["files"] == [
        "agents/agent.py",
        "cli/__init__.py",
        "rink.py",
        "room/loop.py",
        "room/train.py",
        "world.py",
    ]


def test_the_definition_is_what_runs_without_the_fast_path(package, tmp_path):
    assert house.trace(package, "iteration", ["train", "--algo.no-fast"], tmp_path) is None  # has another name here
    assert house.trace_definition(package, tmp_path) == ["agents/agent.py", "agents/plain.py", "room/loop.py"]


def test_a_run_that_ends_too_early_is_an_error(package, tmp_path):
    loop = package / "room" / "loop.py"
    loop.write_text(loop.read_text().replace("range(8)", "range(2)"))
    with pytest.raises(SystemExit, match="`train` did not come to the end of its walk"):
        house.trace(package, "iteration", ["train"], tmp_path)
