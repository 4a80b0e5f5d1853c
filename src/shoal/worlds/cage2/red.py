"""What red's actions do to the network, and which traffic they cause."""

from __future__ import annotations

from shoal.worlds.cage2.bits import count_bits
from shoal.worlds.cage2.blue import listening_ports
from shoal.worlds.cage2.names import (
    ENTERPRISES,
    ESCALATE,
    EXPLOIT,
    FAILURE,
    HOSTS_OF_SUBNET,
    LINK_OF,
    OP_NET,
    OP_SERVER,
    OP_SUBNET_HOSTS,
    RED_SLEEP,
    SCAN_HOST,
    SCAN_SUBNET,
    SUBNET_OF,
    SUCCESS,
    UNKNOWN,
)
from shoal.worlds.cage2.tables import (
    EXPLOIT_BIT,
    FUTILE,
    HARAKA,
    LOGIN_EVENTS,
    NOTHING,
    OPTIONS_OF_PORTS,
    ROOT_SHELL,
    SSH_BIT,
    SSH_EXPLOIT,
    SSH_LOGIN,
    TOP_EXPLOIT,
)

TOP_CHANCE = 0.75  # of taking the exploit of highest priority when there are several
NOTICE_CHANCE = 0.95  # of the monitor noticing a new reverse shell


def routable(s, host):
    """Whether red's traffic reaches `host`: the Operational subnet only by way of an Enterprise host."""
    return OP_SUBNET_HOSTS >> host & 1 == 0 or s.held & ENTERPRISES != 0


def act_red(s, kind, target, p, rng):
    """Carry out red's action and note its result in `s.red_success`.

    Returns the traffic on `target`: number of events, mask of their ports, and whether a reverse shell was noticed.
    """
    s.red_exploit = -1
    s.red_noticed = -1
    s.red_pick = -1
    if kind == EXPLOIT:
        return exploit(s, target, p, rng)
    if kind == SCAN_HOST:
        return scan_host(s, target, p)
    if kind == RED_SLEEP:
        s.red_success = UNKNOWN
    elif kind == SCAN_SUBNET:
        scan_subnet(s, target)
    elif kind == ESCALATE:
        escalate(s, target, rng)
    else:
        impact(s)
    return 0, 0, False


def scan_subnet(s, subnet):
    """Learn the addresses of a subnet."""
    reached = subnet != OP_NET or s.held & ENTERPRISES != 0
    s.red_success = SUCCESS if reached else FAILURE
    if reached:
        s.known_ip |= HOSTS_OF_SUBNET[subnet]


def scan_host(s, host, p):
    """Learn which ports answer. Counts as a success even where no answer comes."""
    s.red_success = SUCCESS
    if not routable(s, host):
        return 0, 0, False
    ports = listening_ports(s, host, p)
    s.has_ports |= 1 << host
    s.ports_seen[host] = ports | s.ports_seen[host] if p.red_keeps_ports else ports
    return p.connections[host] + count_bits(s.decoys[host]), ports, False


def exploit(s, host, p, rng):
    """Attack by one of the ports red remembers; what happens depends on what listens there now."""
    s.red_success = FAILURE
    options = OPTIONS_OF_PORTS[s.ports_seen[host]] if s.has_ports >> host & 1 else 0
    if options == 0:
        return 0, 0, False
    way = choose_exploit(s, options, rng)
    s.red_exploit = way
    if not routable(s, host):
        return 0, 0, False
    port = EXPLOIT_BIT[way]
    found = p.outcome[host, way]
    if found == NOTHING:
        if s.decoys[host] & p.decoys_trapping[way] == 0:
            return 0, 0, False
        return LOGIN_EVENTS - 1 if way == SSH_EXPLOIT else 2, port, False
    if found == FUTILE:
        return LOGIN_EVENTS - 1, SSH_BIT, False
    bit = 1 << host
    if way == HARAKA and p.haraka_dies and s.restored & bit:
        return 1, port, False
    s.red_success = SUCCESS
    s.known_host |= bit
    s.held |= bit
    if found == SSH_LOGIN:
        s.ssh[host] += 1
        return LOGIN_EVENTS, SSH_BIT, False
    return open_shell(s, host, found, port, rng)


def choose_exploit(s, options, rng):
    """The exploit of highest priority with chance 0.75, else one of the others; as given, if that is an option."""
    given = s.given_exploit
    if given >= 0 and options >> given & 1:
        return given
    top = TOP_EXPLOIT[options]
    others = options & ~(1 << top)
    if others == 0 or rng.uniform() < TOP_CHANCE:
        return top
    skip = rng.integers(count_bits(others))
    for way in range(8):
        if others >> way & 1:
            if skip == 0:
                return way
            skip -= 1
    return top


def open_shell(s, host, found, port, rng):
    """A reverse shell: it leaves a file, and the monitor may miss it."""
    noticed = s.given_noticed == 1 if s.given_noticed >= 0 else rng.uniform() < NOTICE_CHANCE
    s.red_noticed = 1 if noticed else 0
    s.malware |= 1 << host
    if found == ROOT_SHELL:
        s.root[host] += 1
        s.owned |= 1 << host
    elif noticed:
        s.noticed[host] += 1
    else:
        s.unnoticed[host] += 1
    return 2 if noticed else 1, port, noticed


def escalate(s, host, rng):
    """Turn one foothold of `host` into a privileged one, and learn what the host knows."""
    bit = 1 << host
    if s.held & bit == 0:
        s.red_success = FAILURE
        return
    s.red_success = SUCCESS
    if s.owned & bit == 0:
        promote(s, host, rng)
    s.known_subnets |= 1 << SUBNET_OF[host]
    if LINK_OF[host] >= 0:
        s.known_ip |= 1 << LINK_OF[host]
    if host == OP_SERVER:
        s.ot_known = True


def promote(s, host, rng):
    """One foothold, uniformly drawn, leaves its kind and becomes privileged: kinds 0 SSH, 1 noticed, 2 unnoticed."""
    ssh, noticed, unnoticed = s.ssh[host], s.noticed[host], s.unnoticed[host]
    pick = s.given_pick
    if not ((pick == 0 and ssh > 0) or (pick == 1 and noticed > 0) or (pick == 2 and unnoticed > 0)):
        draw = rng.integers(ssh + noticed + unnoticed)
        pick = 0 if draw < ssh else (1 if draw < ssh + noticed else 2)
    if pick == 0:
        s.ssh[host] = ssh - 1
    elif pick == 1:
        s.noticed[host] = noticed - 1
    else:
        s.unnoticed[host] = unnoticed - 1
    s.red_pick = pick
    s.root[host] = 1
    s.owned |= 1 << host
    s.malware |= 1 << host


def impact(s):
    """Stop the operational service; any foothold on Op_Server0 will do."""
    reached = s.held >> OP_SERVER & 1 == 1 and s.ot_known
    s.red_success = SUCCESS if reached else FAILURE
    if reached and s.ot_active:
        s.ot_active = False
        if not s.ot_immune:
            s.ot_up = False
