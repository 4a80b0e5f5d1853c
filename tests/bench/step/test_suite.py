"""Who is measured at what."""

import importlib

from shoal.bench.step import ours
from shoal.bench.step.suite import board_works, works_of
from shoal.registry import as_world


def test_hockey_is_measured_with_bots_inside_and_with_random_actions():
    works = works_of(as_world("hockey"), [8, 1024])
    assert [(work.name, work.num_envs) for work in works] == [
        ("hockey bots", 8),
        ("hockey random", 8),
        ("hockey bots", 1024),
        ("hockey random", 1024),
    ]
    for work in works[:2]:
        loop = next(contender for contender in work.contenders if contender.name == "python loop")
        module, _, function = loop.entry.partition(":")
        run = getattr(importlib.import_module(module), function)(2, **loop.options)
        assert run(3) == 3


def test_boards_are_measured_against_c():
    works = board_works(64)
    assert [work.name for work in works] == ["snake", "2048"]
    for work in works:
        assert [contender.name for contender in work.contenders] == ["shoal kernel", "shoal kernel, copies", "c loop"]


def test_a_board_is_stepped():
    assert ours.board(2, "Snake", compiled=False)(3) == 3
