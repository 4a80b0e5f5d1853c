"""RLlib's timers, so that a result says how long *this* iteration took: its own are running means that hardly move."""

from __future__ import annotations

from ray.rllib.utils.metrics import (
    ENV_RUNNER_SAMPLING_TIMER,
    LEARNER_UPDATE_TIMER,
    SYNCH_WORKER_WEIGHTS_TIMER,
    TIMERS,
    TRAINING_STEP_TIMER,
)
from ray.rllib.utils.metrics.metrics_logger import MetricsLogger

_TIMERS = (ENV_RUNNER_SAMPLING_TIMER, LEARNER_UPDATE_TIMER, SYNCH_WORKER_WEIGHTS_TIMER, TRAINING_STEP_TIMER)


def time_each_iteration(*, metrics_logger: MetricsLogger, **kwargs: object) -> None:
    """`on_algorithm_init`, and after restoring, which brings back what the checkpoint had: sum up each iteration."""
    for timer in _TIMERS:
        metrics_logger.delete(TIMERS, timer, key_error=False)  # type: ignore[arg-type]  # takes keys, as its text says
        metrics_logger.log_value((TIMERS, timer), 0.0, reduce="sum")
