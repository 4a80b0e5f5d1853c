"""Lanes on worker processes, several each, with observations, actions and rewards in shared memory.

`memory` is the shared block, `process` what a worker runs, `link` the parent's end of one worker, `crew` all of them,
`batch` the batch; `flight` keeps track of the lanes between `send` and `recv`.
"""

from shoal.vector.workers.batch import WorkerBatch

__all__ = ["WorkerBatch"]
