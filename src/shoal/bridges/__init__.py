"""Shoal's batches for other libraries' trainers, one module each: `sb3`, `torchrl`, `pettingzoo`, `rllib`.

Each is thin: it translates the contract of `shoal.vector.batch` and adds nothing to what the lanes do. Nothing of the
other library is imported until its module is.
"""
