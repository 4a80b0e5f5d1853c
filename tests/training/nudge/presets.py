PRESETS = {"nudge": {"ppo": {"num_envs": 8, "algo": {"num_steps": 16, "minibatches": 2}}, "tiny": {"num_envs": 2}}}
