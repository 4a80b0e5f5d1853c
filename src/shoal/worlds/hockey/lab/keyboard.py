"""Play with the keyboard: a page that asks for one step after the other.

It sends the keys that are held down as an action, fifty times a second.
"""

from __future__ import annotations

import json
from importlib.resources import files
from threading import Lock

import numpy as np

from shoal.agents.frozen import FrozenPolicy
from shoal.errors import ConfigError
from shoal.games.lab import page
from shoal.options import Values
from shoal.world import BatchOptions
from shoal.worlds.hockey.lab import LAB
from shoal.worlds.hockey.lab.policies import stored_policies
from shoal.worlds.hockey.lanes.batch import make_rink
from shoal.worlds.hockey.rendering import RINK
from shoal.worlds.hockey.world import BOTS, EXTERNAL, SEATS, HockeyOptions


class Match:
    """Games of a person, on the left, against a bot or a stored policy."""

    def __init__(self, opponent: str, seed: int | None = None) -> None:
        stored = stored_policies()
        if opponent not in (*BOTS, *stored):
            names = ", ".join(map(repr, (*BOTS, *stored)))
            raise ConfigError(f"Nobody called {opponent!r} plays hockey here. Use one of {names}.")
        options = HockeyOptions(opponent=EXTERNAL, starter="alternate")
        self.batch = make_rink(1, options, BatchOptions(autoreset_mode="disabled", num_threads=1))
        self._policy = None if opponent in BOTS else FrozenPolicy.load(stored[opponent])
        self._theirs, self._age = np.zeros(4, np.float32), 0
        if self._policy is None:
            self.batch.set_lanes(seat=[0, SEATS.index(opponent)])
        self.opponent = opponent
        self.meta = {**RINK.meta(self.batch), "names": ["you", opponent]}
        self.score = [0, 0]
        self._lock = Lock()
        self._obs, _ = self.batch.reset(seed=seed)

    def step(self, action: object) -> Values:
        """One step with the person's action; the picture after it, the score, and whether the game is over."""
        good = isinstance(action, list) and len(action) == 4 and all(isinstance(part, int | float) for part in action)
        row = np.array(action if good else [np.nan], np.float32)
        if not np.isfinite(row).all():
            raise ConfigError(f"An action must be four numbers from -1 to 1, not {action!r}.")
        with self._lock:
            if self._policy is not None and self._age % self._policy.hold == 0:
                self._theirs = self._policy(self._obs[:, 1])[0]
            both = np.stack([np.clip(row, -1.0, 1.0), self._theirs])[None]
            self._age += 1
            self._obs, _, terminated, truncated, info = self.batch.step(both)
            frame = RINK.frames(self.batch, self._obs)[0]
            over = bool(terminated[0] or truncated[0])
            if over:
                self._age = 0
                for player, winner in enumerate((1, -1)):
                    self.score[player] += int(info["winner"][0] == winner)
                self._obs, _ = self.batch.reset(options={"reset_mask": np.array([True])})
            return {"frame": frame, "score": self.score, "over": over}

    def page(self) -> str:
        """The page, complete in one file."""
        text = (files("shoal.worlds.hockey") / "keyboard.html").read_text()
        return text.replace("RENDERER", RINK.script).replace("META", json.dumps(self.meta))


def serve(opponent: str | None = None) -> int:
    """Serve games until interrupted."""
    return page.serve(Match(opponent or LAB.default_policy))
