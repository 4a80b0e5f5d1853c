"""Times in a result are those of its iteration."""

from ray.rllib.utils.metrics.metrics_logger import MetricsLogger

from shoal.bridges.rllib import ppo_config
from shoal.bridges.rllib.timing import time_each_iteration

SAMPLING = ("timers", "env_runner_sampling_timer")


def test_an_iteration_is_timed_by_itself():
    logger = MetricsLogger(root=True)
    time_each_iteration(metrics_logger=logger)
    for seconds in (5.0, 1.0, 2.0):
        logger.log_time(SAMPLING).push(seconds)  # as leaving the `with` block does
        assert logger.compile()["timers"]["env_runner_sampling_timer"] == seconds


def test_running_means_of_a_checkpoint_do_not_stay():
    logger = MetricsLogger(root=True)
    logger.log_time(SAMPLING).push(5.0)
    time_each_iteration(metrics_logger=logger)
    logger.log_time(SAMPLING).push(1.0)
    assert logger.compile()["timers"]["env_runner_sampling_timer"] == 1.0


def test_every_config_has_it_and_the_number_of_gpus():
    config = ppo_config("cartpole", num_learners=2, num_gpus_per_learner=0.5, num_env_runners=2)
    assert config.callbacks_on_algorithm_init is time_each_iteration
    assert (config.num_learners, config.num_gpus_per_learner, config.num_env_runners) == (2, 0.5, 2)
