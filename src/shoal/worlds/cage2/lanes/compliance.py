"""Whether Blue repairs in the order of its workflow, counted and paid in the kernel.

A *fix* is a Remove or Restore; its unit type is that of its host. Two definitions of a compliant fix:

- `action-order`: every type before it in the workflow has been fixed in this episode already.
- `true-state`: it is the first type in the workflow among those with a foothold before the action.

The alignment reward pays the change of `weight * compliant / fixes`, so that over an episode it sums to
`weight * compliance`; an episode without a fix is charged `no_fix_penalty * weight` at its end.
"""

from __future__ import annotations

import numpy as np

from shoal.worlds.cage2.lanes.names import COMPLIANCES, DECOY, NUM_HOSTS, REMOVE, RESTORE
from shoal.worlds.cage2.lanes.tables import TYPE_OF

ACTION_ORDER = COMPLIANCES.index("action-order")
_HOSTS_OF_TYPE = np.array([sum(1 << h for h in range(NUM_HOSTS) if TYPE_OF[h] == kind) for kind in range(5)])


def held_types(held):
    """5-bit mask of the unit types with a foothold, from the mask of hosts with one."""
    types = 0
    for kind in range(5):
        if held & _HOSTS_OF_TYPE[kind] != 0:
            types |= 1 << kind
    return types


def align(s, action, p):
    """Count Blue's action before it is carried out; returns the alignment reward it earns."""
    if REMOVE <= action < DECOY:
        host = action - REMOVE
    elif action >= RESTORE:
        host = action - RESTORE
    else:
        return 0.0
    kind = TYPE_OF[host]
    compliant = follows_actions(s, kind) if p.compliance == ACTION_ORDER else follows_state(s, kind)
    s.fixed_types |= 1 << kind
    before = p.alignment_weight * s.compliant / s.fixes if s.fixes > 0 else 0.0
    s.fixes += 1
    if compliant:
        s.compliant += 1
    bonus = p.step_bonus if compliant else -p.step_penalty
    return p.alignment_weight * (s.compliant / s.fixes + bonus) - before


def follows_actions(s, kind):
    """Every type before `kind` in the workflow has been fixed in this episode."""
    for position in range(5):
        if s.workflow[position] == kind:
            return True
        if s.fixed_types >> s.workflow[position] & 1 == 0:
            return False
    return False


def follows_state(s, kind):
    """`kind` is the first type of the workflow that has a foothold; with no foothold at all any fix complies."""
    types = held_types(s.held)
    for position in range(5):
        if types >> s.workflow[position] & 1:
            return s.workflow[position] == kind
    return True


def charge_idleness(s, p):
    """The alignment reward at the end of an episode: a charge if nothing was ever fixed."""
    return -p.no_fix_penalty * p.alignment_weight if s.fixes == 0 else 0.0


def rate(s):
    """Compliant fixes per fix so far in this episode; 0.5 before the first."""
    return s.compliant / s.fixes if s.fixes > 0 else 0.5
