"""The standard networks compiled: the same arithmetic as `shoal.agents.ppo` in plain torch, tile by tile in cache.

`simd` has the vector instructions, `network` the forward and backward pass over a tile of rows, `losses` what lies
between them, `learner` the whole update. Nothing outside this folder knows how it is done.
"""
