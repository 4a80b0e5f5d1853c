"""The suite "port": what is measured against what."""

import pytest

from shoal.bench.port import BY_HAND, PortArgs, work_of
from shoal.errors import ConfigError, UnknownName


@pytest.mark.parametrize("env", BY_HAND)
def test_every_class_meets_itself_and_where_there_is_one_a_kernel_by_hand(env):
    work = work_of(env, 8)
    names = [contender.name for contender in work.contenders]
    assert names[:2] == ["the class compiled", "SyncVectorEnv"]
    assert ("kernel by hand" in names) == (BY_HAND[env] is not None)


def test_unknown_environments_and_no_lanes_are_refused():
    with pytest.raises(UnknownName, match="CartPole-v1"):
        PortArgs(envs=("CartPole-v9",))
    with pytest.raises(ConfigError, match="at least 1"):
        PortArgs(lanes=0)
