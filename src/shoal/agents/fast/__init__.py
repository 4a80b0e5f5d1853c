"""The fast paths of PPO, SAC and DDDQN: what `_learn` of each agent defines, with gradients written out by hand.

Each is a loss between a forward and a backward pass, on memory that is allocated once. There are two kinds of passes:
PPO's small networks run tile by tile in cache, on matrix products of our own (`tile`, and `heads` for what lies between
the passes); SAC's and DDDQN's wider ones run layer by layer on torch's (`passes`). All three take the same step of Adam
(`adam`). An agent has its fast path as `agent.fast`, where its settings, device and network allow one.
"""
