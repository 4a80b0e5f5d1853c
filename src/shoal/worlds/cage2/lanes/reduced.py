"""The reduced action set of the challenge's winning entry: 27 plain actions and nine "next decoy on this host".

Blue keeps book of the decoys it has used per host (`s.decoys_used`); restoring the host clears the book. A list that
is used up repeats its first decoy, which does nothing.
"""

from __future__ import annotations

import numpy as np

from shoal.worlds.cage2.lanes.deduction import may_help
from shoal.worlds.cage2.lanes.names import NUM_HOSTS, RESTORE

PLAIN = (
    *(133, 134, 135, 139, 3, 4, 5, 9, 16, 17, 18, 22, 11, 12, 13, 14),
    *(141, 142, 143, 144, 132, 2, 15, 24, 25, 26, 27),
)
DECOY_LISTS = {  # host: plain actions in the order in which they are used
    1: (55, 107, 120, 29),
    2: (43,),
    3: (44,),
    9: (37, 115, 76, 102),
    10: (51, 116, 38, 90),
    11: (130, 91),
    12: (131,),
    0: (54, 106, 28, 119),
    7: (61, 35, 113, 126),
}
NUM_REDUCED = len(PLAIN) + len(DECOY_LISTS)

_PLAIN = np.array(PLAIN)
_HOST = np.array(list(DECOY_LISTS))
_LENGTH = np.array([len(actions) for actions in DECOY_LISTS.values()])
_LIST = np.zeros((len(DECOY_LISTS), 4), np.int64)
for _row, _actions in zip(_LIST, DECOY_LISTS.values(), strict=True):
    _row[: len(_actions)] = _actions


def expand(s, choice):
    """One of the 145 actions for one of the 36 choices, with Blue's book brought up to date."""
    if choice < len(_PLAIN):
        action = _PLAIN[choice]
        if action >= RESTORE:
            s.decoys_used[action - RESTORE] = 0
        return action
    which = choice - len(_PLAIN)
    host = _HOST[which]
    used = s.decoys_used[host]
    if used >= _LENGTH[which]:
        return _LIST[which, 0]
    s.decoys_used[host] = used + 1
    return _LIST[which, used]


def allow_reduced(s, out):
    """Write which of the 36 choices can do something: no decoy list that is used up, no Remove without a shell."""
    for choice in range(len(_PLAIN)):
        out[choice] = may_help(s, _PLAIN[choice])
    for which in range(len(_HOST)):
        out[len(_PLAIN) + which] = s.decoys_used[_HOST[which]] < _LENGTH[which]


def clear_book(s):
    """No decoy used on any host, none shown to red."""
    for h in range(NUM_HOSTS):
        s.decoys_used[h] = 0
        s.decoys_shown[h] = 0
