"""Play with the mouse: a click on a column drops a stone."""

from __future__ import annotations

import json
from contextlib import closing
from importlib.resources import files
from threading import Lock

import numpy as np

from shoal.agents.frozen import FrozenPolicy
from shoal.errors import ConfigError
from shoal.games.lab import page
from shoal.games.lab.entrants import load_policy
from shoal.options import Values
from shoal.vector.kernel import KernelBatch
from shoal.worlds.connect4.lab import LAB
from shoal.worlds.connect4.lanes.bots import BOTS
from shoal.worlds.connect4.lanes.kernel import Connect4
from shoal.worlds.connect4.rendering import BOARD_VIEW
from shoal.worlds.connect4.world import WORLD


class Match:
    """Games of a person against a bot, the agent of a run, or a stored policy. They take turns in beginning."""

    def __init__(self, opponent: str, seed: int | None = None) -> None:
        self.opponent, self.score, self._seat = opponent, [0, 0], 0
        self._lane = KernelBatch(Connect4, 1, autoreset_mode="disabled", num_threads=1)
        self._policy: FrozenPolicy | None = None
        if opponent not in BOTS:
            with closing(KernelBatch(Connect4, 1)) as lanes:
                self._policy = load_policy(opponent, WORLD, lanes)
        self._lock, self._over = Lock(), False
        self._begin(seed)

    def page(self) -> str:
        """The page, complete in one file."""
        text = (files("shoal.worlds.connect4") / "mouse.html").read_text()
        return text.replace("RENDERER", BOARD_VIEW.script).replace("OPPONENT", json.dumps(self.opponent))

    def step(self, action: object) -> Values:
        """After a stone in this column and its answer; for null, as the game stands, or a new one after an end."""
        with self._lock:
            if action is None:
                if self._over:
                    self._seat = 1 - self._seat
                    self._begin(None)
                return self._shown()
            allowed = np.flatnonzero(self._info["action_mask"][0, self._seat]).tolist()
            if self._over or isinstance(action, bool) or not isinstance(action, int) or action not in allowed:
                columns = ", ".join(map(str, allowed))
                raise ConfigError(f"A stone must go into one of the columns {columns}, not {action!r}.")
            self._drop(action)
            self._answer()
            return self._shown()

    def _begin(self, seed: int | None) -> None:
        bot = 0 if self._policy is not None else 1 + BOTS.index(self.opponent)
        self._lane.set_lanes(seat=[0, bot] if self._seat == 0 else [bot, 0])
        self._obs, self._info = self._lane.reset(seed=seed)
        self._over = False
        self._answer()

    def _answer(self) -> None:
        """The policy's move, if there is one and it is on turn; a bot has answered within the step."""
        other = 1 - self._seat
        if self._policy is not None and not self._over and self._info["turn"][0] == other:
            mask = self._info["action_mask"][:, other]
            self._drop(int(self._policy(self._obs[:, other], mask, np.array([other]))[0]))

    def _drop(self, column: int) -> None:
        self._obs, reward, terminated, _, self._info = self._lane.step(np.full((1, 2), column))
        self._over = bool(terminated[0])
        for player, seat in enumerate((self._seat, 1 - self._seat)):
            self.score[player] += int(reward[0, seat] > 0)

    def _shown(self) -> Values:
        frame = BOARD_VIEW.frames(self._lane, self._obs)[0]
        return {"frame": frame, "score": self.score, "over": self._over, "seat": self._seat}


def serve(opponent: str | None = None) -> int:
    """Serve games until interrupted."""
    return page.serve(Match(opponent or LAB.default_policy))
