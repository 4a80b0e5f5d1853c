"""What Blue concludes from traffic is true, and as much as can be known."""

from __future__ import annotations

import numpy as np
import pytest

from shoal import make
from shoal.worlds.cage2.lanes.batch import give
from shoal.worlds.cage2.lanes.deduction import ENTERED, HOST_MEMORY_SIZE, REPELLED, SCANNED
from shoal.worlds.cage2.lanes.names import BLUE_ACTIONS, EXPLOIT, HOSTS, MONITOR, SCAN_HOST, USER0
from shoal.worlds.cage2.lanes.reduced import PLAIN

LANES = 16
REMOVES = [k for k, name in enumerate(BLUE_ACTIONS) if name.startswith("Remove")]


def lanes_over_time(variant, allowed, steps=100):
    """The state [B] after every step of play by chance, with actions from `allowed`."""
    batch = make("cage2", LANES, variant=variant, red=["bline", "meander"], host_memory=True, compiled=False)
    rng = np.random.default_rng(3)
    batch.reset(seed=3)
    for _ in range(steps - 1):
        batch.step(rng.choice(allowed, LANES))
        yield batch.lane_state.copy()


def mask_of(counts):
    """[B, hosts] -> [B] masks of the hosts with any."""
    return ((counts > 0) << np.arange(len(HOSTS))).sum(1)


@pytest.mark.parametrize("variant", ["cage2", "cage2-2022", "debugged"])
def test_blue_knows_every_foothold_if_it_never_removes(variant):
    allowed = [k for k in range(len(BLUE_ACTIONS)) if k not in REMOVES]
    entered = 0
    for s in lanes_over_time(variant, allowed):
        seen = s["seen_shells"] | s["seen_logins"] | s["seen_roots"]
        np.testing.assert_array_equal(seen | 1 << USER0, s["held"])  # red's base was never entered
        entered += int((s["latest_kind"] == ENTERED).sum())
    assert entered > 100


@pytest.mark.parametrize("variant", ["cage2", "cage2-2022", "debugged"])
def test_blue_knows_what_remove_would_not_kill(variant):
    for s in lanes_over_time(variant, np.arange(len(BLUE_ACTIONS))):
        stubborn = mask_of(s["ssh"]) | mask_of(s["unnoticed"])
        assert (mask_of(s["noticed"]) & ~s["seen_shells"] == 0).all()
        assert (stubborn & ~(s["seen_logins"] | s["seen_roots"]) == 0).all()
        assert (s["seen_roots"] & ~s["owned"] == 0).all()


def test_the_latest_traffic_is_remembered():
    """A scan, a shell, silence: the last eight numbers but one, and the host before them."""
    batch = make("cage2", 1, red="given", host_memory=True, compiled=False)
    batch.reset(seed=0)
    seen = []
    user2 = HOSTS.index("User2")
    for kind, exploit in ((SCAN_HOST, -1), (EXPLOIT, 1), (0, -1), (0, -1), (0, -1), (0, -1)):
        give(batch, kind=kind, target=user2, exploit=exploit, noticed=1)
        obs = batch.step(np.array([MONITOR]))[0][0, -HOST_MEMORY_SIZE:]
        hosts, kinds, silence = obs[-20:-7], obs[-7:-4], obs[-4:]
        assert hosts.argmax() == user2
        assert hosts.sum() == kinds.sum() == silence.sum() == 1
        seen.append((int(kinds.argmax()), int(silence.argmax())))
    assert seen == [(SCANNED, 0), *((ENTERED, quiet) for quiet in (0, 1, 2, 3, 3))]


def test_a_decoy_that_was_tried_is_no_foothold():
    batch = make("cage2", 1, red="given", host_memory=True, compiled=False)
    batch.reset(seed=0)
    user2 = HOSTS.index("User2")
    femitter = BLUE_ACTIONS.index("DecoyFemitter User2")
    for action, kind, exploit in ((femitter, SCAN_HOST, -1), (MONITOR, EXPLOIT, 7)):
        give(batch, kind=kind, target=user2, exploit=exploit)
        batch.step(np.array([action]))
    lane = batch.lane_state[0]
    assert lane["latest_kind"] == REPELLED
    assert lane["seen_shells"] | lane["seen_logins"] | lane["seen_roots"] == 0


@pytest.mark.parametrize("actions", ["full", "reduced"])
def test_remove_is_offered_where_a_shell_was_noticed(actions):
    """User2: EternalBlue opens a privileged shell and BlueKeep one of user level; Remove kills the latter alone."""
    batch = make("cage2", 3, red="given", actions=actions, mask="useful", compiled=False)
    _, info = batch.reset(seed=0)
    names = BLUE_ACTIONS if actions == "full" else [BLUE_ACTIONS[k] for k in PLAIN]
    removes = [k for k, name in enumerate(names) if name.startswith("Remove")]
    idle = np.full(3, names.index("Analyse Defender"))
    assert not info["action_mask"][:, removes].any()
    user2 = HOSTS.index("User2")
    give(batch, kind=SCAN_HOST, target=user2)
    batch.step(idle)
    give(batch, kind=EXPLOIT, exploit=np.array([0, 1, 1]), noticed=np.array([1, 1, 0]))
    *_, info = batch.step(idle)
    assert info["action_mask"][:, names.index("Remove User2")].tolist() == [False, True, False]
    assert info["action_mask"][:, removes].sum() == 1
    restore = names.index("Restore User2")
    assert info["action_mask"][:, restore].tolist() == [True, False, True]  # Remove is enough for a fresh shell
    give(batch, kind=0)
    *_, info = batch.step(idle)
    assert info["action_mask"][:, restore].all()  # it may have been used by now
    *_, info = batch.step(np.full(3, names.index("Remove User2")))
    assert not info["action_mask"][:, removes].any()
