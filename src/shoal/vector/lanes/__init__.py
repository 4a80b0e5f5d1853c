"""Lanes made of ordinary `gymnasium.Env` objects: what `serial` and `workers` share.

`making` builds an environment from an id, class or factory; `values` checks what it returns; `buffers` are the arrays
one group of lanes reads and fills; `group` steps them; `infos` turns dicts of lanes into dense arrays; `snapshot`
saves a lane as bytes; `base` is the batch over all of it, whatever runs the groups.
"""
