"""The rink as kernels: one lane's record, its episodes, observations and infos. Four ways to take actions."""

from __future__ import annotations

import math

import gymnasium as gym
import numpy as np

from shoal.vector.kernel import Kernel, b1, f32, f64, i8, i16, i32, record
from shoal.worlds.hockey.lanes.bots import PHASE_STEP, STRONG_GAIN, WEAK_GAIN, bot_action
from shoal.worlds.hockey.lanes.constants import CENTRE_X, CENTRE_Y, GROUND, HOLD_STEPS, PUCK, RACKET_1, RACKET_2
from shoal.worlds.hockey.lanes.control import aim
from shoal.worlds.hockey.lanes.physics.advance import advance
from shoal.worlds.hockey.lanes.physics.solver import rest
from shoal.worlds.hockey.lanes.tables import action_table

NORMAL, TRAIN_SHOOTING, TRAIN_DEFENSE = 0, 1, 2  # places in `world.MODES`
TIME_LIMIT = np.array([250, 80, 80])  # steps, by mode
WIDTHS = {True: (18, 4), False: (16, 3)}  # numbers per observation and action, with keep mode and without it
POLICY, WEAK, STRONG, IDLE, MIXED = 0, 1, 2, 3, 4  # who sits in a seat: places in `world.SEATS`
RANDOM, ONE, TWO, ALTERNATE = 0, 1, 2, 3  # who gets the puck: places in `world.STARTERS`
GOAL_REWARD = 10.0
_CLOSENESS = -30.0 / (250.0 / 60.0 * TIME_LIMIT / 2.0)  # per metre and step, by mode
_EIGHT = action_table("eight")
NUM_DISCRETE = {4: 8, 3: 7}  # by the width of a continuous action: shooting is the eighth

STATE = record(
    mode=i8, seat=i8[2], starter=i8,  # settings, which reset leaves alone
    playing=i8[2],  # who a MIXED seat is in this episode
    one_starts=b1,
    phase=f64[2],  # of the bots' turning
    held=i16[2],  # counters of holding the puck
    still=f32[3],  # how long each body has hardly moved
    first_racket=i8,  # whose faces are preferred where two rackets meet; nothing in play changes it
    touching=i8[2],  # does the racket touch the puck, at the last look? (0 or 1)
    t=i32, done=b1, winner=i8,
    kick_x=f64, kick_y=f64,  # velocity that the puck receives in the next step
    x=f64[4], y=f64[4],  # origins of racket 1, racket 2, puck, ground
    cx=f64[4], cy=f64[4],  # their centres of mass
    angle=f64[4], cosine=f64[4], sine=f64[4],
    vx=f64[4], vy=f64[4], spin=f64[4],  # of the centres of mass
)  # fmt: skip

INFO = record(
    winner=i8, reward_closeness_to_puck=f32, reward_touch_puck=f32, reward_puck_direction=f32,
    opponent_reward=f32, opponent_winner=i8, opponent_reward_closeness_to_puck=f32, opponent_reward_touch_puck=f32,
    opponent_reward_puck_direction=f32,
)  # fmt: skip


class Hockey(Kernel):
    """One player's seat: (forward, sideways, turn, shoot) in [-1, 1]; who plays the other seat is set per lane."""

    rows: tuple[int, ...] = ()  # of actions and observations, one for each open seat where both are
    state = STATE
    info = INFO
    metadata = {"renderer": "shoal.worlds.hockey.rendering:RINK"}
    params = {
        "keep_mode": True,
        "hold": 1,  # steps of the rink for which an action stands
        "carry_counters": False,  # the original hands holding counters to the next episode
        "extra_step": False,  # the original ends one step after its time limit
        "timeout_terminates": False,  # the original calls a time-out a termination
    }

    def __init__(self, **params: float) -> None:
        obs_width, action_width = WIDTHS[bool(params.get("keep_mode", True))]
        self.observation_space = unbounded(*self.rows, obs_width)
        self.action_space = self.actions(action_width)
        super().__init__(**params)

    def actions(self, width: int) -> gym.Space:
        """The action space of one lane."""
        return gym.spaces.Box(-1.0, 1.0, (*self.rows, width), np.float32)

    def reset(s, p, rng):
        begin(s, p, rng)

    def step(s, action, p, rng):
        return play(s, p, rng, four(action, p.keep_mode), NOTHING)

    def observe(s, p, out):
        observe_seat(s, RACKET_1, out)

    def inform(s, p, out):
        inform_both(s, out)


class HockeyDiscrete(Hockey):
    """One seat with the original's eight actions."""

    def actions(self, width: int) -> gym.Space:
        return gym.spaces.Discrete(NUM_DISCRETE[width])

    def step(s, action, p, rng):
        return play(s, p, rng, from_number(action), NOTHING)


class HockeyTwoSeats(Hockey):
    """Both seats: row 0 of actions and observations is player 1's, row 1 player 2's. The reward is player 1's."""

    rows = (2,)

    def step(s, action, p, rng):
        return play(s, p, rng, four(action[0], p.keep_mode), four(action[1], p.keep_mode))

    def observe(s, p, out):
        observe_seat(s, RACKET_1, out[0])
        observe_seat(s, RACKET_2, out[1])


class HockeyTwoSeatsDiscrete(HockeyTwoSeats):
    """Both seats with the original's eight actions."""

    def actions(self, width: int) -> gym.Space:
        return gym.spaces.MultiDiscrete([NUM_DISCRETE[width]] * 2)

    def step(s, action, p, rng):
        return play(s, p, rng, from_number(action[0]), from_number(action[1]))


ONE_SEAT, BOTH_SEATS = (Hockey, HockeyDiscrete), (HockeyTwoSeats, HockeyTwoSeatsDiscrete)
"""Kernels by whether actions are discrete."""


def unbounded(*shape: int) -> gym.spaces.Box:
    """The space of observations: no scaling, no limits."""
    return gym.spaces.Box(-np.inf, np.inf, shape, np.float32)


# ---------------------------------------------------------------------- actions

NOTHING = (0.0, 0.0, 0.0, 0.0)


def four(action, keep):
    """A row of an action space as (forward, sideways, turn, shoot)."""
    return action[0], action[1], action[2], action[3] if keep else 0.0


def from_number(number):
    """A row of the table of eight: 0 nothing, then back and forth in x, y and turning, 7 shoots."""
    return _EIGHT[number, 0], _EIGHT[number, 1], _EIGHT[number, 2], _EIGHT[number, 3]


def act(s, k, given, keep, rng):
    """The action in seat `k`: a bot's, nothing, or the one given."""
    who = s.playing[k]
    if who in (WEAK, STRONG):
        s.phase[k] += rng.uniform(0.0, PHASE_STEP)
        return bot_action(s, k, WEAK_GAIN if who == WEAK else STRONG_GAIN, keep)
    return NOTHING if who == IDLE else given


# ---------------------------------------------------------------------- episodes


def begin(s, p, rng):
    """A new episode in the lane's mode."""
    s.t, s.winner, s.done = 0, 0, False
    s.kick_x, s.kick_y = 0.0, 0.0
    for k in range(2):
        s.touching[k] = 0
        if not p.carry_counters:
            s.held[k] = 0
        s.playing[k] = 1 + rng.integers(2) if s.seat[k] == MIXED else s.seat[k]
        s.phase[k] = rng.uniform(0.0, 2.0 * math.pi)
    rest(s, GROUND, 0.0, 0.0)
    rest(s, RACKET_1, 2.0, CENTRE_Y)
    if s.mode == NORMAL:
        choose_starter(s, rng)
        rest(s, RACKET_2, 8.0, CENTRE_Y)
    else:
        rest(s, RACKET_2, 8.0 + rng.uniform(-10.0 / 3.0, 10.0 / 6.0), CENTRE_Y + rng.uniform(-2.0, 2.0))
    if s.mode == TRAIN_DEFENSE:
        rest(s, PUCK, CENTRE_X + rng.uniform(0.0, 10.0 / 3.0), CENTRE_Y + 0.8 * rng.uniform(-4.0, 4.0))
        aim(s, 0.0, CENTRE_Y + 0.6 * rng.uniform(-1.25, 1.25))
    else:
        ahead = rng.uniform(1.0, 2.0)
        left = s.mode != NORMAL or s.one_starts
        rest(s, PUCK, CENTRE_X - ahead if left else CENTRE_X + ahead, CENTRE_Y + rng.uniform(-1.0, 1.0))


def choose_starter(s, rng):
    """Decide who gets the puck."""
    if s.starter == ALTERNATE:
        s.one_starts = not s.one_starts
    elif s.starter == RANDOM:
        s.one_starts = rng.integers(2) == 0
    else:
        s.one_starts = s.starter == ONE


def play(s, p, rng, given_1, given_2):
    """`hold` steps with the same given actions, fewer if the episode ends. Returns reward, terminated, truncated."""
    total, terminated, truncated = 0.0, False, False
    for _ in range(p.hold):
        if not (terminated or truncated):
            reward, terminated, truncated = play_once(s, p, rng, given_1, given_2)
            total += reward
    return total, terminated, truncated


def play_once(s, p, rng, given_1, given_2):
    """One step: both seats act, the rink moves, player 1 is paid. Returns reward, terminated, truncated."""
    action_1 = act(s, RACKET_1, given_1, p.keep_mode, rng)
    action_2 = act(s, RACKET_2, given_2, p.keep_mode, rng)
    advance(s, action_1, action_2, p.keep_mode)
    last = TIME_LIMIT[s.mode] if p.extra_step else TIME_LIMIT[s.mode] - 1
    if s.t >= last:
        s.done = True
    s.t += 1
    scored = s.done and s.winner != 0
    ends = scored or (s.done and p.timeout_terminates)
    return goal_reward(s) + closeness(s, RACKET_1), ends, s.done and not ends


# ---------------------------------------------------------------------- observations, rewards, infos


def observe_seat(s, k, out):
    """The scene of player `k`, who sees it from the own side; 16 numbers, and the two counters where out has room."""
    side = 1.0 - 2.0 * k
    observe_racket(s, k, side, out, 0)
    observe_racket(s, 1 - k, side, out, 6)
    out[12], out[13] = side * (s.x[PUCK] - CENTRE_X), side * (s.y[PUCK] - CENTRE_Y)
    out[14], out[15] = side * s.vx[PUCK], side * s.vy[PUCK]
    if len(out) > 16:
        out[16], out[17] = s.held[k], s.held[1 - k]


def observe_racket(s, k, side, out, at):
    """Position, angle and velocities of racket `k`. Angles are the same from both sides."""
    out[at], out[at + 1] = side * (s.x[k] - CENTRE_X), side * (s.y[k] - CENTRE_Y)
    out[at + 2] = s.angle[k]
    out[at + 3], out[at + 4] = side * s.vx[k], side * s.vy[k]
    out[at + 5] = s.spin[k]


def goal_reward(s):
    """Player 1's reward for goals; paid again in every step after the end, should there be one."""
    return GOAL_REWARD * s.winner if s.done else 0.0


def closeness(s, k):
    """The penalty for being far from a puck that is in player `k`'s half and not leaving it."""
    side = 1.0 - 2.0 * k
    if side * (s.x[PUCK] - CENTRE_X) >= 0.0 or side * s.vx[PUCK] > 0.0:
        return 0.0
    dx, dy = s.x[PUCK] - s.x[k], s.y[PUCK] - s.y[k]
    return _CLOSENESS[s.mode] * math.sqrt(dx * dx + dy * dy)


def direction(s):
    """How fast the puck flies to the right, in units that add up to about one in an episode."""
    return s.vx[PUCK] / (TIME_LIMIT[s.mode] * 25.0)


def inform_both(s, out):
    """Infos of both players after the step."""
    out.winner, out.opponent_winner = s.winner, -s.winner
    theirs = closeness(s, RACKET_2)
    out.reward_closeness_to_puck, out.opponent_reward_closeness_to_puck = closeness(s, RACKET_1), theirs
    out.reward_touch_puck = 1.0 if s.held[RACKET_1] == HOLD_STEPS else 0.0
    out.opponent_reward_touch_puck = 1.0 if s.held[RACKET_2] == HOLD_STEPS else 0.0
    out.reward_puck_direction = direction(s)
    out.opponent_reward_puck_direction = -direction(s)
    out.opponent_reward = theirs - goal_reward(s)
