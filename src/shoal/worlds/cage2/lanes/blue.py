"""What Blue's actions do to the network, and what it costs."""

from __future__ import annotations

from shoal.worlds.cage2.lanes import names
from shoal.worlds.cage2.lanes.bits import count_bits

NOWHERE = -1
_WORTH_TEN = 0b0000_1000_1110  # confidentiality 1.0: the Enterprise servers and Op_Server0; in tenths
_WORTH_ONE = 0b1_1110_0111_0001  # 0.1: all others but User0, which is worth nothing


def listening_ports(s, host, p):
    """Mask of the ports that answer on `host`: genuine services and decoys."""
    ports = p.ports[host]
    decoys = s.decoys[host]
    for d in range(8):
        if decoys >> d & 1:
            ports |= p.decoy_opens[d]
    return ports


def act_blue(s, action, p):
    """Carry out one of the 145 actions.

    Returns the host that got a decoy, and the host where Analyse found malware; NOWHERE if none did.
    """
    s.blue_success = names.UNKNOWN if action == names.SLEEP else names.SUCCESS
    if action < names.ANALYSE:
        return NOWHERE, NOWHERE
    if action < names.REMOVE:
        host = action - names.ANALYSE
        return NOWHERE, (host if s.malware >> host & 1 else NOWHERE)
    if action < names.DECOY:
        remove(s, action - names.REMOVE)
        return NOWHERE, NOWHERE
    if action >= names.RESTORE:
        restore(s, action - names.RESTORE)
        return NOWHERE, NOWHERE
    host = (action - names.DECOY) % names.NUM_HOSTS
    placed = place_decoy(s, (action - names.DECOY) // names.NUM_HOSTS, host, p)
    return (host if placed else NOWHERE), NOWHERE


def remove(s, host):
    """Kill the shells whose opening was noticed. SSH logins, unnoticed and privileged footholds stay."""
    s.noticed[host] = 0
    if s.ssh[host] + s.unnoticed[host] + s.root[host] == 0:
        s.held &= ~(1 << host)


def restore(s, host):
    """Bring `host` back from its image: footholds, decoys and malware are gone, red's knowledge is not."""
    bit = 1 << host
    s.ssh[host] = 0
    s.noticed[host] = 0
    s.unnoticed[host] = 0
    s.decoys[host] = 0
    s.malware &= ~bit
    s.restored |= bit
    if host == names.USER0:  # red's base cannot be lost
        s.root[host] = 1
    else:
        s.root[host] = 0
        s.held &= ~bit
        s.owned &= ~bit
    if host == names.OP_SERVER:  # the image loses the handle by which Impact stops the service: it never stops again
        s.ot_up = True
        s.ot_active = True
        s.ot_immune = True


def place_decoy(s, decoy, host, p):
    """Place a decoy unless its port is taken or the system is another; True if it was placed."""
    fits = p.decoy_hosts[decoy] >> host & 1 and listening_ports(s, host, p) & p.decoy_checks[decoy] == 0
    if fits:
        s.decoys[host] |= 1 << decoy
    else:
        s.blue_success = names.FAILURE
    return fits


def cost_in_tenths(s, action, p):
    """What this step costs Blue, in tenths: a Restore, a stopped service, every compromised host."""
    lost = s.held if p.user_level_costs else s.owned
    cost = 10 * count_bits(lost & _WORTH_TEN) + count_bits(lost & _WORTH_ONE)
    if action >= names.RESTORE:
        cost += 10
    if not s.ot_up:
        cost += 100
    return cost
