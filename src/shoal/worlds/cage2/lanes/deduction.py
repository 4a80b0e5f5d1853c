"""What Blue can conclude from traffic that its table drops: how red got into each host, and its latest visible move.

The monitor reports every connection with its port. A scan touches all ports that answer; an exploit touches one, and
the number of connections tells a login from a guess that failed, and a shell from a decoy that was tried. So Blue knows
what the table hides: Remove kills a noticed shell, but neither a login nor a shell whose opening went unnoticed.
"""

from __future__ import annotations

from shoal.worlds.cage2.lanes import tables
from shoal.worlds.cage2.lanes.names import DECOY, NUM_HOSTS, REMOVE, RESTORE

SCANNED, REPELLED, ENTERED = 0, 1, 2  # what the latest traffic was
LONGEST_SILENCE = 3
HOST_MEMORY_SIZE = 5 * NUM_HOSTS + 3 + LONGEST_SILENCE + 1


def clear_memory(s):
    """Nothing seen yet."""
    s.seen_shells, s.seen_logins, s.seen_roots = 0, 0, 0
    s.latest_host, s.latest_kind, s.silence = -1, SCANNED, LONGEST_SILENCE


def note_repair(s, action):
    """Blue's own move: a Restore ends every foothold, a Remove the shells that were noticed. Time passes."""
    s.silence = min(s.silence + 1, LONGEST_SILENCE)
    if action >= RESTORE:
        kept = ~(1 << (action - RESTORE))
        s.seen_shells &= kept
        s.seen_logins &= kept
        s.seen_roots &= kept
    elif REMOVE <= action < DECOY:
        s.seen_shells &= ~(1 << (action - REMOVE))


def note_traffic(s, host, events, ports, shell, p):
    """Connections on one host, as `act_red` gives them."""
    s.latest_host, s.silence, s.latest_kind = host, 0, SCANNED
    for way in range(8):
        if tables.EXPLOIT_BIT[way] == ports:
            note_exploit(s, host, way, events, shell, p)
    if shell and s.latest_kind == SCANNED:  # a scan by green on top hides by which port it was opened
        s.latest_kind = ENTERED
        s.seen_shells |= 1 << host


def note_exploit(s, host, way, events, shell, p):
    """Connections on the one port that the exploit `way` uses."""
    bit = 1 << host
    outcome = p.outcome[host, way]
    if way == tables.SSH_EXPLOIT:
        if events == 1:  # nothing but SSH listens there: a scan looks like this
            return
        entered = outcome == tables.SSH_LOGIN and events == tables.LOGIN_EVENTS
    elif way == tables.HARAKA and p.haraka_dies and s.restored & bit:
        entered = False
    else:
        entered = outcome != tables.NOTHING and (shell or events == 1)
    s.latest_kind = ENTERED if entered else REPELLED
    if entered:
        if outcome == tables.ROOT_SHELL:
            s.seen_roots |= bit
        elif shell:
            s.seen_shells |= bit
        else:
            s.seen_logins |= bit


def may_help(s, action):
    """Whether one of the 145 actions is worth a thought, as far as Blue knows.

    Remove needs a shell that was noticed. Restore is a waste where such a shell was opened in the last step and nothing
    else was seen: Remove kills it before red can use it, at no cost.
    """
    if REMOVE <= action < DECOY:
        return s.seen_shells >> (action - REMOVE) & 1 == 1
    if action >= RESTORE:
        host = action - RESTORE
        others = s.seen_logins | s.seen_roots
        fresh = s.latest_host == host and s.silence == 0 and s.seen_shells >> host & 1 == 1
        return not fresh or others >> host & 1 == 1
    return True


def write_memory(s, out, at):
    """Write `HOST_MEMORY_SIZE` numbers into `out` from `at` on."""
    for h in range(NUM_HOSTS):
        out[at + h] = s.seen_shells >> h & 1
        out[at + NUM_HOSTS + h] = s.seen_logins >> h & 1
        out[at + 2 * NUM_HOSTS + h] = s.seen_roots >> h & 1
        out[at + 3 * NUM_HOSTS + h] = s.restored >> h & 1
        out[at + 4 * NUM_HOSTS + h] = 1 if s.latest_host == h else 0
    at += 5 * NUM_HOSTS
    for kind in range(3):
        out[at + kind] = 1 if s.latest_kind == kind else 0
    for steps in range(LONGEST_SILENCE + 1):
        out[at + 3 + steps] = 1 if s.silence == steps else 0
