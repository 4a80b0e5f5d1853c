"""CAGE Challenge 2 as a kernel: one lane is one network under attack.

The rules are in the modules beside this one: `blue` and `red` (what actions do), `red_agents` (which action red
takes), `belief` (what Blue sees), `reduced` and `compliance` (options around the world).
"""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from shoal.vector.kernel import Kernel, b1, f32, f64, i8, i32, i64, record, u8, u16
from shoal.worlds.cage2.lanes.belief import SCAN_MEMORY_HOSTS, TABLE_BITS, remember_scan, update_table
from shoal.worlds.cage2.lanes.bits import count_bits
from shoal.worlds.cage2.lanes.blue import act_blue, cost_in_tenths
from shoal.worlds.cage2.lanes.compliance import align, charge_idleness, held_types, rate
from shoal.worlds.cage2.lanes.deduction import HOST_MEMORY_SIZE, clear_memory, may_help, write_memory
from shoal.worlds.cage2.lanes.names import NUM_ACTIONS, NUM_HOSTS, RESTORE_OP_SERVER, SCAN_SUBNET, UNKNOWN, USER0
from shoal.worlds.cage2.lanes.red import act_red
from shoal.worlds.cage2.lanes.red_agents import choose_red, forget_red
from shoal.worlds.cage2.lanes.reduced import NUM_REDUCED, PLAIN, allow_reduced, clear_book, expand
from shoal.worlds.cage2.lanes.tables import variant_params

MOST_DECOYS = 4  # that fit on one host
GREEN_HOSTS = np.array([8, 9, 10, 11, 12, 1, 2, 3])
_RESTORE_OP_SERVER_REDUCED = PLAIN.index(RESTORE_OP_SERVER)
_MEMORY_HOSTS = np.array(SCAN_MEMORY_HOSTS)


class Cage2(Kernel):
    """Defend thirteen hosts against a red agent, 145 actions, 52 bits of observation.

    Settings of a lane, which `reset` leaves alone: `red` (number in `RED_AGENTS`), `length` of an episode, `workflow`
    (unit types in order), and the `given_*` fields: random decisions and red actions given from outside, -1 where
    they are to be drawn (see `decisions`).
    """

    observation_space = gym.spaces.Box(0, 1, (TABLE_BITS,), np.float32)
    action_space = gym.spaces.Discrete(NUM_ACTIONS)
    metadata = {"renderer": "shoal.worlds.cage2.rendering:NETWORK"}
    state = record(
        # settings
        red=i8, length=i32, workflow=i8[5],
        given_kind=i8, given_target=i8, given_exploit=i8, given_noticed=i8, given_pick=i8, given_green=i8,
        # the network: footholds per host by kind, masks of hosts, the operational service
        ssh=i32[NUM_HOSTS], noticed=i32[NUM_HOSTS], unnoticed=i32[NUM_HOSTS], root=i32[NUM_HOSTS],
        held=u16, owned=u16, malware=u16, restored=u16, decoys=u8[NUM_HOSTS],
        ot_up=b1, ot_active=b1, ot_immune=b1, ot_known=b1,
        # what red knows
        ports_seen=u16[NUM_HOSTS], has_ports=u16, known_ip=u16, known_host=u16, known_subnets=u8,
        # memory of B-line
        stage=i8, entry=i8, tried_op_server=b1, op_server_silent=b1,
        # memory of Meander
        nets_scanned=u8, scanned=u16, exploited=u16, escalated=u16, mapped=u16, last_kind=i8, last_target=i8,
        # what happened in the last step
        red_kind=i8, red_target=i8, red_exploit=i8, red_noticed=i8, red_pick=i8, red_success=i8,
        blue_action=u8, blue_success=i8, green_host=i8, reward_tenths=i32,
        # Blue's table and bookkeeping
        table=i64, op_server_shown=b1, early_restore=b1, scans_seen=u16, latest_scan=i8,
        decoys_used=u8[NUM_HOSTS], decoys_shown=u8[NUM_HOSTS],
        seen_shells=u16, seen_logins=u16, seen_roots=u16, latest_host=i8, latest_kind=i8, silence=i8,
        # compliance
        fixes=i32, compliant=i32, fixed_types=u8, env_return_tenths=i64, alignment=f64,
        t=i32,
    )  # fmt: skip
    info = record(
        held_types=u8, held=u16, owned=u16, fixes=i32, compliant=i32, compliance=f32, env_return=f32, alignment=f32,
        early_restore=b1,
    )  # fmt: skip
    params = {
        **variant_params("cage2"),
        **dict.fromkeys(("cage_table", "green", "reduced_actions", "show_workflow"), False),
        **dict.fromkeys(("scan_memory", "decoy_memory", "host_memory"), False),
        "compliance": 1,
        "alignment_weight": 0.0,
        "step_bonus": 0.0,
        "step_penalty": 0.0,
        "no_fix_penalty": 0.2,
    }

    def __init__(self, **params: object) -> None:
        super().__init__(**params)
        appended = {  # in the order of `observe`
            "scan_memory": np.full(len(SCAN_MEMORY_HOSTS), 2),
            "decoy_memory": np.ones(2 * NUM_HOSTS),
            "host_memory": np.ones(HOST_MEMORY_SIZE),
            "show_workflow": np.ones(25),
        }
        parts = [np.ones(TABLE_BITS), *(high for name, high in appended.items() if self.values[name])]
        top = np.concatenate(parts).astype(np.float32)
        self.observation_space = gym.spaces.Box(np.zeros_like(top), top, dtype=np.float32)
        if self.values["reduced_actions"]:
            self.action_space = gym.spaces.Discrete(NUM_REDUCED)

    def reset(s, p, rng):
        clear_network(s)
        forget_red(s)
        s.red_kind, s.red_target, s.red_exploit, s.red_noticed, s.red_pick, s.red_success = 0, -1, -1, -1, -1, UNKNOWN
        s.blue_action, s.blue_success, s.green_host, s.reward_tenths = 0, UNKNOWN, -1, 0
        s.table, s.op_server_shown, s.early_restore, s.scans_seen, s.latest_scan = 0, False, False, 0, -1
        clear_book(s)
        clear_memory(s)
        s.fixes, s.compliant, s.fixed_types, s.env_return_tenths, s.alignment, s.t = 0, 0, 0, 0, 0.0, 0

    def step(s, action, p, rng):
        if p.reduced_actions:
            action = expand(s, action)
        aligned = align(s, action, p)
        if action == RESTORE_OP_SERVER and not s.op_server_shown:
            s.early_restore = True
        placed, exposed = act_blue(s, action, p)
        green_host = choose_green(s, rng) if p.green else -1
        kind, target = choose_red(s, rng)
        traffic = act_red(s, kind, target, p, rng)
        tenths = -cost_in_tenths(s, action, p)
        red_host = -1 if kind == SCAN_SUBNET else target
        update_table(s, action, placed, exposed, green_host, red_host, traffic, p)
        if p.scan_memory:
            remember_scan(s)
        s.blue_action, s.red_kind, s.red_target, s.green_host = action, kind, target, green_host
        s.t += 1
        over = s.t >= s.length
        if over:
            aligned += charge_idleness(s, p)
        s.reward_tenths = tenths
        s.env_return_tenths += tenths
        s.alignment += aligned
        return tenths / 10 + aligned, False, over

    def observe(s, p, out):
        table = s.table
        for k in range(TABLE_BITS):
            out[k] = table >> k & 1
        at = TABLE_BITS
        if p.scan_memory:
            for k in range(len(_MEMORY_HOSTS)):
                host = _MEMORY_HOSTS[k]
                out[at + k] = 2 if host == s.latest_scan else s.scans_seen >> host & 1
            at += len(_MEMORY_HOSTS)
        if p.decoy_memory:
            for h in range(NUM_HOSTS):
                out[at + h] = count_bits(s.decoys[h]) / MOST_DECOYS
                out[at + NUM_HOSTS + h] = count_bits(s.decoys_shown[h]) / MOST_DECOYS
            at += 2 * NUM_HOSTS
        if p.host_memory:
            write_memory(s, out, at)
            at += HOST_MEMORY_SIZE
        if p.show_workflow:
            for position in range(5):
                for kind in range(5):
                    out[at + 5 * position + kind] = 1 if s.workflow[position] == kind else 0

    def inform(s, p, out):
        out.held_types = held_types(s.held)
        out.held = s.held
        out.owned = s.owned
        out.fixes = s.fixes
        out.compliant = s.compliant
        out.compliance = rate(s)
        out.env_return = s.env_return_tenths / 10
        out.alignment = s.alignment
        out.early_restore = s.early_restore


class Cage2Masked(Cage2):
    """`Cage2` with an action mask: no decoy list that is used up, no Remove without a shell that was noticed.

    One Restore of Op_Server0 makes Impact harmless for the rest of the episode, even before any attack. Under
    `needs_evidence` that action is forbidden until Blue's table has shown a foothold there.
    """

    params = {**Cage2.params, "needs_evidence": False}

    def mask(s, p, out):
        restore_op_server = RESTORE_OP_SERVER
        if p.reduced_actions:
            allow_reduced(s, out)
            restore_op_server = _RESTORE_OP_SERVER_REDUCED
        else:
            for action in range(NUM_ACTIONS):
                out[action] = may_help(s, action)
        if p.needs_evidence and not s.op_server_shown:
            out[restore_op_server] = False


def clear_network(s):
    """No foothold but red's base on User0, which is all that red knows."""
    for h in range(NUM_HOSTS):
        s.ssh[h] = 0
        s.noticed[h] = 0
        s.unnoticed[h] = 0
        s.root[h] = 0
        s.decoys[h] = 0
        s.ports_seen[h] = 0
    s.root[USER0] = 1
    base = 1 << USER0
    s.held, s.owned, s.known_ip, s.known_host, s.known_subnets = base, base, base, base, 1
    s.malware, s.restored, s.has_ports = 0, 0, 0
    s.ot_up, s.ot_active, s.ot_immune, s.ot_known = True, True, False, False


def choose_green(s, rng):
    """The host that green scans in this step, or -1: half of the time nobody."""
    if s.given_green >= 0:
        return s.given_green if s.given_green < NUM_HOSTS else -1
    if rng.uniform() < 0.5:
        return -1
    return GREEN_HOSTS[rng.integers(len(GREEN_HOSTS))]
