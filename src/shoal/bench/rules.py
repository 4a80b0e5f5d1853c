"""Suite "rules": how fast SAC learns hockey by the number of lanes and by which steps earn updates.

Every training gets the same processor time on one thread. They take turns of a few seconds, so that a busy
minute hits all alike; then each plays games against both bots.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from shoal.bench.report import make_console, write_document
from shoal.errors import ConfigError
from shoal.options import Values
from shoal.training.lab import Verb

SETTINGS = {
    "num_steps": 8, "warmup": 5_000, "n_step": 3, "lr": 1e-3, "hidden": (128, 128, 128), "scale_obs": True,
    "replay_capacity": 500_000,
}  # fmt: skip
RULES = ("step", "middle", "batch")
TURN_S = 5.0
WORK = "hockey sac, 3 x 128, against both bots"


def settings_of(rule: str, num_envs: int) -> dict[str, Any]:
    """The agent's settings: one update per step of a lane, per step of the batch, or the middle of both."""
    if rule == "middle":
        return {**SETTINGS, "update_rule": "batch", "updates_per_step": math.sqrt(num_envs), "batch_size": 512}
    return {**SETTINGS, "update_rule": rule}


class Cell:
    """One training that goes on whenever it is its turn."""

    def __init__(self, num_envs: int, rule: str) -> None:
        from shoal.agents.offpolicy import OffPolicyAgent
        from shoal.agents.rollout import Rollout
        from shoal.registry import as_world
        from shoal.training.opening import make_agent, make_batch
        from shoal.training.settings import resolve_config

        self.num_envs, self.rule, self.world = num_envs, rule, as_world("hockey")
        algo = {"name": "sac", "updates_per_step": 1.0, **settings_of(rule, num_envs)}
        given = {"num_envs": num_envs, "num_threads": 1, "env": {"opponent": "mixed"}, "algo": algo}
        self.config = resolve_config(self.world, given)
        self.batch = make_batch(self.world, self.config, num_envs)
        agent = make_agent(self.world, self.config, self.batch)
        assert isinstance(agent, OffPolicyAgent)
        self.agent = agent
        self.rollout = Rollout(self.batch, self.agent)
        self.batch.reset_into(self.rollout.step_buffers(self.rollout.num_steps - 1), seed=0)
        self.cpu = self.wall = 0.0
        while not self.agent.num_updates:  # what is measured is learning
            self._iterate()
        self.before = self.agent.num_env_steps, self.agent.num_updates

    def _iterate(self) -> None:
        from shoal.training.collect import collect
        from shoal.training.hooks import Hooks
        from shoal.training.loop import Clock

        collect(self.batch, self.agent, self.rollout, Hooks(), Clock())
        self.agent.update(self.rollout)

    def train_until(self, cpu_seconds: float) -> None:
        """Go on until the training has had this much processor time."""
        while self.cpu < cpu_seconds:
            wall, cpu = time.perf_counter(), time.process_time()
            self._iterate()
            self.wall += time.perf_counter() - wall
            self.cpu += time.process_time() - cpu

    def row(self, games: int) -> Values:
        """What came of it."""
        from shoal.training.acting import Actor, Player
        from shoal.worlds.hockey.lab.games import evaluate

        player = Player(self.world, self.rule, self.config.env, self.batch, lambda lanes: Actor(self.agent, True))
        against = evaluate(player, games, seed=0).values["against"]
        steps, updates = self.agent.num_env_steps - self.before[0], self.agent.num_updates - self.before[1]
        return {
            "suite": "rules",
            "work": WORK,
            "num_envs": self.num_envs,
            "name": self.rule,
            "cpu_seconds": self.cpu,
            "steps": self.agent.num_env_steps,
            "updates": self.agent.num_updates,
            "steps_per_s": steps / self.wall,
            "steps_per_cpu_s": steps / self.cpu,
            "updates_per_cpu_s": updates / self.cpu,
            "cpu_cores": self.cpu / self.wall,
            "won": {bot: result["won"] for bot, result in against.items()},
        }


@dataclass(frozen=True)
class RulesArgs:
    """Measure SAC on hockey by lanes and by which steps earn updates: speed, and games won after equal time."""

    lanes: tuple[int, ...] = (1, 4, 8, 64)
    """Numbers of lanes."""
    rules: tuple[str, ...] = RULES
    """Of step (one update per step of a lane), middle and batch (one per step of the batch)."""
    seconds: float = 60.0
    """Processor time of every training, in seconds."""
    games: int = 500
    """Games against each bot at the end."""
    out: Path | None = None
    """Write the rows here as JSON."""

    def __post_init__(self) -> None:
        for rule in self.rules:
            if rule not in RULES:
                raise ConfigError(f"--rules {rule} is unknown. Choose among {', '.join(RULES)}.")
        if self.seconds <= 0 or self.games < 2:
            raise ConfigError("--seconds must be above 0 and --games at least 2.")


def run(args: RulesArgs) -> int:
    """The command."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    # with one lane the rules differ by nothing but the middle's larger batches
    cells = [Cell(n, rule) for n in args.lanes for rule in args.rules if n > 1 or rule == args.rules[0]]
    turns = max(1, round(args.seconds / TURN_S))
    for turn in range(1, turns + 1):
        for cell in cells:
            cell.train_until(args.seconds * turn / turns)
    rows = [cell.row(args.games) for cell in cells]
    torch.set_num_threads(threads)
    show(rows)
    write_document(args.out, {"rows": rows})
    return 0


def show(rows: list[Values]) -> None:
    """A line for every training."""
    headings = (
        "update per",
        "steps / CPU-s",
        "updates / CPU-s",
        "times the steps",
        *(f"won: {b}" for b in rows[0]["won"]),
    )
    table = Table(*("lanes", *headings), box=None, title=f"{WORK}, {rows[0]['cpu_seconds']:.0f} CPU-s each")
    for row in rows:
        table.add_row(
            f"{row['num_envs']}",
            row["name"],
            f"{row['steps_per_cpu_s']:,.0f}",
            f"{row['updates_per_cpu_s']:,.0f}",
            f"{row['steps_per_cpu_s'] / rows[0]['steps_per_cpu_s']:.1f}",
            *(f"{share:.0%}" for share in row["won"].values()),
        )
    make_console().print(table)


SUITE = Verb(RulesArgs, run)
