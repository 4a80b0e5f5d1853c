"""What red's actions do to the network, and which traffic they cause."""

from __future__ import annotations

from shoal.worlds.cage2.lanes import names, tables
from shoal.worlds.cage2.lanes.bits import count_bits, draw_bit
from shoal.worlds.cage2.lanes.blue import listening_ports

TOP_CHANCE = 0.75  # of taking the exploit of highest priority when there are several
NOTICE_CHANCE = 0.95  # of the monitor noticing a new reverse shell


def routable(s, host):
    """Whether red's traffic reaches `host`: the Operational subnet only by way of an Enterprise host."""
    return names.OP_SUBNET_HOSTS >> host & 1 == 0 or s.held & names.ENTERPRISES != 0


def act_red(s, kind, target, p, rng):
    """Carry out red's action and note its result in `s.red_success`.

    Returns the traffic on `target`: number of events, mask of their ports, and whether a reverse shell was noticed.
    """
    s.red_exploit = -1
    s.red_noticed = -1
    s.red_pick = -1
    if kind == names.EXPLOIT:
        return exploit(s, target, p, rng)
    if kind == names.SCAN_HOST:
        return scan_host(s, target, p)
    if kind == names.RED_SLEEP:
        s.red_success = names.UNKNOWN
    elif kind == names.SCAN_SUBNET:
        scan_subnet(s, target)
    elif kind == names.ESCALATE:
        escalate(s, target, rng)
    else:
        impact(s)
    return 0, 0, False


def scan_subnet(s, subnet):
    """Learn the addresses of a subnet."""
    reached = subnet != names.OP_NET or s.held & names.ENTERPRISES != 0
    s.red_success = names.SUCCESS if reached else names.FAILURE
    if reached:
        s.known_ip |= tables.HOSTS_OF_SUBNET[subnet]


def scan_host(s, host, p):
    """Learn which ports answer. Counts as a success even where no answer comes."""
    s.red_success = names.SUCCESS
    if not routable(s, host):
        return 0, 0, False
    ports = listening_ports(s, host, p)
    s.has_ports |= 1 << host
    s.ports_seen[host] = ports | s.ports_seen[host] if p.red_keeps_ports else ports
    return p.connections[host] + count_bits(s.decoys[host]), ports, False


def exploit(s, host, p, rng):
    """Attack by one of the ports red remembers; what happens depends on what listens there now."""
    s.red_success = names.FAILURE
    options = tables.OPTIONS_OF_PORTS[s.ports_seen[host]] if s.has_ports >> host & 1 else 0
    if options == 0:
        return 0, 0, False
    way = choose_exploit(s, options, rng)
    s.red_exploit = way
    if not routable(s, host):
        return 0, 0, False
    port = tables.EXPLOIT_BIT[way]
    outcome = p.outcome[host, way]
    if outcome == tables.NOTHING:
        if s.decoys[host] & p.decoys_trapping[way] == 0:
            return 0, 0, False
        return tables.LOGIN_EVENTS - 1 if way == tables.SSH_EXPLOIT else 2, port, False
    if outcome == tables.FUTILE:
        return tables.LOGIN_EVENTS - 1, tables.SSH_BIT, False
    bit = 1 << host
    if way == tables.HARAKA and p.haraka_dies and s.restored & bit:
        return 1, port, False
    s.red_success = names.SUCCESS
    s.known_host |= bit
    s.held |= bit
    if outcome == tables.SSH_LOGIN:
        s.ssh[host] += 1
        return tables.LOGIN_EVENTS, tables.SSH_BIT, False
    return open_shell(s, host, outcome, port, rng)


def choose_exploit(s, options, rng):
    """The exploit of highest priority with chance 0.75, else one of the others; as given, if that is an option."""
    given = s.given_exploit
    if given >= 0 and options >> given & 1:
        return given
    top = tables.TOP_EXPLOIT[options]
    others = options & ~(1 << top)
    if others == 0 or rng.uniform() < TOP_CHANCE:
        return top
    return draw_bit(others, -1, rng)


def open_shell(s, host, outcome, port, rng):
    """A reverse shell: it leaves a file, and the monitor may miss it."""
    noticed = s.given_noticed == 1 if s.given_noticed >= 0 else rng.uniform() < NOTICE_CHANCE
    s.red_noticed = 1 if noticed else 0
    s.malware |= 1 << host
    if outcome == tables.ROOT_SHELL:
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
        s.red_success = names.FAILURE
        return
    s.red_success = names.SUCCESS
    if s.owned & bit == 0:
        promote(s, host, rng)
    s.known_subnets |= 1 << tables.SUBNET_OF[host]
    if tables.LINK_OF[host] >= 0:
        s.known_ip |= 1 << tables.LINK_OF[host]
    if host == names.OP_SERVER:
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
    reached = s.held >> names.OP_SERVER & 1 == 1 and s.ot_known
    s.red_success = names.SUCCESS if reached else names.FAILURE
    if reached and s.ot_active:
        s.ot_active = False
        if not s.ot_immune:
            s.ot_up = False
