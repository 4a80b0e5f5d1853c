"""Does CAGE2 draw what the original draws? Situations set up in many lanes, one step, a chi-square test each."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal import make
from shoal.vector.kernel import KernelBatch
from shoal.worlds.cage2.lanes.batch import give
from shoal.worlds.cage2.lanes.names import (
    ENTERPRISE1,
    ESCALATE,
    EXPLOIT,
    GIVEN,
    MEANDER,
    NUM_HOSTS,
    OP_SERVER,
    SLEEP,
    SUCCESS,
)
from shoal.worlds.cage2.lanes.tables import PORTS
from tests.parity.chi_square import p_value

DRAWS = 40_000
WORST_P = 0.001
USER3, USER4 = 11, 12


def check_frequencies() -> list[dict]:
    """All cases: name, number of draws, p-value, and whether it is above 0.001."""
    plain = make("cage2", DRAWS, red="given", num_threads=1)
    green = make("cage2", DRAWS, red="sleep", green=True, num_threads=1)
    cases = {
        "exploit Enterprise1": _exploits(plain, ENTERPRISE1, {0: 2, 1: 1, 2: 3, 3: 4, 4: 0.1}),
        "exploit User3": _exploits(plain, USER3, {1: 1, 2: 3, 3: 4, 6: 6}),
        "exploit User4": _exploits(plain, USER4, {2: 3, 3: 4, 4: 0.1, 5: 5, 6: 6}),
        "exploit with one decoy": _exploits(plain, OP_SERVER, {4: 0.1, 6: 6}, extra=(25,)),
        "notice a user shell": _noticing(plain, USER3, exploit=2),
        "notice a root shell": _noticing(plain, USER4, exploit=6),
        "escalate one of six": _escalation(plain, ssh=2, noticed=3, unnoticed=1),
        "escalate one of two": _escalation(plain, ssh=0, noticed=1, unnoticed=1),
        "B-line's way in": _bline_entry(plain),
        "Meander scans": _meander(plain, known_ip=0b1_1111_0000_0110, scanned=0b1_0001_0000_0000),
        "Meander escalates": _meander(plain, known_ip=0b1, scanned=0b1, known_host=0b0111_0000_1110, escalated=0b0010),
        "Meander exploits": _meander(plain, known_ip=0b1_1111_1111_1111, scanned=0x1FFF, exploited=0b1_0100_0000_1010),
        "green": _green(green),
    }
    return [
        {"case": name, "draws": int(counts.sum()), "p": (p := p_value(counts, probabilities)), "ok": p > WORST_P}
        for name, (counts, probabilities) in cases.items()
    ]


def _step(batch: KernelBatch, **fields: Any) -> np.ndarray:
    """One step of Blue sleeping, from the reset state with `fields` changed. Returns the lanes' records."""
    batch.set_lanes(red=GIVEN)
    give(batch, kind=-1, target=-1, exploit=-1, noticed=-1, pick=-1, green=-1)
    batch.reset(seed=1)
    batch.set_lanes(**fields)
    batch.step(np.full(batch.num_envs, SLEEP))
    return batch.lane_state


def _count(values: np.ndarray, size: int) -> np.ndarray:
    return np.bincount(values.astype(np.int64), minlength=size)


def _exploits(batch: KernelBatch, host: int, options: dict[int, float], extra: tuple[int, ...] = ()) -> tuple:
    """Exploits chosen on `host` after a scan; `options`: priority by exploit. The top gets 3/4, the rest share 1/4."""
    ports = np.zeros(NUM_HOSTS, np.uint16)
    ports[host] = batch.kernel.values["ports"][host] | sum(1 << PORTS.index(port) for port in extra)
    s = _step(batch, given_kind=EXPLOIT, given_target=host, has_ports=1 << host, ports_seen=ports)
    probabilities = np.zeros(8)
    probabilities[list(options)] = 0.25 / (len(options) - 1)
    probabilities[max(options, key=lambda exploit: options[exploit])] = 0.75
    return _count(s["red_exploit"], 8), probabilities


def _noticing(batch: KernelBatch, host: int, exploit: int) -> tuple:
    ports = np.zeros(NUM_HOSTS, np.uint16)
    ports[host] = batch.kernel.values["ports"][host]
    given = {"given_kind": EXPLOIT, "given_target": host, "given_exploit": exploit}
    s = _step(batch, has_ports=1 << host, ports_seen=ports, **given)
    assert (s["red_success"] == SUCCESS).all()
    return _count(s["red_noticed"], 2), np.array([0.05, 0.95])


def _escalation(batch: KernelBatch, **footholds: int) -> tuple:
    fields: dict[str, Any] = {}
    for kind, number in footholds.items():
        fields[kind] = np.zeros(NUM_HOSTS, np.int32)
        fields[kind][USER3] = number
    s = _step(batch, given_kind=ESCALATE, given_target=USER3, held=1 << USER3 | 1 << 8, **fields)
    number = np.array(list(footholds.values()))
    return _count(s["red_pick"], 3), number / number.sum()


def _bline_entry(batch: KernelBatch) -> tuple:
    s = _step(batch, red=0, stage=0, red_success=SUCCESS)
    return _count(s["red_target"], NUM_HOSTS), np.array([0.0] * 9 + [0.25] * 4)


def _meander(batch: KernelBatch, **masks: int) -> tuple:
    """Targets of Meander's next move from a memory of `masks`; the candidates follow from its rules 3 to 5."""
    known = {"known_host": 1 << 8, "escalated": 1 << 8, "exploited": 1 << 8} | masks
    s = _step(batch, red=MEANDER, nets_scanned=1, **known)
    candidates = known["known_ip"] & ~known["scanned"]
    if not candidates:
        candidates = known["known_host"] & ~known["escalated"]
    if not candidates:
        candidates = known["known_ip"] & ~known["exploited"]
    bits = np.array([candidates >> h & 1 for h in range(NUM_HOSTS)])
    return _count(s["red_target"], NUM_HOSTS), bits / bits.sum()


def _green(batch: KernelBatch) -> tuple:
    batch.reset(seed=1)
    batch.step(np.full(batch.num_envs, SLEEP))
    probabilities = np.zeros(NUM_HOSTS + 1)
    probabilities[[0, *(1 + h for h in (8, 9, 10, 11, 12, 1, 2, 3))]] = [0.5] + [1 / 16] * 8
    return _count(batch.lane_state["green_host"] + 1, NUM_HOSTS + 1), probabilities
