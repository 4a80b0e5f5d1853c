"""RLlib (new API stack): Shoal's lanes under its PPO, in three modes. Start with `ppo_config`.

    from shoal.bridges.rllib import ppo_config
    algo = ppo_config("cartpole", num_envs=1024, train_batch_size=65536, minibatch_size=4096).build_algo()
    algo.train()

`vec` is RLlib's standard way; `packed_vec` makes RLlib see one environment; `columnar` samples into arrays with an env
runner of ours. All train the same network on the same targets, count environment steps, and can read each other's
checkpoints.
"""

from shoal.errors import missing_extra

try:
    import ray.rllib  # noqa: F401
except ImportError:
    raise missing_extra("ray[rllib]", "ray", "The bridge to RLlib") from None

from shoal.bridges.rllib.config import ppo_config

__all__ = ["ppo_config"]
