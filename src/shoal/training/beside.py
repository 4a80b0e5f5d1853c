"""What a world's package may hold beside its lanes, each in a module of its own that is imported when asked for.

| module | what it may define |
|---|---|
| `presets` | `PRESETS[world][name]`: settings that differ from the defaults, `name` being the agent's or any other |
| `training` | `build_network(batch, config)`, `build_hooks(batch, config, **options)` |
| `policies` | `find_policy(name, env)`, and `DEFAULT`, the name of the policy to watch if none is named |
| `command` | `translate(argv)` |
| `evaluation` | `evaluate(player, episodes, seed, **options)` |
| `tournament` | `find_entrant(name)`, `name_of(name)`, `play(entrants, games, seed)` |
| `curriculum_settings` | `settings_from(values, path)` |
| `keyboard` | `serve(opponent)`, which lets a person play |

`docs/worlds.md` says what each is given and returns. Keywords with a default become flags of the command line.
"""

from __future__ import annotations

import importlib.util
import inspect
from typing import TYPE_CHECKING, Any

from shoal.errors import ConfigError
from shoal.registry import find_world

if TYPE_CHECKING:
    from shoal.training.config import TrainConfig
    from shoal.training.hooks import Hooks
    from shoal.vector.batch import Batch


def world_part(world: str, module: str, name: str) -> Any:
    """What the world calls `name` in its `module`, or None. Only worlds of Shoal bring parts."""
    found = find_world(world)
    if found is None:
        return None
    path = f"{found.entry.partition(':')[0].rpartition('.')[0]}.{module}"
    if importlib.util.find_spec(path) is None:
        return None
    return getattr(importlib.import_module(path), name, None)


def world_hooks(batch: Batch, config: TrainConfig) -> Hooks:
    """What the world adds to training, or to acting, in the lanes of `batch`."""
    from shoal.training.hooks import Hooks

    build = world_part(config.world, "training", "build_hooks")
    if build is None:
        if config.extra:
            raise ConfigError(f"{config.world} adds nothing to training that could take {sorted(config.extra)}.")
        return Hooks()
    return Hooks(**build(batch, config, **config.extra))


def world_network(batch: Batch, config: TrainConfig) -> Any:
    """The world's own network, its first weights drawn from the seed of the run; None for the standard one."""
    build = world_part(config.world, "training", "build_network")
    if build is None:
        return None
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(config.seed)
        return build(batch, config)


def keyword_options(function: Any) -> dict[str, Any]:
    """The arguments of a function that have a default, with it; nothing for None."""
    if function is None:
        return {}
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not p.empty}
