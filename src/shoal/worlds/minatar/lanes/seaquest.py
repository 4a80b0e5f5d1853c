"""Seaquest: a submarine that shoots fish and other submarines, picks up divers and must surface for air.

Enemies are kept in the order in which they came, oldest first, without gaps; so are the player's shots and the divers.
Torpedoes never differ but in place and direction, so they are bits of their row.
"""

from __future__ import annotations

from shoal.vector.kernel import b1, i8, i16, i32, record
from shoal.worlds.minatar.lanes.game import (
    DOWN,
    FIRE,
    LAST,
    LEFT,
    RIGHT,
    SIZE,
    STAY,
    UP,
    Game,
    board,
    choose,
)  # fmt: skip

FRONT, BACK, SHOT, TRAIL, TORPEDO, FISH, SUB, OXYGEN, RESCUED, DIVER = range(10)
ROWS = 8  # of the sea: rows 1 to 8, below the surface
MAX_OXYGEN, SEATS = 200, 6
SPAWN_INTERVAL, DIVER_INTERVAL = 20, 30
MOVE_INTERVAL, FASTEST, DIVER_PAUSE, SHOT_INTERVAL, TORPEDO_INTERVAL = 5, 2, 5, 5, 10
# An enemy comes at most every step, at a time when each crosses the board in 30; a diver every 30 steps and takes 60;
# a shot is fired every 5 and takes 9.
MOST_ENEMIES, MOST_DIVERS, MOST_SHOTS = 30, 2, 2


class Seaquest(Game):
    """Move in four directions and shoot; +1 for each enemy, up to 10 for surfacing with six divers.

    Over when an enemy or a torpedo touches the player, without oxygen, and when surfacing without a diver.
    """

    observation_space = board(10)
    metadata = {"renderer": "shoal.worlds.minatar.rendering:SEAQUEST"}
    state = record(
        x=i8, y=i8, heading=i8, oxygen=i16, rescued=i16, surfaced=b1,
        num_enemies=i8, is_sub=b1[MOST_ENEMIES], enemy_x=i8[MOST_ENEMIES], enemy_y=i8[MOST_ENEMIES],
        enemy_heading=i8[MOST_ENEMIES], enemy_timer=i8[MOST_ENEMIES], torpedo_timer=i8[MOST_ENEMIES],
        num_divers=i8, diver_x=i8[MOST_DIVERS], diver_y=i8[MOST_DIVERS], diver_heading=i8[MOST_DIVERS],
        diver_timer=i8[MOST_DIVERS],
        num_shots=i8, shot_x=i8[MOST_SHOTS], shot_y=i8[MOST_SHOTS], shot_heading=i8[MOST_SHOTS],
        to_left=i16[ROWS], to_right=i16[ROWS],
        spawn_interval=i8, spawn_timer=i8, diver_spawn_timer=i8, move_interval=i8, shot_timer=i8, ramp=i16,
        move=i8, t=i32,
    )  # fmt: skip
    params = {**Game.params, "ramping": True}
    # beyond num_enemies, num_divers and num_shots the lists hold what was there before
    survives = (
        "is_sub", "enemy_x", "enemy_y", "enemy_heading", "enemy_timer", "torpedo_timer",
        "diver_x", "diver_y", "diver_heading", "diver_timer", "shot_x", "shot_y", "shot_heading",
    )  # fmt: skip

    def reset(s, p, rng):
        s.x, s.y, s.heading, s.oxygen, s.rescued, s.surfaced = 5, 0, -1, MAX_OXYGEN, 0, True
        s.num_enemies, s.num_divers, s.num_shots = 0, 0, 0
        s.to_left[:], s.to_right[:] = 0, 0
        s.spawn_interval, s.spawn_timer, s.diver_spawn_timer = SPAWN_INTERVAL, SPAWN_INTERVAL, DIVER_INTERVAL
        s.move_interval, s.shot_timer, s.ramp, s.move, s.t = MOVE_INTERVAL, 0, 0, STAY, 0

    def step(s, action, p, rng):
        move = choose(s, action, p, rng)
        if s.spawn_timer == 0:
            spawn_enemy(s, rng)
            s.spawn_timer = s.spawn_interval
        if s.diver_spawn_timer == 0:
            spawn_diver(s, rng)
            s.diver_spawn_timer = DIVER_INTERVAL
        steer(s, move)
        shot = fly_shots(s)
        swim(s)
        shot_subs, rammed = advance(s, True)
        struck = fly_torpedoes(s)
        shot_fish, bitten = advance(s, False)
        s.spawn_timer -= s.spawn_timer > 0
        s.diver_spawn_timer -= s.diver_spawn_timer > 0
        s.shot_timer -= s.shot_timer > 0
        bonus, drowned = breathe(s, p.ramping)
        s.t += 1
        lost = rammed or struck or bitten or drowned
        return shot + shot_subs + shot_fish + bonus, lost, s.t >= p.max_steps

    def observe(s, p, out):
        out[s.y, s.x, FRONT] = True
        out[s.y, min(max(s.x - s.heading, 0), LAST), BACK] = True
        level = max(s.oxygen, 0) * SIZE // MAX_OXYGEN
        for column in range(SIZE):
            out[LAST, column, OXYGEN] = column < level
        for seat in range(SEATS):
            out[LAST, LAST - 1 - seat, RESCUED] = seat < s.rescued
        for k in range(s.num_shots):
            out[s.shot_y[k], s.shot_x[k], SHOT] = True
        for row in range(ROWS):
            torpedoes = s.to_left[row] | s.to_right[row]
            if torpedoes != 0:  # seldom
                for column in range(SIZE):
                    out[row + 1, column, TORPEDO] = torpedoes >> column & 1 == 1
        for k in range(s.num_enemies):
            out[s.enemy_y[k], s.enemy_x[k], SUB if s.is_sub[k] else FISH] = True
            show_trail(s.enemy_x[k] - s.enemy_heading[k], s.enemy_y[k], out)
        for k in range(s.num_divers):
            out[s.diver_y[k], s.diver_x[k], DIVER] = True
            show_trail(s.diver_x[k] - s.diver_heading[k], s.diver_y[k], out)


def show_trail(x, y, out):
    """Where something came from, if that is on the board."""
    if 0 <= x <= LAST:
        out[y, x, TRAIL] = True


# ---------------------------------------------------------------------- who comes


def spawn_enemy(s, rng):
    """A fish or, one time in three, a submarine, unless enemies go the other way in its row."""
    to_right = rng.uniform() < 1 / 2
    is_sub = rng.uniform() < 1 / 3
    y = 1 + rng.integers(ROWS)
    heading = 1 if to_right else -1
    for k in range(s.num_enemies):
        if s.enemy_y[k] == y and s.enemy_heading[k] != heading:
            return
    k = s.num_enemies
    s.is_sub[k] = is_sub
    s.enemy_x[k], s.enemy_y[k], s.enemy_heading[k] = 0 if to_right else LAST, y, heading
    s.enemy_timer[k], s.torpedo_timer[k] = s.move_interval, TORPEDO_INTERVAL
    s.num_enemies += 1


def spawn_diver(s, rng):
    """A diver in any row."""
    to_right = rng.uniform() < 1 / 2
    k = s.num_divers
    s.diver_y[k] = 1 + rng.integers(ROWS)
    s.diver_x[k], s.diver_heading[k], s.diver_timer[k] = 0 if to_right else LAST, 1 if to_right else -1, DIVER_PAUSE
    s.num_divers += 1


# ---------------------------------------------------------------------- the player, shots and divers


def steer(s, move):
    """Shoot, or move one cell."""
    if move == FIRE and s.shot_timer == 0:
        k = s.num_shots
        s.shot_x[k], s.shot_y[k], s.shot_heading[k] = s.x, s.y, s.heading
        s.num_shots += 1
        s.shot_timer = SHOT_INTERVAL
    aside = (move == RIGHT) - (move == LEFT)
    s.x = min(max(s.x + aside, 0), LAST)
    s.y = min(max(s.y + (move == DOWN) - (move == UP), 0), ROWS)
    s.heading = aside if aside != 0 else s.heading


def fly_shots(s):
    """Shots go one cell on, and are gone with the first fish that they meet, or else submarine; returns how many."""
    hits, kept = 0, 0
    for k in range(s.num_shots):
        x, y = s.shot_x[k] + s.shot_heading[k], s.shot_y[k]
        if 0 <= x <= LAST:
            if remove_at(s, x, y, False) or remove_at(s, x, y, True):
                hits += 1
            else:
                s.shot_x[kept], s.shot_y[kept], s.shot_heading[kept] = x, y, s.shot_heading[k]
                kept += 1
    s.num_shots = kept
    return hits


def remove_at(s, x, y, sub):
    """Remove the oldest fish, or submarine, in a cell; False if there is none."""
    for k in range(s.num_enemies):
        if s.enemy_x[k] == x and s.enemy_y[k] == y and s.is_sub[k] == sub:
            for later in range(k + 1, s.num_enemies):
                keep_enemy(s, later, later - 1)
            s.num_enemies -= 1
            return True
    return False


def keep_enemy(s, k, at):
    """Enemy `k` takes the place `at`, further in front."""
    s.is_sub[at] = s.is_sub[k]
    s.enemy_x[at], s.enemy_y[at], s.enemy_heading[at] = s.enemy_x[k], s.enemy_y[k], s.enemy_heading[k]
    s.enemy_timer[at], s.torpedo_timer[at] = s.enemy_timer[k], s.torpedo_timer[k]


def swim(s):
    """Divers swim on, and come aboard where they meet the player and there is a seat."""
    kept = 0
    for k in range(s.num_divers):
        x, y, timer = s.diver_x[k], s.diver_y[k], s.diver_timer[k]
        aboard = comes_aboard(s, x, y)
        if not aboard and timer == 0:
            timer = DIVER_PAUSE
            x += s.diver_heading[k]
            aboard = comes_aboard(s, x, y)
        elif not aboard:
            timer -= 1
        if aboard:
            s.rescued += 1
        elif 0 <= x <= LAST:
            s.diver_x[kept], s.diver_y[kept], s.diver_heading[kept] = x, y, s.diver_heading[k]
            s.diver_timer[kept] = timer
            kept += 1
    s.num_divers = kept


def comes_aboard(s, x, y):
    """Whether a diver at a place is taken up."""
    return x == s.x and y == s.y and s.rescued < SEATS


# ---------------------------------------------------------------------- enemies and the air


def advance(s, subs):
    """Submarines or fish go on; returns how many ran into a shot, and whether one met the player.

    A submarine fires its torpedo even if it was shot in the same step.
    """
    hits, met, kept = 0, False, 0
    for k in range(s.num_enemies):
        stays = True
        if s.is_sub[k] == subs:
            met = met or is_at(s, k)
            stays, hit, met_now = go_on(s, k)
            hits += hit
            met = met or met_now
            if subs:
                fire_torpedo(s, k)
        if stays:
            if kept < k:
                keep_enemy(s, k, kept)
            kept += 1
    s.num_enemies = kept
    return hits, met


def go_on(s, k):
    """Enemy `k` moves when its time has come; returns whether it stays, was shot, and met the player."""
    if s.enemy_timer[k] > 0:
        s.enemy_timer[k] -= 1
        return True, False, False
    s.enemy_timer[k] = s.move_interval
    s.enemy_x[k] += s.enemy_heading[k]
    if s.enemy_x[k] < 0 or s.enemy_x[k] > LAST:
        return False, False, False
    if is_at(s, k):
        return True, False, True
    hit = stop_shot(s, s.enemy_x[k], s.enemy_y[k])
    return not hit, hit, False


def is_at(s, k):
    """Whether enemy `k` is where the player is."""
    return s.enemy_x[k] == s.x and s.enemy_y[k] == s.y


def stop_shot(s, x, y):
    """Remove the shot in a cell; False if there is none."""
    for k in range(s.num_shots):
        if s.shot_x[k] == x and s.shot_y[k] == y:
            for later in range(k + 1, s.num_shots):
                s.shot_x[later - 1], s.shot_y[later - 1] = s.shot_x[later], s.shot_y[later]
                s.shot_heading[later - 1] = s.shot_heading[later]
            s.num_shots -= 1
            return True
    return False


def fire_torpedo(s, k):
    """Submarine `k` fires when its time has come; what it fires outside of the board is lost."""
    if s.torpedo_timer[k] > 0:
        s.torpedo_timer[k] -= 1
        return
    s.torpedo_timer[k] = TORPEDO_INTERVAL
    if 0 <= s.enemy_x[k] <= LAST:
        row, bit = s.enemy_y[k] - 1, 1 << s.enemy_x[k]
        if s.enemy_heading[k] > 0:
            s.to_right[row] |= bit
        else:
            s.to_left[row] |= bit


def fly_torpedoes(s):
    """Torpedoes go one cell on; returns whether one was or is where the player is."""
    row, bit = max(s.y - 1, 0), 1 << s.x if s.y > 0 else 0
    before = s.to_left[row] | s.to_right[row]
    for each in range(ROWS):
        s.to_left[each] >>= 1
        s.to_right[each] = s.to_right[each] << 1 & (1 << SIZE) - 1
    return (before | s.to_left[row] | s.to_right[row]) & bit != 0


def breathe(s, ramping):
    """Use up oxygen or surface for more; returns the bonus for six divers, and whether that was the end."""
    drowned = s.oxygen <= 0
    if s.y > 0:
        s.oxygen -= 1
        s.surfaced = False
        return 0, drowned
    if s.surfaced:
        return 0, drowned
    if s.rescued == 0:
        return 0, True
    s.surfaced = True
    bonus = s.oxygen * SIZE // MAX_OXYGEN if s.rescued == SEATS else 0
    # the original takes one diver more than the six it rewards, so the next one only settles that
    s.rescued = -1 if s.rescued == SEATS else s.rescued - 1
    s.oxygen = MAX_OXYGEN
    if ramping:
        speed_up(s)
    return bonus, drowned


def speed_up(s):
    """Enemies come more often, and every other time they move faster too."""
    if s.spawn_interval == 1 and s.move_interval == FASTEST:
        return
    if s.move_interval > FASTEST and s.ramp % 2 == 1:
        s.move_interval -= 1
    if s.spawn_interval > 1:
        s.spawn_interval -= 1
    s.ramp += 1
