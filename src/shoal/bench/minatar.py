"""Suite "minatar": the five games against gymnax's, the package's own, and the latter through Gymnasium; and learned by
PPO, beside a torch script on gymnax's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shoal.bench.contender import Contender, Run, Work
from shoal.bench.report import Interleaved, make_console, measure, print_result, write_result
from shoal.bench.rounds import Result
from shoal.bench.step.actions import ROWS, random_actions
from shoal.bench.step.peers import gymnasium_vector
from shoal.bench.trainers import Contender as Learner
from shoal.bench.trainers import Work as Training
from shoal.errors import ConfigError, unknown_name
from shoal.training.lab import Verb

GAMES = {
    "breakout": "Breakout",
    "asterix": "Asterix",
    "freeway": "Freeway",
    "seaquest": "Seaquest",
    "space-invaders": "SpaceInvaders",
}
"""By the names of our worlds, as the others call them."""

LEARNERS = (
    Learner("shoal", "shoal_loop", "torch"),
    Learner("bare convolutions", "convolutions", "torch"),
    Learner("cleanrl style, gymnax", "torch_ppo:gymnax", "gymnax"),
)
LEARNING = Training(64, 128, epochs=4, minibatches=8, lr=1e-3)


@dataclass(frozen=True)
class MinAtarArgs(Interleaved):
    """Measure steps per second of the five games: Shoal and every peer installed, one thread each, interleaved."""

    games: tuple[str, ...] = tuple(GAMES)
    """Of breakout, asterix, freeway, seaquest and space-invaders."""
    num_envs: int = 1_024
    """Lanes."""
    seconds: float = 0.15
    learn: bool = False
    """Train instead of only stepping: PPO with the small network, 64 lanes of 128 steps, beside a script in CleanRL's
    manner on gymnax's games."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for game in self.games:
            if game not in GAMES:
                raise unknown_name("game", game, GAMES, "`shoal bench minatar --help`")
        if self.num_envs < 1:
            raise ConfigError("--num-envs must be at least 1.")


def work_of(game: str, num_envs: int) -> Work:
    """One game for all contenders, random actions of the minimal set, sticky actions where there are any."""
    ours: dict[str, Any] = {"env": f"minatar-{game}", "num_threads": 1}
    contenders = (
        Contender("shoal kernel", "shoal.bench.step.ours:shoal_batch", {**ours, "copy": False}),
        Contender("shoal kernel, copies", "shoal.bench.step.ours:shoal_batch", ours),
        Contender(
            "gymnax scan", "shoal.bench.step.peers:gymnax_scan", {"env": f"{GAMES[game]}-MinAtar"}, package="gymnax"
        ),
        Contender("minatar loop", "shoal.bench.minatar:package_loop", {"game": game}, package="minatar"),
        Contender("gymnasium sync", "shoal.bench.minatar:package_vector", {"game": game}, package="minatar"),
    )
    return Work(f"minatar-{game}", num_envs, contenders)


def package_loop(num_envs: int, game: str) -> Run:
    """The package itself, one object per lane, boards gathered in one array: nothing of Gymnasium's around it."""
    import gymnasium as gym
    from minatar import Environment

    lanes = [Environment(game.replace("-", "_")) for _ in range(num_envs)]
    for k, lane in enumerate(lanes):
        lane.seed(k)
        lane.reset()
    moves = np.array(lanes[0].minimal_action_set())
    actions = [moves[row].tolist() for row in random_actions(gym.spaces.Discrete(len(moves)), num_envs)]
    boards = np.zeros((num_envs, *lanes[0].state_shape()), np.bool_)
    rewards, ended = np.zeros(num_envs, np.float32), np.zeros(num_envs, np.bool_)

    def run(count: int) -> int:
        for k in range(count):
            for i, (lane, action) in enumerate(zip(lanes, actions[k % ROWS], strict=True)):
                rewards[i], ended[i] = lane.act(action)
                if ended[i]:
                    lane.reset()
                boards[i] = lane.state()
        return count

    return run


def package_vector(num_envs: int, game: str) -> Run:
    """The package as Gymnasium makes a batch of it."""
    import gymnasium as gym
    from minatar.gym import register_envs

    name = f"MinAtar/{GAMES[game]}-v1"
    if name not in gym.registry:
        register_envs()
    return gymnasium_vector(num_envs, name, "sync")


def run(args: MinAtarArgs) -> int:
    """The command."""
    if args.learn:
        return _run_learning(args)
    works = [work_of(game, args.num_envs) for game in args.games]
    measure("minatar", works, args)
    return 0


def _run_learning(args: MinAtarArgs) -> int:
    from shoal.bench.learning import measure_learning
    from shoal.bench.train import notes_on_absent

    console, result = make_console(), Result([], notes_on_absent(LEARNERS), {})
    for game in args.games:
        work = replace(LEARNING, world=f"minatar-{game}")
        result.rows.extend(measure_learning("minatar", work, LEARNERS, args.rounds, console.print))
    print_result(result, console)
    write_result(result, args.out)
    return 0


SUITE = Verb(MinAtarArgs, run)
