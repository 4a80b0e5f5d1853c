"""The suites by name. A new suite is one module with a `Verb`, and one line here; worlds bring suites of their own."""

from __future__ import annotations

from shoal.world import Command

SUITES = {
    "atari": Command("PPO on ALE's games, learning included, against the peers", "shoal.bench.atari:SUITE"),
    "defaults": Command("what learns with everybody's defaults, over 26 tasks", "shoal.bench.defaults.suite:SUITE"),
    "fast": Command("the agents' fast paths against their plain definitions", "shoal.bench.fast:SUITE"),
    "memory": Command("GRU and LSTM over whole sequences against torch's layers", "shoal.bench.memory:SUITE"),
    "minatar": Command("MinAtar's games, stepped, against gymnax's and the package's", "shoal.bench.minatar:SUITE"),
    "offpolicy": Command("SAC and DDDQN on hockey, learning included, against SB3's", "shoal.bench.offpolicy:SUITE"),
    "policy": Command("one observation to one action, in every form of a policy", "shoal.bench.policy:SUITE"),
    "port": Command("Gymnasium's classes compiled as they are, against SyncVectorEnv", "shoal.bench.port:SUITE"),
    "portable": Command("worker batches on what every system has, against Linux's", "shoal.bench.portable:SUITE"),
    "rllib": Command("RLlib on Shoal's lanes by mode, and the other bridges", "shoal.bench.rllib:SUITE"),
    "rules": Command("SAC on hockey by lanes and by which steps earn updates", "shoal.bench.rules:SUITE"),
    "runners": Command("what training on Ray costs, and what that predicts", "shoal.bench.runners:SUITE"),
    "seats": Command("Connect Four and spread against the peers installed here", "shoal.bench.seats:SUITE"),
    "seeds": Command("several seeds as one experiment, against a shell loop", "shoal.bench.seeds:SUITE"),
    "step": Command("environment steps per second against the peers installed here", "shoal.bench.step.suite:SUITE"),
    "strangers": Command("MuJoCo and Box2D, learning included, against SB3", "shoal.bench.strangers.suite:SUITE"),
    "tune": Command("`shoal tune` against Optuna by hand at equal CPU time", "shoal.bench.tune:SUITE"),
    "train": Command("PPO on CartPole, learning included, against the peers installed here", "shoal.bench.train:SUITE"),
}
