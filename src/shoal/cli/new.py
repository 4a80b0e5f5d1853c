"""`shoal new kernel|env|world NAME`: a start that runs, with its test."""

from __future__ import annotations

import keyword
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from shoal.options import Flag


@dataclass(frozen=True)
class NewArgs:
    """Write a small environment that runs as it is, with its test: a kernel, a gymnasium.Env, or a world's package."""

    kind: Annotated[Literal["kernel", "env", "world"], Flag("KIND", positional=True)]
    """kernel: scalar Python that is compiled; env: a gymnasium.Env; world: an installable package with options."""
    name: Annotated[str, Flag("NAME", positional=True)]
    """What to call it: a Python name such as windy_grid."""
    folder: Path = Path()
    """Where to write it."""


def main(argv: list[str]) -> int:
    """Write the files, refuse to overwrite any, and print what to do next."""
    from shoal.cli.options import parse
    from shoal.errors import ConfigError

    args = parse(NewArgs, argv, "shoal new")
    name = args.name.replace("-", "_").lower()
    if not name.isidentifier() or keyword.iskeyword(name):
        raise ConfigError(f"{args.name!r} cannot name a Python module. Use letters, digits and _, e.g. windy_grid.")
    if name in sys.stdlib_module_names or name in ("shoal", "gymnasium", "numpy", "numba", "torch"):
        raise ConfigError(f"{args.name!r} is the name of a module that exists already. Choose another.")
    words = {"NAME": name, "CLASS": "".join(part.title() for part in name.split("_")), "TITLE": name.replace("_", "-")}
    files = {_fill(path, words): _fill(text, words) for path, text in _FILES[args.kind].items()}
    for path in files:
        if (args.folder / path).exists():
            raise ConfigError(f"{args.folder / path} exists already. Choose another name or another --folder.")
    for path, text in files.items():
        target = args.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        print(f"wrote {target}")
    print(_fill(_NEXT[args.kind], words))
    return 0


def _fill(text: str, words: dict[str, str]) -> str:
    return re.sub("__(NAME|CLASS|TITLE)__", lambda match: words[match[1]], text)


_KERNEL = '''"""Catch what falls: move a paddle below a ball."""

import gymnasium as gym
import numpy as np
from shoal.vector.kernel import Kernel, i32, record


class __CLASS__(Kernel):
    """Catch what falls."""

    observation_space = gym.spaces.Box(0, 1, (3,), np.float32)
    action_space = gym.spaces.Discrete(3)  # left, stay, right
    state = record(x=i32, y=i32, paddle=i32)  # all that a lane remembers
    params = {"width": 8, "height": 8}  # constants: shoal.make(__CLASS__, 64, width=5)

    def reset(s, p, rng):
        s.x, s.y, s.paddle = rng.integers(p.width), 0, p.width // 2

    def step(s, action, p, rng):
        s.paddle = min(max(s.paddle + action - 1, 0), p.width - 1)
        s.y += 1
        landed = s.y >= p.height
        reward = 0.0
        if landed:
            reward = 1.0 if s.x == s.paddle else -1.0
        return reward, landed, False  # reward, terminated, truncated

    def observe(s, p, out):
        out[0], out[1], out[2] = s.x / p.width, s.y / p.height, s.paddle / p.width
'''
_KERNEL_TEST = """import numpy as np
import shoal
from __NAME__ import __CLASS__


def test_a_ball_is_caught():
    batch = shoal.make(__CLASS__, 2, compiled=False)
    batch.reset(seed=0)
    batch.set_lanes(x=[4, 0], y=7, paddle=4)
    obs, reward, terminated, truncated, info = batch.step(np.array([1, 1]))
    assert reward.tolist() == [1.0, -1.0]
    assert terminated.all()
"""
_ENV = '''"""Catch what falls: move a paddle below a ball."""

import gymnasium as gym
import numpy as np


class __CLASS__(gym.Env):
    """Catch what falls."""

    def __init__(self, width: int = 8, height: int = 8) -> None:
        self.width, self.height = width, height
        self.observation_space = gym.spaces.Box(0, 1, (3,), np.float32)
        self.action_space = gym.spaces.Discrete(3)  # left, stay, right

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.y, self.paddle = int(self.np_random.integers(self.width)), 0, self.width // 2
        return self._observe(), {}

    def step(self, action):
        self.paddle = min(max(self.paddle + int(action) - 1, 0), self.width - 1)
        self.y += 1
        landed = self.y >= self.height
        reward = (1.0 if self.x == self.paddle else -1.0) if landed else 0.0
        return self._observe(), reward, landed, False, {}

    def _observe(self):
        return np.array([self.x / self.width, self.y / self.height, self.paddle / self.width], np.float32)
'''
_ENV_TEST = """from __NAME__ import __CLASS__


def test_a_ball_lands():
    env = __CLASS__()
    env.reset(seed=0)
    for _ in range(env.height):
        obs, reward, terminated, truncated, info = env.step(1)
    assert terminated
    assert reward in (-1.0, 1.0)
"""
_WORLD = {
    "__NAME__/pyproject.toml": """[project]
name = "__TITLE__"
version = "0.1"
dependencies = ["shoal"]

[project.entry-points."shoal.worlds"]
__TITLE__ = "__NAME__.world:WORLD"

[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[tool.setuptools]
packages = ["__NAME__"]
""",
    "__NAME__/__NAME__/__init__.py": "",
    "__NAME__/__NAME__/world.py": '''"""The door of the world: cheap to import."""

from dataclasses import asdict, dataclass

from shoal import World


@dataclass(frozen=True)
class __CLASS__Options:
    """Catch what falls."""

    width: int = 8
    """Cells from side to side."""
    height: int = 8
    """Cells from top to bottom."""


def make(num_envs, options, batch):
    from __NAME__.lanes import __CLASS__
    from shoal.vector.kernel import KernelBatch

    return KernelBatch(__CLASS__(**asdict(options)), num_envs, **batch.given())


WORLD = World("__TITLE__", "me/__CLASS__-v0", "catch what falls", __CLASS__Options, make, lab="__NAME__.lab:LAB")
''',
    "__NAME__/__NAME__/lanes.py": _KERNEL,
    "__NAME__/__NAME__/lab.py": '''"""What the world brings to training; docs/worlds.md lists all there is."""

from shoal.training.lab import Headline, Lab, Preset

LAB = Lab(
    presets={"ppo": Preset("catches after some seconds", {"num_envs": 64, "total_steps": 100_000})},
    headlines=(Headline("rollout/ep_rew_mean", "caught less missed", ".2f"),),
)
''',
    "__NAME__/tests/test___NAME__.py": _KERNEL_TEST.replace("from __NAME__ import", "from __NAME__.lanes import"),
}
_FILES = {
    "kernel": {"__NAME__.py": _KERNEL, "test___NAME__.py": _KERNEL_TEST},
    "env": {"__NAME__.py": _ENV, "test___NAME__.py": _ENV_TEST},
    "world": _WORLD,
}
_NEXT = {
    "kernel": "Next: pytest test___NAME__.py; shoal check __NAME__:__CLASS__; shoal train __NAME__:__CLASS__",
    "env": "Next: pytest test___NAME__.py; shoal check __NAME__:__CLASS__; shoal train __NAME__:__CLASS__",
    "world": "Next: pip install -e __NAME__; shoal check __TITLE__; shoal train __TITLE__; pytest __NAME__/tests",
}
