"""Who is measured at what."""

import importlib

from shoal.bench.step.suite import works_of
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
