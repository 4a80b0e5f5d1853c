"""Compare the games with the `minatar` package: `python -m tests.parity minatar [DIR] [--steps N] [--games G ...]`.

With DIR, recordings of the package are replayed; without, the installed package plays beside our lanes. Both sides draw
the same random numbers: the package's generator is replaced by one over the words of a lane's own stream, which the
kernels ask in the order in which the package does. `--record DIR` writes recordings. Prints one JSON object and exits
with 1 if anything differs.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import shoal
from shoal.jit.rng import Rng, seed_words
from shoal.seeding import lane_keys
from tests.parity import minatar_explorer

GAMES = ("breakout", "asterix", "freeway", "seaquest", "space_invaders")
RECORDED_STEPS = 3_000  # more than a whole game of Freeway
LATE = {
    "asterix": ({"spawn_speed": 1, "move_speed": 1}, {"spawn_interval": 1, "move_interval": 1}),
    "seaquest": ({"e_spawn_speed": 1, "move_speed": 2}, {"spawn_interval": 1, "move_interval": 2}),
    "space_invaders": ({"enemy_move_interval": 6}, {"move_interval": 6}),
}
"""The speeds that a very long game reaches, as fields of the package and of our lanes."""


class Draws:
    """Stands in for `numpy.random.RandomState`, as far as the package uses it."""

    def __init__(self, seed: int) -> None:
        self._rng = Rng(seed_words(lane_keys(seed, 1))[0])

    def rand(self, *shape: int) -> Any:
        return np.array([self._rng.uniform() for _ in range(shape[0])]) if shape else self._rng.uniform()

    def randint(self, low: int, high: int | None = None, size: int | None = None) -> Any:
        first, count = (0, low) if high is None else (low, high - low)
        if size is None:
            return first + self._rng.integers(count)
        return np.array([first + self._rng.integers(count) for _ in range(size)])


class Case(NamedTuple):
    """A way to play one game."""

    game: str
    seed: int
    sticky: float
    ramping: bool
    steps: int
    late: bool = False
    """Every episode begins as fast as a long one becomes."""


class Story(NamedTuple):
    """What happened in T steps."""

    action: np.ndarray  # [T], of all six
    board: np.ndarray  # [T, 10, 10, C] bool, after the step: of an ended episode the last one
    reward: np.ndarray  # [T]
    terminated: np.ndarray  # [T]
    first_board: np.ndarray  # [E, 10, 10, C], of the episodes that began after an end


def play_package(case: Case) -> Story:
    """The package's game; `ImportError` where it is not installed."""
    from minatar import Environment

    game = Environment(case.game, sticky_action_prob=case.sticky, difficulty_ramping=case.ramping)
    game.random = game.env.random = Draws(case.seed)  # type: ignore[assignment]
    game.reset()
    late = LATE.get(case.game, ({}, {}))[0] if case.late else {}
    vars(game.env).update(late)
    rng = np.random.default_rng(case.seed)
    steps, first_boards = [], [np.zeros(game.state_shape(), bool)]
    for _ in range(case.steps):
        action = minatar_explorer.choose(game, rng)
        reward, terminated = game.act(action)
        steps.append((action, game.state(), reward, terminated))
        if terminated:
            game.reset()
            vars(game.env).update(late)
            game.last_action = 0  # the package carries it into the next episode; our episodes do not know the last one
            first_boards.append(game.state())
    return Story(*map(np.array, zip(*steps, strict=True)), np.array(first_boards)[1:])


def play_ours(case: Case, actions: np.ndarray, compiled: bool = True) -> Story:
    """Our kernel in one lane."""
    options: dict[str, Any] = {"sticky": case.sticky, "actions": "full", "max_steps": case.steps + 1}
    if case.game not in ("breakout", "freeway"):
        options["ramping"] = case.ramping
    batch = shoal.make(f"minatar-{case.game}", 1, compiled=compiled, **options)
    obs, _ = batch.reset(seed=case.seed)
    late = LATE.get(case.game, ({}, {}))[1] if case.late else {}
    batch.set_lanes(**late)
    steps, first_boards = [], [obs[0]]
    for action in actions:
        obs, reward, terminated, _, info = batch.step(np.array([action]))
        last = info["final_obs"][0] if terminated[0] else obs[0]
        steps.append((action, last.copy(), reward[0], terminated[0]))
        if terminated[0]:
            batch.set_lanes(**late)
            first_boards.append(obs[0].copy())
    return Story(*map(np.array, zip(*steps, strict=True)), np.array(first_boards)[1:])


def difference(theirs: Story, ours: Story) -> str | None:
    """Where two stories part, in words."""
    for name in ("board", "reward", "terminated", "first_board"):
        a, b = getattr(theirs, name), getattr(ours, name)
        same = min(len(a), len(b))
        odd = np.array([not np.array_equal(one, other) for one, other in zip(a[:same], b[:same], strict=True)], bool)
        if odd.any() or len(a) != len(b):
            return f"{name} differs at {int(odd.argmax()) if odd.any() else same} of {len(a)}"
    return None


def write(case: Case, story: Story, path: Path) -> None:
    """A story as an npz file, boards as bits."""
    boards = {name: np.packbits(getattr(story, name)) for name in ("board", "first_board")}
    small = {"action": story.action.astype(np.int8), "reward": story.reward.astype(np.int8)}
    about = json.dumps({**case._asdict(), "channels": story.board.shape[-1]})
    np.savez_compressed(path, case=about, terminated=story.terminated, **small, **boards)


def read(path: Path) -> tuple[Case, Story]:
    """What `write` wrote."""
    with np.load(path) as file:
        stored = dict(file)
    about = json.loads(str(stored.pop("case")))
    shape = (10, 10, about.pop("channels"))
    for name, count in (("board", about["steps"]), ("first_board", int(stored["terminated"].sum()))):
        bits = np.unpackbits(stored[name], count=count * int(np.prod(shape)))
        stored[name] = bits.astype(bool).reshape(count, *shape)
    return Case(**about), Story(**stored)


def live_cases(game: str, steps: int) -> list[Case]:
    """The usual rules, at the highest speeds, without sticky actions, without ramping, moves that stick often."""
    ways = ((0.1, True, False), (0.1, True, True), (0.0, True, False), (0.1, False, False), (0.5, True, False))
    steps //= len(ways)
    return [Case(game, seed, sticky, ramping, steps, late) for seed, (sticky, ramping, late) in enumerate(ways)]


def main(argv: list[str]) -> int:
    """Compare; 0 if nothing differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity minatar", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="folder with recordings of the package")
    parser.add_argument("--steps", type=int, default=40_000, help="transitions per game beside the installed package")
    parser.add_argument("--games", nargs="+", default=list(GAMES), choices=GAMES)
    parser.add_argument("--record", type=Path, help="write recordings of the installed package to this folder")
    arguments = parser.parse_args(argv)
    if arguments.record is not None:
        for seed, game in enumerate(arguments.games):
            case = Case(game, seed, 0.1, True, RECORDED_STEPS)
            write(case, play_package(case), arguments.record / f"{game}.npz")
        return 0
    report: dict[str, Any] = {}
    for game in arguments.games:
        if arguments.folder is not None:
            pairs = [read(arguments.folder / f"{game}.npz")]
        else:
            pairs = [(case, play_package(case)) for case in live_cases(game, arguments.steps)]
        found = [difference(theirs, play_ours(case, theirs.action)) for case, theirs in pairs]
        report[game] = {
            "transitions": sum(case.steps for case, _ in pairs),
            "episodes": int(sum(theirs.terminated.sum() for _, theirs in pairs)),
            "reward": int(sum(theirs.reward.sum() for _, theirs in pairs)),
            "differences": [f"{case}: {words}" for (case, _), words in zip(pairs, found, strict=True) if words],
        }
    print(json.dumps({"world": "minatar", "games": report}, indent=1))
    return 1 if any(result["differences"] for result in report.values()) else 0
