"""Batches of environments: the contract (`batch`) and the ways to make one. Imports neither torch nor a world."""
