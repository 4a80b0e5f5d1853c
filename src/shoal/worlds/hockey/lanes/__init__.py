"""Lanes of the rink: kernels, the batches that step them, and who sits in the seats."""
