"""PettingZoo, both ways: worlds with seats as its environments, and its environments as lanes of a batch.

parallel_env("spread")                                         # agents seat_0, seat_1 and seat_2, all at once
aec_env("connect4")                                            # agents seat_0 and seat_1, in turn
seat_batch("pettingzoo.classic.connect_four_v3:env", num_envs=8)          # lanes with seats
parallel_batch("pettingzoo.butterfly.pistonball_v6:parallel_env", num_envs=8)   # one who controls all agents
"""

from __future__ import annotations

from shoal.bridges.pettingzoo.joint import JointLane, parallel_batch
from shoal.bridges.pettingzoo.ours import aec_env, parallel_env
from shoal.bridges.pettingzoo.seats import seat_batch

__all__ = ["JointLane", "aec_env", "parallel_batch", "parallel_env", "seat_batch"]
