"""Names and numbers of the network: hosts, subnets, unit types, and what Blue and red can do.

Numbers and small arrays at module level, because kernels use them as constants. A *mask* of hosts is an integer with
bit h for host h.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shoal.errors import ConfigError, unknown_name

HOSTS = (
    "Defender", "Enterprise0", "Enterprise1", "Enterprise2", "Op_Host0", "Op_Host1", "Op_Host2", "Op_Server0",
    "User0", "User1", "User2", "User3", "User4",
)  # fmt: skip
NUM_HOSTS = len(HOSTS)
ENTERPRISE0, ENTERPRISE1, ENTERPRISE2, OP_SERVER, USER0 = 1, 2, 3, 7, 8
ENTERPRISES = 0b1110  # red reaches the Operational subnet from one of these only
OP_SUBNET_HOSTS = 0b1111_0000

SUBNETS = ("User", "Enterprise", "Operational")
USER_NET, ENTERPRISE_NET, OP_NET = 0, 1, 2
SUBNET_OF = np.array([1, 1, 1, 1, 2, 2, 2, 2, 0, 0, 0, 0, 0])
HOSTS_OF_SUBNET = np.array([0b1_1111_0000_0000, 0b1111, 0b1111_0000])
LINK_OF = np.array([-1, -1, -1, 7, -1, -1, -1, -1, -1, 2, 2, 1, 1])  # whose address red learns by escalating here
WINDOWS = (0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1, 0, 0)

UNIT_TYPES = ("defender", "enterprise", "op_server", "op_host", "user")
TYPE_OF = np.array([0, 1, 1, 1, 3, 3, 3, 2, 4, 4, 4, 4, 4])

VARIANTS = ("cage2", "cage2-2022", "debugged")
BLUE_TABLES = ("seed", "cage")

# ---------------------------------------------------------------------- Blue's 145 actions
DECOYS = ("Apache", "Femitter", "HarakaSMPT", "Smss", "SSHD", "Svchost", "Tomcat", "Vsftpd")
SLEEP, MONITOR, ANALYSE, REMOVE, DECOY, RESTORE = 0, 1, 2, 15, 28, 132  # where each block of 13 hosts begins
NUM_ACTIONS = RESTORE + NUM_HOSTS
RESTORE_OP_SERVER = RESTORE + OP_SERVER

_VERBS = ("Analyse", "Remove", *(f"Decoy{decoy}" for decoy in DECOYS), "Restore")
BLUE_ACTIONS = ("Sleep", "Monitor", *(f"{verb} {host}" for verb in _VERBS for host in HOSTS))

# ---------------------------------------------------------------------- red
RED_AGENTS = ("bline", "meander", "sleep", "given")
BLINE, MEANDER, SLEEPER, GIVEN = 0, 1, 2, 3
RED_SLEEP, SCAN_SUBNET, SCAN_HOST, EXPLOIT, ESCALATE, IMPACT = 0, 1, 2, 3, 4, 5
RED_ACTIONS = ("sleep", "scan subnet", "scan host", "exploit", "escalate", "impact")
FAILURE, SUCCESS, UNKNOWN = 0, 1, 2  # result of an action
EXPLOITS = ("EternalBlue", "BlueKeep", "HTTPRFI", "HTTPSRFI", "SSHBruteForce", "SQLInjection", "HarakaRCE", "FTP")


def find_code(kind: str, name: Any, known: Sequence[str]) -> int:
    """The number of `name` in `known`, or an `UnknownName` that proposes the nearest."""
    wanted = str(name).lower().replace("_", "-")
    if wanted not in known:
        raise unknown_name(kind, str(name), known, " / ".join(known))
    return list(known).index(wanted)


def deal(what: str, value: Any, num_envs: int, code: Any) -> np.ndarray:
    """One setting per lane, [B]: a single value for all, or several values dealt out to the lanes in turn."""
    if isinstance(value, str) and "," in value:
        value = [part.strip() for part in value.split(",")]
    several = isinstance(value, list | tuple | np.ndarray)
    if several and len(value) == 0:
        raise ConfigError(f"{what} is empty. Give one value, or several to deal out to the lanes in turn.")
    codes = np.array([code(item) for item in value] if several else [code(value)])
    return codes[np.arange(num_envs) % len(codes)]
