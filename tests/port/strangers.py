# ruff: noqa: RUF005, RUF059, B905 — strangers write as they like
"""Ten small environments, each in the manner of somebody else: none of them knows that it will be compiled."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from enum import Enum

import gymnasium as gym
import numpy as np
from gymnasium import spaces


class Inventory(gym.Env):
    """Order goods that arrive later; demand is Poisson."""

    def __init__(self, capacity=50, lead_time=3, horizon=60):
        super().__init__()
        self.capacity = capacity
        self.lead_time = lead_time
        self.horizon = horizon
        self.unit_cost, self.price, self.holding, self.penalty = 2.0, 5.0, 0.1, 1.5
        self.action_space = spaces.Discrete(11)
        self.observation_space = spaces.Box(low=0, high=capacity * 2, shape=(1 + lead_time,), dtype=np.float32)

    def _obs(self):
        return np.array([self.stock] + list(self.pipeline), dtype=np.float32)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.stock = int(self.np_random.integers(10, 30))
        self.pipeline = [0] * self.lead_time
        self.day = 0
        return self._obs(), {"day": self.day}

    def step(self, action):
        arriving = self.pipeline.pop(0)
        self.stock = min(self.stock + arriving, self.capacity)
        self.pipeline.append(int(action))
        demand = self.np_random.poisson(6.0)
        sold = min(demand, self.stock)
        self.stock -= sold
        lost = demand - sold
        reward = self.price * sold - self.unit_cost * action - self.holding * self.stock - self.penalty * lost
        self.day += 1
        truncated = self.day >= self.horizon
        return self._obs(), float(reward), False, truncated, {"day": self.day, "lost": int(lost)}


class Queue(gym.Env):
    """Serve customers from two lines; each has waited for some time."""

    MAX_WAIT = 20

    def __init__(self):
        self.observation_space = spaces.Box(0, 100, (4,), np.float64)
        self.action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = deque()
        self.right = deque()
        self.clock = 0
        return self._observe(), {}

    def _observe(self):
        longest = [max(line) if len(line) > 0 else 0 for line in (self.left, self.right)]
        return np.array([len(self.left), len(self.right), *longest], dtype=np.float64)

    def step(self, action):
        self.clock += 1
        for line, rate in ((self.left, 0.4), (self.right, 0.3)):
            if self.np_random.random() < rate and len(line) < 12:
                line.append(0)
        chosen = self.left if action == 0 else self.right
        reward = 0.0
        if chosen:
            waited = chosen.popleft()
            reward += 1.0 - 0.05 * waited
        for k in range(len(self.left)):
            self.left[k] += 1
        for k in range(len(self.right)):
            self.right[k] += 1
        angry = sum(1 for w in self.left if w > self.MAX_WAIT) + sum(1 for w in self.right if w > self.MAX_WAIT)
        terminated = angry > 2
        return self._observe(), reward - 0.1 * angry, terminated, self.clock >= 200, {}


@dataclass
class Thing:
    row: int
    col: int
    value: float
    taken: bool = False


class Treasure(gym.Env):
    """A grid with walls and things to pick up."""

    MOVES = {0: (-1, 0), 1: (1, 0), 2: (0, -1), 3: (0, 1)}
    WALLS = {(1, 1), (1, 2), (3, 3), (4, 1), (2, 4), (5, 5), (0, 4)}

    def __init__(self, size: int = 6, things: int = 3):
        self.size = size
        self.count = things
        self.observation_space = spaces.Box(0, 3, (size, size), np.int8)
        self.action_space = spaces.Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.row, self.col = 0, 0
        self.steps = 0
        self.things = []
        while len(self.things) < self.count:
            r = int(self.np_random.integers(self.size))
            c = int(self.np_random.integers(self.size))
            if (r, c) in self.WALLS or (r, c) == (0, 0):
                continue
            if any(t.row == r and t.col == c for t in self.things):
                continue
            self.things.append(Thing(r, c, float(self.np_random.uniform(0.5, 2.0))))
        return self.grid(), {}

    def grid(self):
        board = np.zeros((self.size, self.size), dtype=np.int8)
        for r, c in self.WALLS:
            board[r, c] = 1
        for thing in self.things:
            if not thing.taken:
                board[thing.row, thing.col] = 2
        board[self.row, self.col] = 3
        return board

    def step(self, action):
        dr, dc = self.MOVES[int(action)]
        r, c = self.row + dr, self.col + dc
        reward = -0.05
        if 0 <= r < self.size and 0 <= c < self.size and (r, c) not in self.WALLS:
            self.row, self.col = r, c
        else:
            reward -= 0.1
        for thing in self.things:
            if not thing.taken and thing.row == self.row and thing.col == self.col:
                thing.taken = True
                reward += thing.value
        self.steps += 1
        done = all(thing.taken for thing in self.things)
        return self.grid(), reward, done, self.steps >= 150, {"left": sum(not t.taken for t in self.things)}


class Pontoon(gym.Env):
    """Draw cards from a shuffled deck up to twenty-one."""

    def __init__(self):
        self.observation_space = spaces.Tuple((spaces.Discrete(40), spaces.Discrete(14), spaces.Discrete(53)))
        self.action_space = spaces.Discrete(2)

    def _value(self, hand):
        total = sum(min(card, 10) for card in hand)
        if 1 in hand and total + 10 <= 21:
            return total + 10
        return total

    def _draw(self):
        card = self.deck[self.top]
        self.top += 1
        return int(card)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.deck = np.repeat(np.arange(1, 14), 4)
        self.np_random.shuffle(self.deck)
        self.top = 0
        self.hand = [self._draw(), self._draw()]
        self.bank = [self._draw()]
        return self._obs(), {}

    def _obs(self):
        return self._value(self.hand), self.bank[0], self.top

    def step(self, action):
        if action == 1:
            self.hand.append(self._draw())
            value = self._value(self.hand)
            if value > 21:
                return self._obs(), -1.0, True, False, {}
            return self._obs(), 0.0, False, False, {}
        while self._value(self.bank) < 17:
            self.bank.append(self._draw())
        mine, theirs = self._value(self.hand), self._value(self.bank)
        reward = 1.0 if theirs > 21 or mine > theirs else (0.0 if mine == theirs else -1.0)
        return self._obs(), reward, True, False, {}


def make_prices(n=400):
    rng = np.random.default_rng(5)
    return 100.0 * np.exp(np.cumsum(rng.normal(0, 0.01, n)))


class Trading(gym.Env):
    """Hold, buy or sell along a table of prices."""

    def __init__(self, window=5, fee=0.001):
        self.prices = make_prices()
        self.window = window
        self.fee = fee
        self.action_space = spaces.Discrete(3)
        self.observation_space = spaces.Dict(
            {"returns": spaces.Box(-1.0, 1.0, (window,), np.float32), "position": spaces.Discrete(3)}
        )

    def _get_obs(self):
        recent = self.prices[self._t - self.window : self._t + 1]
        returns = np.diff(recent) / recent[:-1]
        return {"returns": returns.astype(np.float32), "position": self._position + 1}

    def _get_info(self):
        return {"wealth": self._cash + self._position * self.prices[self._t]}

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self._t = int(self.np_random.integers(self.window, 200))
        self._end = self._t + 100
        self._position = 0
        self._cash = 1000.0
        return self._get_obs(), self._get_info()

    def step(self, action):
        before = self._get_info()["wealth"]
        target = int(action) - 1
        traded = target - self._position
        price = self.prices[self._t]
        self._cash -= traded * price + abs(traded) * price * self.fee
        self._position = target
        self._t += 1
        info = self._get_info()
        reward = np.log(max(info["wealth"], 1e-9) / max(before, 1e-9))
        terminated = info["wealth"] < 500
        truncated = self._t >= self._end
        return self._get_obs(), reward, terminated, truncated, info


class Motion(Enum):
    IDLE = 0
    UP = 1
    DOWN = 2


class Elevator(gym.Env):
    """One car, five floors, passengers with a destination."""

    FLOORS = 5

    def __init__(self):
        self.observation_space = spaces.MultiDiscrete([self.FLOORS, 3, 2, 2, 2, 2, 2, 9])
        self.action_space = spaces.Discrete(3)
        self.motion = Motion.IDLE

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.floor = 0
        self.motion = Motion.IDLE
        self.waiting = np.zeros(self.FLOORS, dtype=bool)
        self.riders = []
        self.t = 0
        return self._state(), {}

    def _state(self):
        return np.concatenate(([self.floor, self.motion.value], self.waiting.astype(int), [len(self.riders)]))

    def step(self, action):
        reward = 0.0
        if action == 0:
            self.motion = Motion.IDLE
        elif action == 1 and self.floor < self.FLOORS - 1:
            self.motion = Motion.UP
            self.floor += 1
        elif action == 2 and self.floor > 0:
            self.motion = Motion.DOWN
            self.floor -= 1
        if self.motion is Motion.IDLE:
            staying = [r for r in self.riders if r != self.floor]
            reward += len(self.riders) - len(staying)
            self.riders = staying
            if self.waiting[self.floor] and len(self.riders) < 8:
                choices = [f for f in range(self.FLOORS) if f != self.floor]
                self.riders.append(int(self.np_random.choice(choices)))
                self.waiting[self.floor] = False
        arrivals = self.np_random.random(self.FLOORS) < 0.08
        self.waiting |= arrivals
        reward -= 0.05 * (self.waiting.sum() + len(self.riders))
        self.t += 1
        return self._state(), float(reward), False, self.t >= 120, {}


class Epidemic(gym.Env):
    """Stochastic SIR with a choice of measures."""

    def __init__(self, population=100, beta=0.5, gamma=0.15):
        self.population = population
        self.beta = beta
        self.gamma = gamma
        self.measures = np.array([1.0, 0.6, 0.25])
        self.costs = np.array([0.0, 0.2, 1.0])
        self.observation_space = spaces.Box(0.0, 1.0, shape=(3,), dtype=np.float32)
        self.action_space = spaces.Discrete(3)

    def _obs(self):
        return (self.counts / self.population).astype(np.float32)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        infected = self.np_random.integers(1, 6)
        self.counts = np.array([self.population - infected, infected, 0], dtype=np.int64)
        self.week = 0
        return self._obs(), {}

    def step(self, action):
        susceptible, infected, recovered = self.counts
        rate = self.beta * self.measures[action] * infected / self.population
        p_infect = 1.0 - math.exp(-rate)
        p_recover = 1.0 - math.exp(-self.gamma)
        new = 0
        for _ in range(susceptible):
            if self.np_random.random() < p_infect:
                new += 1
        healed = 0
        for _ in range(infected):
            if self.np_random.random() < p_recover:
                healed += 1
        self.counts = self.counts + np.array([-new, new - healed, healed])
        self.week += 1
        reward = -(new / self.population) * 10 - self.costs[action]
        terminated = bool(self.counts[1] == 0)
        return self._obs(), reward, terminated, self.week >= 100, {"new": new}


class Bandit(gym.Env):
    """A contextual bandit with linear rewards."""

    def __init__(self, arms=4, features=5):
        gen = np.random.default_rng(11)
        self.theta = gen.normal(size=(arms, features))
        self.noise = 0.1
        self.observation_space = spaces.Box(-np.inf, np.inf, (features,), np.float32)
        self.action_space = spaces.Discrete(arms)
        self.context = None
        self.pulls = np.zeros(arms, dtype=np.int32)

    def _next(self):
        self.context = self.np_random.normal(size=self.theta.shape[1])
        norm = np.sqrt((self.context**2).sum())
        if norm > 0:
            self.context = self.context / norm

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._next()
        self.pulls[:] = 0
        self.regret = 0.0
        return self.context.astype(np.float32), {}

    def step(self, action):
        means = np.array([sum(w * x for w, x in zip(row, self.context)) for row in self.theta])
        reward = means[action] + self.noise * self.np_random.standard_normal()
        self.regret += means.max() - means[action]
        self.pulls[action] += 1
        self._next()
        done = self.pulls.sum() >= 50
        return self.context.astype(np.float32), float(reward), False, bool(done), {"regret": self.regret}


class TicTacToe(gym.Env):
    """Against a player who moves at random."""

    LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]

    def __init__(self):
        self.observation_space = spaces.Box(-1, 1, (9,), np.int8)
        self.action_space = spaces.Discrete(9)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.board = np.zeros(9, dtype=np.int8)
        self.over = False
        return self.board.copy(), {}

    def _winner(self):
        for a, b, c in self.LINES:
            if self.board[a] != 0 and self.board[a] == self.board[b] == self.board[c]:
                return int(self.board[a])
        return 0

    def step(self, action):
        if self.board[action] != 0:
            self.over = True
            return self.board.copy(), -1.0, True, False, {"illegal": True}
        self.board[action] = 1
        if self._winner() == 1:
            return self.board.copy(), 1.0, True, False, {"illegal": False}
        empty = np.flatnonzero(self.board == 0)
        if len(empty) == 0:
            return self.board.copy(), 0.0, True, False, {"illegal": False}
        self.board[self.np_random.choice(empty)] = -1
        lost = self._winner() == -1
        full = not np.any(self.board == 0)
        return self.board.copy(), -1.0 if lost else 0.0, lost or full, False, {"illegal": False}


class Thermostat(gym.Env):
    """Keep a room warm; the heater has modes and a fault now and then."""

    metadata = {"render_modes": ["human"]}

    def __init__(self, render_mode=None):
        self.render_mode = render_mode
        self.target = 21.0
        self.power = {"off": 0.0, "eco": 0.5, "full": 1.2}
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.observation_space = spaces.Box(-50, 80, (3,), np.float32)
        self.mode = "off"
        self.last_fault = None

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.temperature = self.np_random.uniform(10, 30)
        self.outside = self.np_random.normal(5.0, 3.0)
        self.minute = 0
        self.mode = "off"
        self.last_fault = None
        return self._obs(), self._info()

    def _obs(self):
        return np.array([self.temperature, self.outside, self.power[self.mode]], dtype=np.float32)

    def _info(self):
        return {"error": abs(self.temperature - self.target)}

    def step(self, action):
        level = float(np.clip(action[0], -1, 1))
        if level < -0.3:
            self.mode = "off"
        elif level < 0.4:
            self.mode = "eco"
        else:
            self.mode = "full"
        heat = self.power[self.mode]
        if self.last_fault is not None and self.minute - self.last_fault < 5:
            heat = 0.0
        elif self.np_random.random() < 0.01:
            self.last_fault = self.minute
        self.temperature += 0.02 * (self.outside - self.temperature) + heat
        self.outside += 0.1 * math.sin(2 * math.pi * self.minute / 240)
        self.minute += 1
        if self.render_mode == "human":
            self.render()
        reward = -abs(self.temperature - self.target) - 0.1 * heat
        terminated = not (-20 < self.temperature < 60)
        return self._obs(), reward, terminated, self.minute >= 240, self._info()

    def render(self):
        print(self.temperature)


ALL = [Inventory, Queue, Treasure, Pontoon, Trading, Elevator, Epidemic, Bandit, TicTacToe, Thermostat]
