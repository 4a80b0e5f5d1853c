"""What learns by default: small tasks of many kinds, trained with nobody's settings but the libraries' own defaults.

`tasks` has the kernels, `suite` the command, `ours`, `sb3` and `cleanrl` one contender each, `verdict` the statistics.
"""
