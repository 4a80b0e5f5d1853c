"""Conformance: does a batch keep the promises of `shoal.vector.batch`? For our batches and for anybody's.

```python
from shoal.testing import assert_batch, check_batch

for finding in check_batch(lambda n: gymnasium.make_vec("CartPole-v1", num_envs=n)):
    print(finding)
```
"""

from __future__ import annotations

from shoal.testing.findings import BROKEN, NOT_OFFERED, NOT_SEEN, ContractBroken, Finding
from shoal.testing.suite import PROMISES, assert_batch, check_agreement, check_batch, promise_name

__all__ = [
    "BROKEN",
    "NOT_OFFERED",
    "NOT_SEEN",
    "PROMISES",
    "ContractBroken",
    "Finding",
    "assert_batch",
    "check_agreement",
    "check_batch",
    "promise_name",
]
