"""Options of the factory: sizes, wrappers, masks, and one sentence for each mistake."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from shoal import make
from shoal.errors import ConfigError, ShoalError
from shoal.options import as_values, build
from shoal.world import BatchOptions
from shoal.worlds.cage2.lanes.batch import give
from shoal.worlds.cage2.lanes.belief import SCAN_MEMORY_HOSTS
from shoal.worlds.cage2.lanes.names import ANALYSE, DECOY, EXPLOIT, NUM_HOSTS, OP_SERVER, RESTORE_OP_SERVER, SCAN_HOST
from shoal.worlds.cage2.lanes.reduced import DECOY_LISTS, PLAIN
from shoal.worlds.cage2.lanes.workflow import WORKFLOWS, as_workflow, as_workflows, one_hot
from shoal.worlds.cage2.world import WORLD, Cage2Options, deal

IDLE = PLAIN.index(ANALYSE)  # Analyse Defender: nothing ever happens there
EVERYTHING = {"actions": "reduced", "mask": "evidence", "workflow": [7, 3]}
EVERYTHING |= dict.fromkeys(("scan_memory", "decoy_memory", "host_memory"), True)


@pytest.mark.parametrize(
    ("options", "size", "choices"),
    [
        ({}, 52, 145),
        ({"scan_memory": True}, 62, 145),
        ({"decoy_memory": True}, 78, 145),
        ({"host_memory": True}, 124, 145),
        ({"workflow": "balanced"}, 77, 145),
        (EVERYTHING, 185, 36),
    ],
)
def test_sizes(options, size, choices):
    batch = make("cage2", 2, compiled=False, **options)
    assert batch.single_observation_space.shape == (size,)
    assert batch.single_action_space.n == choices
    obs, _ = batch.reset(seed=0)
    assert batch.observation_space.contains(obs)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"red": "bilne"}, "bline"),
        ({"variant": "cage3"}, "cage2"),
        ({"table": "sead"}, "seed"),
        ({"length": 0}, "at least 1"),
        ({"length": [30, -1]}, "at least 1"),
        ({"red": []}, "empty"),
        ({"workflow": []}, "empty"),
        ({"workflow": "user user op_host op_server defender"}, "not an order of the five"),
        ({"workflow": (0, 1, 2, 3)}, "not an order of the five"),
        ({"workflow": 120}, "0 to 119"),
        ({"compliance": "truth"}, "true-state"),
        ({"actions": "few"}, "reduced"),
        ({"mask": "all"}, "evidence"),
        ({"alignment_weight": 30}, "workflow"),
        ({"num_envs": 0}, "at least 1"),
    ],
)
def test_mistakes_are_explained_in_one_sentence(options, words):
    num_envs = options.pop("num_envs", 2)
    with pytest.raises(ShoalError, match=words):
        make("cage2", num_envs, **options)


def test_a_decision_out_of_range_is_refused():
    batch = make("cage2", 2, red="given", compiled=False)
    with pytest.raises(ConfigError, match="from -1"):
        give(batch, target=13)
    with pytest.raises(ConfigError, match="no decision"):
        give(batch, colour=1)


def test_settings_are_dealt_out_in_turn():
    batch = make("cage2", 5, red=["meander", "sleep"], length=[30, 50, 100], workflow=[7, 3], compiled=False)
    assert batch.lane_state["red"].tolist() == [1, 2, 1, 2, 1]
    assert batch.lane_state["length"].tolist() == [30, 50, 100, 30, 50]
    obs, _ = batch.reset(seed=0)
    np.testing.assert_array_equal(obs[:, 52:], [one_hot(tuple(order)) for order in batch.lane_state["workflow"]])
    assert (obs[0] != obs[1]).any()


@pytest.mark.parametrize(
    ("workflow", "orders"),
    [
        ([0, 1, 2, 3, 4], [WORKFLOWS[k] for k in range(5)]),  # in a list, numbers are those of workflows
        ((0, 1, 2, 3, 4), [(0, 1, 2, 3, 4)]),  # in a tuple, numbers to 4 are unit types
        (np.array([4, 3, 2, 1, 0]), [(4, 3, 2, 1, 0)]),
        (["user", "op_host", "op_server", "enterprise", "defender"], [as_workflow("reverse")]),
        (("user", "op_host", "op_server", "enterprise", "defender"), [as_workflow("reverse")]),
        (("balanced", "reverse"), [as_workflow("balanced"), as_workflow("reverse")]),
        ([[4, 3, 2, 1, 0], 7, "balanced"], [(4, 3, 2, 1, 0), WORKFLOWS[7], as_workflow("balanced")]),
        ((7, 3), [WORKFLOWS[7], WORKFLOWS[3]]),
        ("user > op_host > op_server > enterprise > defender", [as_workflow("reverse")]),
        (7, [WORKFLOWS[7]]),
    ],
)
def test_one_workflow_or_several_and_the_same_ones_from_a_file(workflow, orders):
    options = build(Cage2Options, {"workflow": workflow}, "of cage2", "")
    assert as_workflows(options.workflow) == tuple(orders)
    assert as_workflows(Cage2Options(workflow=workflow).workflow) == tuple(orders)
    assert replace(options, length=30).workflow == options.workflow
    from_file = build(Cage2Options, json.loads(json.dumps(as_values(options))), "in config.json", "")
    assert as_workflows(from_file.workflow) == tuple(orders)


def test_names_may_be_spelled_in_any_way_and_arrays_are_lists():
    options = Cage2Options(variant="CAGE2_2022", red=" Bline, meander", length=np.array([30, 50]))
    assert (options.variant, options.reds, options.lengths) == ("cage2-2022", ("bline", "meander"), (30, 50))


def everything(num_envs, **options):
    """All wrappers at once, in one compiled kernel."""
    return make("cage2", num_envs, **{**EVERYTHING, "red": "given", **options})


def scan(batch, host):
    give(batch, kind=SCAN_HOST, target=host)
    return batch.step(np.full(batch.num_envs, IDLE))[0][:, 52:62]


def test_scan_memory_keeps_the_latest_scan_apart():
    batch = everything(1)
    batch.reset(seed=0)
    place = {host: k for k, host in enumerate(SCAN_MEMORY_HOSTS)}
    first = scan(batch, 9)[0]
    assert first[place[9]] == 2
    assert first.sum() == 2
    second = scan(batch, 12)[0]
    assert (second[place[9]], second[place[12]]) == (1, 2)
    give(batch, kind=-1)
    third = batch.step(np.full(1, IDLE))[0][0, 52:62]
    np.testing.assert_array_equal(third, second)  # nothing seen: the memory stays


def test_next_decoy_walks_through_its_list_and_restore_clears_the_book():
    batch = everything(1)
    batch.reset(seed=0)
    host, which = 10, list(DECOY_LISTS).index(10)
    choice = len(PLAIN) + which
    used = []
    for _ in range(5):
        _, _, _, _, info = batch.step(np.array([choice]))
        used.append(int(batch.lane_state["blue_action"][0]))
    assert used == [*DECOY_LISTS[host], DECOY_LISTS[host][0]]
    assert not info["action_mask"][0, choice]
    *_, info = batch.step(np.array([PLAIN.index(132 + host)]))
    assert info["action_mask"][0, choice]
    assert batch.lane_state["decoys"][0, host] == 0


def test_decoy_memory_counts_what_stands():
    batch = everything(1)
    batch.reset(seed=0)
    choice = len(PLAIN) + list(DECOY_LISTS).index(9)
    counts = [batch.step(np.array([choice]))[0][0, 62 + 9] for _ in range(4)]
    assert counts == [0.25, 0.5, 0.75, 1.0]


def test_decoy_memory_knows_what_red_has_seen():
    for variant, after in (("cage2", 0.0), ("cage2-2022", 0.25)):  # the old red never forgets a port
        batch = everything(1, variant=variant)
        batch.reset(seed=0)
        place, restore = len(PLAIN) + list(DECOY_LISTS).index(9), PLAIN.index(132 + 9)
        seen = []
        for action, kind in ((place, -1), (IDLE, SCAN_HOST), (restore, -1), (IDLE, SCAN_HOST)):
            give(batch, kind=kind, target=9)
            seen.append(batch.step(np.array([action]))[0][0, 62 + NUM_HOSTS + 9])
        assert seen == [0.0, 0.25, 0.25, after]


def test_reduced_actions_are_the_plain_ones():
    batch = everything(len(PLAIN))
    batch.reset(seed=0)
    batch.step(np.arange(len(PLAIN)))
    assert batch.lane_state["blue_action"].tolist() == list(PLAIN)
    assert all(DECOY <= action < 132 for actions in DECOY_LISTS.values() for action in actions)
    assert all((action - DECOY) % NUM_HOSTS == host for host, actions in DECOY_LISTS.items() for action in actions)


def test_restoring_the_server_waits_for_evidence():
    batch = everything(2)
    restore = PLAIN.index(RESTORE_OP_SERVER)
    _, info = batch.reset(seed=0)
    assert not info["action_mask"][:, restore].any()
    batch.lane_state["held"] |= 1 << 1
    give(batch, kind=SCAN_HOST, target=OP_SERVER)
    batch.step(np.full(2, IDLE))
    give(batch, kind=np.array([EXPLOIT, -1]), target=OP_SERVER)
    *_, info = batch.step(np.full(2, IDLE))
    assert info["action_mask"][:, restore].tolist() == [True, False]
    assert not batch.lane_state["early_restore"].any()
    *_, info = batch.step(np.array([restore, IDLE]))
    assert info["action_mask"][0, restore]
    assert not info["early_restore"].any()


def test_some_of_the_lanes_are_dealt_what_they_would_have_got_among_all():
    options = Cage2Options(red="bline,meander,sleep", length=(10, 20), workflow=[7, 3])
    whole = WORLD.make(8, options, BatchOptions(compiled=False))
    for first, count in ((0, 8), (3, 4), (5, 2)):
        part = WORLD.make(count, deal(options, range(first, first + count), 8), BatchOptions(compiled=False))
        for name in ("red", "length", "workflow"):
            wanted = whole.lane_state[name][first : first + count]
            np.testing.assert_array_equal(part.lane_state[name], wanted)
