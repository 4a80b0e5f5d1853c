"""Blue's table: what the monitor saw in this step and what Blue believes of every host, as 52 bits.

Four bits per host, in one integer `s.table`: bit 4h activity seen, 4h+1 it was an exploit; 4h+2 and 4h+3 the belief:
00 not compromised, 10 unknown, 01 user level, 11 privileged (first bit first).
"""

from __future__ import annotations

from shoal.worlds.cage2.lanes.bits import count_bits
from shoal.worlds.cage2.lanes.blue import NOWHERE, listening_ports
from shoal.worlds.cage2.lanes.deduction import note_repair, note_traffic
from shoal.worlds.cage2.lanes.names import DECOY, NUM_HOSTS, OP_SERVER, REMOVE, RESTORE

TABLE_BITS = 4 * NUM_HOSTS
QUIET, SCAN, EXPLOITED = 0b00, 0b01, 0b11
UNSURE, USER_LEVEL, PRIVILEGED = 0b0100, 0b1000, 0b1100
_BELIEFS = sum(0b1100 << 4 * h for h in range(NUM_HOSTS))

SCAN_MEMORY_HOSTS = (0, 1, 2, 3, 7, 8, 9, 10, 11, 12)  # all but the Op_Hosts
_MEMORY_ORDER = 0b1_1111_1000_1111


def update_table(s, action, placed, exposed, green_host, red_host, traffic, p):
    """Blue's table at the end of a step: its own action, then the traffic, then what Analyse found."""
    table = s.table & _BELIEFS
    if action >= RESTORE:
        table &= ~(0b1100 << 4 * (action - RESTORE))
    elif REMOVE <= action < DECOY:
        shift = 4 * (action - REMOVE)
        if table >> shift & 0b1100 != 0:
            table = table & ~(0b1100 << shift) | UNSURE << shift
    note_repair(s, action)
    count, ports, shell = traffic
    if green_host >= 0:
        green_ports = listening_ports(s, green_host, p)
        green_count = p.connections[green_host] + count_bits(s.decoys[green_host])
        if green_host == red_host:
            count += green_count
            ports |= green_ports
        else:
            table = show_traffic(table, green_host, green_count, green_ports, False, placed, p)
            note_traffic(s, green_host, green_count, green_ports, False, p)
    if count > 0:
        table = show_traffic(table, red_host, count, ports, shell, placed, p)
        note_traffic(s, red_host, count, ports, shell, p)
        if table >> 4 * red_host & 0b11 == SCAN:
            note_shown_decoys(s, red_host, p)
    if exposed != NOWHERE:
        table |= PRIVILEGED << 4 * exposed
    s.table = table
    if table >> 4 * OP_SERVER & 0b1000 != 0:
        s.op_server_shown = True


def note_shown_decoys(s, host, p):
    """A host that shows a scan has shown red its decoys; whether red still counts on older ones is the variant's."""
    older = s.decoys_shown[host] if p.red_keeps_ports else 0
    s.decoys_shown[host] = older | s.decoys[host]


def show_traffic(table, host, count, ports, shell, placed, p):
    """`table` with the events on one host; `shell`: one of them is a noticed reverse shell, on a port of its own."""
    here = placed == host
    activity = judge(count + (1 if here else 0), count_bits(ports) + (1 if shell else 0), shell, here, p)
    if activity == EXPLOITED:
        table = table & ~(0b1100 << 4 * host) | USER_LEVEL << 4 * host
    return table | activity << 4 * host


def judge(events, distinct, shell, decoy_placed, p):
    """Whether events look like a scan (many ports) or an exploit (a shell, or a port tried again and again)."""
    if distinct >= 3 and not (shell and p.cage_table and p.shell_seen_first):
        return SCAN
    if shell or (events >= 3 and distinct == 1):
        return EXPLOITED
    return QUIET if p.cage_table and decoy_placed else SCAN


def remember_scan(s):
    """The scan memory: note the first host, in table order, that shows a scan now."""
    for h in range(NUM_HOSTS):
        if s.table >> 4 * h & 0b11 == SCAN and _MEMORY_ORDER >> h & 1:
            s.scans_seen |= 1 << h
            s.latest_scan = h
            return
