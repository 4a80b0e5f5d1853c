"""Names and numbers of the network: hosts, subnets, unit types, and what Blue and red can do.

A *mask* of hosts is an integer with bit h for host h. Cheap to import: the options are checked against these names.
"""

from __future__ import annotations

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
WINDOWS = (0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1, 0, 0)

UNIT_TYPES = ("defender", "enterprise", "op_server", "op_host", "user")

COMPLIANCES = ("action-order", "true-state")

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
