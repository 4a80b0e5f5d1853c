"""More small environments in the manner of others: deques, named tuples, generators, returns midway, lists of lists."""

from __future__ import annotations

import functools
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from itertools import permutations
from typing import NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces


def cmp(a, b):
    return float(a > b) - float(a < b)


MAX_HP = 20
WEAPONS = {"sword": (4, 0.8), "bow": (3, 0.9), "fist": (1, 1.0)}


class Snake(gym.Env):
    metadata = {"render_modes": ["ansi"], "render_fps": 10}

    def __init__(self, size: int = 8, render_mode: str | None = None):
        super().__init__()
        self.size = size
        self.render_mode = render_mode
        self.action_space = spaces.Discrete(4)
        self.observation_space = spaces.Box(low=0, high=3, shape=(size, size), dtype=np.uint8)
        self.snake: deque = deque()
        self.direction = (0, 1)
        self.food: tuple[int, int] = (0, 0)

    def _place_food(self) -> None:
        free = [(r, c) for r in range(self.size) for c in range(self.size) if (r, c) not in self.snake]
        if not free:
            self.food = (-1, -1)
            return
        self.food = free[self.np_random.integers(len(free))]

    def _get_obs(self) -> np.ndarray:
        grid = np.zeros((self.size, self.size), dtype=np.uint8)
        for r, c in self.snake:
            grid[r, c] = 1
        head = self.snake[0]
        grid[head] = 2
        if self.food[0] >= 0:
            grid[self.food] = 3
        return grid

    def reset(self, *, seed: int | None = None, options: dict | None = None):
        super().reset(seed=seed)
        mid = self.size // 2
        self.snake = deque([(mid, mid), (mid, mid - 1), (mid, mid - 2)])
        self.direction = (0, 1)
        self._place_food()
        self.steps = 0
        self.score = 0
        return self._get_obs(), {"score": self.score}

    def step(self, action):
        assert self.action_space.contains(action), f"invalid action {action}"
        moves = [(-1, 0), (0, 1), (1, 0), (0, -1)]
        new_dir = moves[action]
        if (new_dir[0] + self.direction[0], new_dir[1] + self.direction[1]) != (0, 0):
            self.direction = new_dir
        head_r, head_c = self.snake[0]
        new_head = (head_r + self.direction[0], head_c + self.direction[1])
        self.steps += 1
        reward = -0.01
        terminated = False
        if not (0 <= new_head[0] < self.size and 0 <= new_head[1] < self.size) or new_head in self.snake:
            terminated = True
            reward = -1.0
        else:
            self.snake.appendleft(new_head)
            if new_head == self.food:
                self.score += 1
                reward = 1.0
                self._place_food()
            else:
                self.snake.pop()
        truncated = self.steps >= 200
        return self._get_obs(), reward, terminated, truncated, {"score": self.score}


class BlackjackPlus(gym.Env):
    DECK = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10, 10]
    HIT, STAND, DOUBLE = range(3)

    def __init__(self, natural=True):
        self.natural = natural
        self.action_space = spaces.Discrete(3)
        self.observation_space = spaces.MultiDiscrete([32, 11, 2])

    def draw(self):
        return int(self.np_random.choice(self.DECK))

    def draw_hand(self):
        return [self.draw(), self.draw()]

    @staticmethod
    def usable_ace(hand):
        return int(1 in hand and sum(hand) + 10 <= 21)

    def total(self, hand):
        return sum(hand) + 10 if self.usable_ace(hand) else sum(hand)

    def is_bust(self, hand):
        return self.total(hand) > 21

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.dealer = self.draw_hand()
        self.player = self.draw_hand()
        while self.total(self.player) < 12:
            self.player.append(self.draw())
        return self._obs(), {}

    def _obs(self):
        return np.array(
            [min(self.total(self.player), 31), self.dealer[0], self.usable_ace(self.player)], dtype=np.int64
        )

    def step(self, action):
        bet = 1.0
        match int(action):
            case self.HIT:
                self.player.append(self.draw())
                if self.is_bust(self.player):
                    return self._obs(), -1.0, True, False, {}
                return self._obs(), 0.0, False, False, {}
            case self.DOUBLE:
                bet = 2.0
                self.player.append(self.draw())
                if self.is_bust(self.player):
                    return self._obs(), -bet, True, False, {}
            case _:
                pass
        while self.total(self.dealer) < 17:
            self.dealer.append(self.draw())
        mine = self.total(self.player)
        theirs = 0 if self.is_bust(self.dealer) else self.total(self.dealer)
        reward = bet * cmp(mine, theirs)
        if self.natural and sorted(self.player) == [1, 10] and reward == 1.0:
            reward = 1.5
        return self._obs(), reward, True, False, {}


class Vec(NamedTuple):
    x: float
    y: float

    def __add__(self, other):
        return Vec(self.x + other.x, self.y + other.y)

    def __sub__(self, other):
        return Vec(self.x - other.x, self.y - other.y)

    def scaled(self, k):
        return Vec(self.x * k, self.y * k)

    def norm(self):
        return math.hypot(self.x, self.y)


class Pursuit(gym.Env):
    def __init__(self):
        self.action_space = spaces.Discrete(5)
        self.observation_space = spaces.Box(-50, 50, (4,), np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.me = Vec(0.0, 0.0)
        angle = self.np_random.uniform(0, 2 * math.pi)
        self.foe = Vec(10 * math.cos(angle), 10 * math.sin(angle))
        self.t = 0
        return self._obs(), {}

    def _obs(self):
        d = self.foe - self.me
        return np.array([d.x, d.y, self.me.x, self.me.y])

    def step(self, action):
        moves = [Vec(0.0, 0.0), Vec(1.0, 0.0), Vec(-1.0, 0.0), Vec(0.0, 1.0), Vec(0.0, -1.0)]
        self.me = self.me + moves[action]
        away = self.foe - self.me
        dist = away.norm()
        if dist > 1e-9:
            self.foe = self.foe + away.scaled(0.6 / dist)
        self.t += 1
        caught = (self.foe - self.me).norm() < 1.5
        return self._obs(), 10.0 if caught else -0.1 * dist, caught, self.t >= 80, {"distance": dist}


class Hanoi(gym.Env):
    def __init__(self, disks=3):
        self.disks = disks
        self.moves = list(permutations(range(3), 2))
        self.action_space = spaces.Discrete(len(self.moves))
        self.observation_space = spaces.MultiDiscrete([3] * disks)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.pegs = [list(range(self.disks, 0, -1)), [], []]
        self.count = 0
        return self._obs(), {}

    def _obs(self):
        where = np.zeros(self.disks, dtype=np.int64)
        for k, peg in enumerate(self.pegs):
            for disk in peg:
                where[disk - 1] = k
        return where

    def step(self, action):
        src, dst = self.moves[action]
        self.count += 1
        if not self.pegs[src] or (self.pegs[dst] and self.pegs[dst][-1] < self.pegs[src][-1]):
            return self._obs(), -1.0, False, self.count >= 100, {"legal": False}
        self.pegs[dst].append(self.pegs[src].pop())
        solved = len(self.pegs[2]) == self.disks
        return self._obs(), 100.0 if solved else -0.1, solved, self.count >= 100, {"legal": True}


class Action(IntEnum):
    ATTACK = 0
    DEFEND = 1
    HEAL = 2
    RUN = 3


@dataclass
class Fighter:
    hp: int = MAX_HP
    armor: int = 0
    potions: int = 2
    weapon: str = "sword"

    def is_alive(self) -> bool:
        return self.hp > 0

    def hit(self, damage: int) -> int:
        dealt = max(0, damage - self.armor)
        self.hp = max(0, self.hp - dealt)
        return dealt


class Dungeon(gym.Env):
    def __init__(self, config: dict | None = None):
        cfg = {"enemy_weapon": "fist", "max_turns": 50}
        cfg.update(config or {})
        self.cfg = cfg
        self.observation_space = spaces.Box(low=0, high=100, shape=(5,), dtype=np.float32)
        self.action_space = spaces.Discrete(len(Action))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.hero = Fighter()
        self.enemy = Fighter(hp=int(self.np_random.integers(8, 16)), weapon=self.cfg["enemy_weapon"])
        self.turn = 0
        return self._obs(), {}

    def _obs(self):
        return np.array([self.hero.hp, self.hero.armor, self.hero.potions, self.enemy.hp, self.turn], dtype=np.float32)

    def _attack(self, attacker, defender):
        damage, accuracy = WEAPONS[attacker.weapon]
        if self.np_random.random() <= accuracy:
            return defender.hit(damage + int(self.np_random.integers(0, 3)))
        return 0

    def step(self, action):
        action = Action(action)
        reward = 0.0
        self.hero.armor = 0
        if action is Action.ATTACK:
            reward += 0.1 * self._attack(self.hero, self.enemy)
        elif action is Action.DEFEND:
            self.hero.armor = 2
        elif action is Action.HEAL:
            if self.hero.potions > 0:
                self.hero.potions -= 1
                self.hero.hp = min(MAX_HP, self.hero.hp + 6)
            else:
                reward -= 0.2
        else:
            if self.np_random.uniform() < 0.3:
                return self._obs(), -0.5, True, False, {"fled": True}
        if self.enemy.is_alive():
            reward -= 0.1 * self._attack(self.enemy, self.hero)
        self.turn += 1
        won = not self.enemy.is_alive()
        lost = not self.hero.is_alive()
        if won:
            reward += 1.0
        elif lost:
            reward -= 1.0
        return self._obs(), reward, won or lost, self.turn >= self.cfg["max_turns"], {"fled": False}


class Cave(gym.Env):
    """Flappy-like with deque of pipes as small objects and generators."""

    @dataclass
    class Pipe:
        x: float
        gap: float
        passed: bool = False

    GRAVITY, FLAP, SPEED = 0.01, -0.05, 0.05

    def __init__(self):
        self.action_space = spaces.Discrete(2)
        self.observation_space = spaces.Box(-5, 5, (4,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.y, self.vy = 0.5, 0.0
        self.pipes = deque([self.Pipe(1.0, 0.5), self.Pipe(1.6, float(self.np_random.uniform(0.3, 0.7)))])
        self.score = 0
        return self._obs(), {"score": 0}

    def _next(self):
        return next(p for p in self.pipes if p.x > -0.1)

    def _obs(self):
        p = self._next()
        return np.array([self.y, self.vy, p.x, p.gap], dtype=np.float32)

    def step(self, action):
        self.vy = self.FLAP if action == 1 else self.vy + self.GRAVITY
        self.y += self.vy
        reward = 0.1
        crashed = not 0.0 <= self.y <= 1.0
        for pipe in self.pipes:
            pipe.x -= self.SPEED
            if not pipe.passed and pipe.x < 0:
                pipe.passed = True
                self.score += 1
                reward += 1.0
                if abs(self.y - pipe.gap) > 0.25:
                    crashed = True
        if self.pipes[0].x < -0.2:
            self.pipes.popleft()
            self.pipes.append(self.Pipe(self.pipes[-1].x + 0.6, float(self.np_random.uniform(0.3, 0.7))))
        return self._obs(), -1.0 if crashed else reward, crashed, self.score >= 20, {"score": self.score}


class Poker(gym.Env):
    """Kuhn poker vs random: cards dealt by permutation, tuple history as string."""

    def __init__(self):
        self.action_space = spaces.Discrete(2)
        self.observation_space = spaces.MultiDiscrete([3, 4])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cards = self.np_random.permutation(3)[:2]
        self.history = ""
        return self._obs(), {}

    def _obs(self):
        return np.array([self.cards[0], {"": 0, "pb": 1, "pp": 2, "b": 3}.get(self.history, 3)])

    def _showdown(self, stake):
        return float(stake) if self.cards[0] > self.cards[1] else -float(stake)

    def step(self, action):
        if self.history == "":
            self.history += "b" if action else "p"
            bet = self.np_random.random() < 0.5
            if action:
                return self._obs(), self._showdown(2) if bet else 1.0, True, False, {}
            if not bet:
                return self._obs(), self._showdown(1), True, False, {}
            self.history += "b"
            return self._obs(), 0.0, False, False, {}
        reward = self._showdown(2) if action else -1.0
        return self._obs(), reward, True, False, {}


class Reactor(gym.Env):
    """Flags, partial, callables in a dict of actions, kwargs only."""

    def __init__(self, *, noise: Callable | None = None, **limits: float):
        self.limits = {"temp": 400.0, "pressure": 50.0} | limits
        self.commands = {0: self._heat, 1: self._cool, 2: self._vent, 3: functools.partial(self._wait, factor=0.99)}
        self.action_space = spaces.Discrete(len(self.commands))
        self.observation_space = spaces.Box(0, 1000, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.temp = 300 + 10 * self.np_random.standard_normal()
        self.pressure = 20.0
        self.energy = 0
        return self._obs(), {}

    def _obs(self):
        return np.array((self.temp, self.pressure), dtype=np.float32)

    def _heat(self):
        self.temp += 5
        return 1

    def _cool(self):
        self.temp -= 4
        return 1

    def _vent(self):
        self.pressure *= 0.9
        return 2

    def _wait(self, factor):
        self.temp *= factor
        return 0

    def step(self, action):
        self.energy += self.commands[int(action)]()
        self.pressure += 0.01 * (self.temp - 300)
        bad = self.temp > self.limits["temp"] or self.pressure > self.limits["pressure"]
        out = max(0.0, self.temp - 320) * 0.01
        return self._obs(), -10.0 if bad else out, bad, self.energy > 100, {"energy": self.energy}


class OwnGenerator(gym.Env):
    """Numbers from a generator of one's own, and a loop with else."""

    observation_space = spaces.Box(-9, 9, (3,), np.float32)
    action_space = spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.rng = np.random.default_rng(seed)
        self.x = self.rng.normal(size=3)
        self.t = 0
        return self.x.astype(np.float32), {}

    def step(self, action):
        for k in range(3):
            if self.x[k] > 0.5:
                break
        else:
            k = -1
        self.x[self.x > 0] -= 0.25
        self.x[[0, action]] += self.rng.random()
        self.t += 1
        if self.t > 3:
            if self.x.max() > 2:
                return self.x.astype(np.float32), 1.0, True, False, {}
            elif self.x.min() < -1:
                return self.x.astype(np.float32), -1.0, True, False, {}
        return self.x.astype(np.float32), float(k), False, self.t >= 12, {}


class OldGenerator(gym.Env):
    """Numbers from a RandomState."""

    observation_space = spaces.Box(-9, 9, (4,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self):
        self.random = np.random.RandomState()

    def reset(self, *, seed=None, options=None):
        if seed is not None:
            self.random = np.random.RandomState(seed)
        self.x = self.random.rand(4)
        self.t = 0
        return self.x.astype(np.float32), {}

    def step(self, action):
        self.x = self.random.permutation(self.x) + 0.1 * self.random.randn()
        place = self.random.randint(4)
        self.x[place] = self.random.uniform(-1, 1) if action else self.random.choice([0.0, 1.0])
        self.t += 1
        return self.x.astype(np.float32), float(self.x.sum()), False, self.t >= 15, {}


MORE = [Snake, BlackjackPlus, Pursuit, Hanoi, Dungeon, Cave, Poker, Reactor, OwnGenerator, OldGenerator]
