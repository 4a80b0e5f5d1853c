"""The updates of SAC and DDDQN with gradients written by hand, on memory allocated once.

The same arithmetic as the plain definitions in `shoal.agents.sac` and `shoal.agents.dddqn`, without a graph: a third of
the time of an update of this size is otherwise spent around the matrix products.
"""
