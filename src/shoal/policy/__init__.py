"""A trained policy by itself: from observations to actions, without lanes, and as files for other programs.

`shoal.load(run)` opens one, `policy(obs)` acts, `shoal export` takes it along.
"""

from shoal.policy.load import load
from shoal.policy.policy import Policy

__all__ = ["Policy", "load"]
