"""What is searched for each agent if nothing is named: few settings, those that most often decide whether it learns."""

from __future__ import annotations

_OFF_POLICY = (
    "algo.lr=1e-4..3e-3:log",
    "algo.gamma=0.95,0.98,0.99,0.995",
    "algo.batch_size=64,128,256",
    "algo.updates_per_step=0.25,0.5,1.0",
    "algo.n_step=1,3",
)
DEFAULTS: dict[str, tuple[str, ...]] = {
    "ppo": (
        "algo.lr=1e-4..1e-2:log",
        "algo.num_steps=16,32,64,128,256",
        "algo.epochs=3,5,10",
        "algo.gamma=0.9,0.95,0.98,0.99,0.995",
        "algo.gae_lambda=0.9,0.95,0.98",
        "algo.entropy=0.0,0.001,0.01,0.03",
        "algo.normalise_obs=true,false",
        "algo.normalise_reward=true,false",
    ),
    "sac": (*_OFF_POLICY, "algo.tau=0.002..0.05:log"),
    "dddqn": (*_OFF_POLICY, "algo.target_every=100,300,1000", "algo.explore=0.1,0.2,0.4"),
}
