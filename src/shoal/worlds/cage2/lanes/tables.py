"""Static tables: of the network, and of the three variants as parameters of the kernel.

| variant | what it is |
|---|---|
| `cage2` | CybORG 2.1 as published since 19 August 2022 |
| `cage2-2022` | the same a week before, when the public leaderboard was scored: red never forgets a port it has seen |
| `debugged` | CybORG++: five corrections of data and rules, another scale of reward |
"""

from __future__ import annotations

import numpy as np

from shoal.worlds.cage2.lanes.names import DECOYS, HOSTS, NUM_HOSTS, WINDOWS

SUBNET_OF = np.array([1, 1, 1, 1, 2, 2, 2, 2, 0, 0, 0, 0, 0])
HOSTS_OF_SUBNET = np.array([0b1_1111_0000_0000, 0b1111, 0b1111_0000])
TYPE_OF = np.array([0, 1, 1, 1, 3, 3, 3, 2, 4, 4, 4, 4, 4])
LINK_OF = np.array([-1, -1, -1, 7, -1, -1, -1, -1, -1, 2, 2, 1, 1])  # whose address red learns by escalating here

PORTS = (21, 22, 25, 53, 68, 80, 135, 139, 443, 445, 3389, 3390)  # bit i of a port mask

# what an exploit meets on a host
NOTHING, USER_SHELL, ROOT_SHELL, SSH_LOGIN, FUTILE = 0, 1, 2, 3, 4
_LETTERS = {".": NOTHING, "U": USER_SHELL, "P": ROOT_SHELL, "S": SSH_LOGIN, "X": FUTILE}

SSH_EXPLOIT, HARAKA, SSH_PORT = 4, 6, 22
LOGIN_EVENTS = 11  # connections of a brute force that finds the password; one that fails makes one less
EXPLOIT_PORT = (139, 3389, 80, 443, 22, 3390, 25, 21)
_PRIORITY = (2.0, 1.0, 3.0, 4.0, 0.1, 5.0, 6.0, 7.0)

_OFFICE_PORTS = (22, 135, 3389, 445, 139, 80, 443)
_SERVICES = {  # what exploits meet: EternalBlue, BlueKeep, HTTP, HTTPS, SSH, SQL, Haraka, FTP; ports that listen
    "Defender": ("....X...", (22, 53, 53, 68)),
    "Enterprise0": ("....S...", (22,)),
    "Enterprise1": (".PUUS...", _OFFICE_PORTS),
    "Enterprise2": (".PUUS...", _OFFICE_PORTS),
    "Op_Host0": ("....S...", (22,)),
    "Op_Host1": ("....S...", (22,)),
    "Op_Host2": ("....S...", (22,)),
    "Op_Server0": ("....S...", (22,)),
    "User0": ("....S..P", (22, 21)),
    "User1": ("....S..P", (22, 21)),
    "User2": ("PU......", (445, 139, 135, 3389)),
    "User3": ("..UU..P.", (80, 3389, 443, 25)),
    "User4": ("..UUSPP.", (22, 80, 3390, 443, 25)),
}
_DEBUGGED_SERVICES = {
    "Enterprise1": ("PPUUS...", _OFFICE_PORTS),
    "Enterprise2": ("PPUUS...", _OFFICE_PORTS),
    "User3": ("..UU.PP.", (80, 3390, 443, 25)),
}

_DECOYS = {  # refused if this port listens, opens this port, runs on, traps exploit
    "Apache": (80, 80, "any", 2),
    "Femitter": (21, 21, "windows", 7),
    "HarakaSMPT": (25, 25, "linux", 6),
    "Smss": (139, 139, "windows", 0),
    "SSHD": (22, 22, "any", 4),
    "Svchost": (3389, 3389, "windows", 1),
    "Tomcat": (443, 443, "any", 3),
    "Vsftpd": (21, 80, "linux", 2),
}
_DEBUGGED_DECOYS = {"Vsftpd": (21, 21, "linux", -1)}


def port_bit(port: int) -> int:
    """The bit of one port in a port mask."""
    return 1 << PORTS.index(port)


EXPLOIT_BIT = np.array([port_bit(port) for port in EXPLOIT_PORT])
SSH_BIT = port_bit(SSH_PORT)


def _options(ports: int) -> int:
    """Exploits whose needed ports are in the mask `ports`, as a mask of exploits."""
    open_for = [bool(ports & port_bit(port)) for port in EXPLOIT_PORT]
    open_for[5] = open_for[5] and (open_for[2] or open_for[3])  # SQLInjection goes through a web server
    return sum(1 << e for e in range(8) if open_for[e])


def _top(options: int) -> int:
    """The exploit of highest priority in the mask `options`."""
    return max((e for e in range(8) if options >> e & 1), key=lambda e: _PRIORITY[e], default=0)


OPTIONS_OF_PORTS = np.array([_options(ports) for ports in range(1 << len(PORTS))], np.uint8)
TOP_EXPLOIT = np.array([_top(options) for options in range(256)], np.uint8)


def variant_params(variant: str) -> dict[str, np.ndarray | bool]:
    """The kernel's parameters that tell the variants apart."""
    debugged, old = variant == "debugged", variant == "cage2-2022"
    services = _SERVICES | (_DEBUGGED_SERVICES if debugged else {})
    outcomes, listening = zip(*(services[host] for host in HOSTS), strict=True)
    decoys = [(_DECOYS | (_DEBUGGED_DECOYS if debugged else {}))[name] for name in DECOYS]
    return {
        "ports": np.array([sum({port_bit(port) for port in ports}) for ports in listening], np.int64),
        "connections": np.array([len(ports) for ports in listening], np.int64),
        "outcome": np.array([[_LETTERS[letter] for letter in row] for row in outcomes], np.int64),
        "decoy_checks": np.array([port_bit(checks) for checks, _, _, _ in decoys], np.int64),
        "decoy_opens": np.array([port_bit(opens) for _, opens, _, _ in decoys], np.int64),
        "decoy_hosts": np.array([_hosts_with(system) for _, _, system, _ in decoys], np.int64),
        "decoys_trapping": np.array([sum(1 << d for d in range(8) if decoys[d][3] == e) for e in range(8)], np.int64),
        "red_keeps_ports": old,
        "haraka_dies": old,
        "user_level_costs": debugged,
        "shell_seen_first": debugged,
    }


def _hosts_with(system: str) -> int:
    return sum(1 << h for h in range(NUM_HOSTS) if system in ("any", "windows" if WINDOWS[h] else "linux"))
