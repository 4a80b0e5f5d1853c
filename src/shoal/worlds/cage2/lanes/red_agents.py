"""The red agents: state machines that look only at their own memory and at the result of their last action."""

from __future__ import annotations

import numpy as np

from shoal.worlds.cage2.lanes import names
from shoal.worlds.cage2.lanes.bits import draw_bit

_USER_TARGETS = 0b1_1110_0000_0000  # User1..User4, one of which B-line enters by
_WINDOWS_USERS = 0b0110_0000_0000  # User1 and User2 lead to Enterprise1, the others to Enterprise0
_AFTER_FAILURE = np.array([0, 1, 2, 2, 2, 2, 5, 5, 5, 5, 9, 9, 9, 12, 13])
_USER, _GATE = -1, -2  # targets that depend on the user host B-line drew
_PLAN_KIND = np.array(
    [
        *(names.SCAN_SUBNET, names.SCAN_HOST, names.EXPLOIT, names.ESCALATE),
        *(names.SCAN_HOST, names.EXPLOIT, names.ESCALATE, names.SCAN_SUBNET),
        *(names.SCAN_HOST, names.EXPLOIT, names.ESCALATE),
        *(names.SCAN_HOST, names.EXPLOIT, names.ESCALATE, names.IMPACT),
    ]
)
_PLAN_TARGET = np.array(
    [
        *(names.USER_NET, _USER, _USER, _USER),
        *(_GATE, _GATE, _GATE, names.ENTERPRISE_NET),
        *(names.ENTERPRISE2, names.ENTERPRISE2, names.ENTERPRISE2),
        *(names.OP_SERVER, names.OP_SERVER, names.OP_SERVER, names.OP_SERVER),
    ]
)
_LAST_STAGE, _SCAN_OP_SERVER, _EXPLOIT_OP_SERVER = 14, 11, 12


def choose_red(s, rng):
    """Red's next action: kind and target. `s.given_target` decides the draws where it is one of the candidates."""
    if s.red == names.BLINE:
        return choose_bline(s, rng)
    if s.red == names.MEANDER:
        return choose_meander(s, rng)
    if s.red == names.SLEEPER or s.given_kind < 0:
        return names.RED_SLEEP, -1
    return s.given_kind, s.given_target


def forget_red(s):
    """The memory of a red agent at the start of an episode."""
    s.stage, s.entry, s.tried_op_server, s.op_server_silent = 0, -1, False, False
    s.nets_scanned, s.scanned, s.exploited, s.escalated, s.mapped = 0, 0, 0, 0, 0
    s.last_kind, s.last_target = names.RED_SLEEP, -1


# ---------------------------------------------------------------------- B-line: straight to the server


def choose_bline(s, rng):
    """Follow the plan: on after a success, back to an earlier stage after a failure."""
    stage = min(s.stage + 1, _LAST_STAGE) if s.red_success == names.SUCCESS else _AFTER_FAILURE[s.stage]
    if stage == _EXPLOIT_OP_SERVER and not s.tried_op_server:
        if s.op_server_silent:
            stage = 1
        else:
            s.tried_op_server = True
    if stage == 1 and s.entry < 0:
        s.entry = draw_bit(_USER_TARGETS, s.given_target, rng)
    if stage == _SCAN_OP_SERVER:  # the scan answers unless the way there has been cut
        s.op_server_silent = s.held & names.ENTERPRISES == 0
    s.stage = stage
    target = _PLAN_TARGET[stage]
    if target == _USER:
        target = s.entry
    elif target == _GATE:
        target = names.ENTERPRISE1 if _WINDOWS_USERS >> s.entry & 1 else names.ENTERPRISE0
    return _PLAN_KIND[stage], target


# ---------------------------------------------------------------------- Meander: every host of every subnet


def choose_meander(s, rng):
    """Digest the last result, then the first of: impact, scan a subnet, scan a host, escalate, exploit."""
    digest(s)
    if s.escalated >> names.OP_SERVER & 1:
        return remember(s, names.IMPACT, names.OP_SERVER)
    new_nets = s.known_subnets & ~s.nets_scanned
    if new_nets != 0:
        net = (
            names.ENTERPRISE_NET
            if new_nets >> names.ENTERPRISE_NET & 1
            else (names.OP_NET if new_nets >> names.OP_NET & 1 else names.USER_NET)
        )
        s.nets_scanned |= 1 << net
        return names.SCAN_SUBNET, net
    hosts = s.known_ip & ~s.scanned
    if hosts != 0:
        host = draw_bit(hosts, s.given_target, rng)
        s.scanned |= 1 << host
        return names.SCAN_HOST, host
    hosts = s.known_host & ~s.escalated & ~(s.mapped & ~s.exploited)
    if hosts != 0:
        host = draw_bit(hosts, s.given_target, rng)
        s.escalated |= 1 << host
        return remember(s, names.ESCALATE, host)
    host = draw_bit(s.known_ip & ~s.exploited, s.given_target, rng)  # never empty: Defender cannot be taken
    s.exploited |= 1 << host
    return remember(s, names.EXPLOIT, host)


def remember(s, kind, target):
    """Note an action whose result decides what Meander believes; returns it."""
    s.last_kind = kind
    s.last_target = target
    return kind, target


def digest(s):
    """Learn from the last exploit, escalation or impact. A failed exploit makes Meander doubt its deepest layer."""
    if s.last_target < 0:
        return
    bit = 1 << s.last_target
    if s.last_kind == names.EXPLOIT:
        if s.red_success == names.SUCCESS:
            s.mapped |= bit
        else:
            layer = s.escalated & names.OP_SUBNET_HOSTS
            if layer == 0:
                layer = s.escalated & names.ENTERPRISES
            s.escalated &= ~layer
            s.exploited &= ~(layer | bit)
    elif s.red_success == names.FAILURE:
        s.escalated &= ~bit
        if s.mapped & bit:
            s.exploited &= ~bit
    s.last_target = -1
