"""The tensor engine: static shapes, no data-dependent control flow, any device; the same results as the compiled one.

Every state has K candidate slots: one per rule of the largest head, and one per fact of the largest bucket (or
`fact_cap`, which may lose successors and counts them). B is the number of states, W = A - 1 + L the most goals of a
candidate.
"""
