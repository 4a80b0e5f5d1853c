"""A network of the user's own: named by its import path, so that every verb finds it again, and tried before it trains.

`docs/networks.md` shows what such a network looks like.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from shoal.errors import ConfigError
from shoal.registry import UNNAMED, is_at, load, name_of
from shoal.trees import map_tree
from shoal.vector.spaces import empty_batch

if TYPE_CHECKING:
    from torch import nn

_PROTOCOL = "docs/networks.md shows one."


def name_network(network: object) -> tuple[str | None, nn.Module | None]:
    """(what config.json says, the network itself if it is one that is already made) of what a user hands over.

    That may be an import path "package.module:Net", such a class or function, an `nn.Module`, or None.
    """
    if network is None or isinstance(network, str):
        return network, None
    from torch import nn

    if isinstance(network, nn.Module):
        return UNNAMED + name_of(network), network
    if not callable(network):
        raise ConfigError(
            f"network={network!r} is not a network. Pass an nn.Module, or the import path of one's class."
        )
    name = name_of(network)
    if not is_at(name, network):
        raise ConfigError(
            f"network={name} has no name to import. Put it into a module, or pass what it makes: an nn.Module."
        )
    return name, None


def load_network(name: str, spaces: tuple[gym.Space, gym.Space], seed: int) -> nn.Module:
    """The network called "package.module:Net" for (observation space, action space), its weights drawn from `seed`."""
    import torch

    if name.startswith(UNNAMED):
        raise ConfigError(
            f"This run was trained with a {name.removeprefix(UNNAMED)} that was made in Python and has no name to "
            "import. Pass it again, shoal.train(resume=..., network=...), or name its class in new runs: "
            "--algo.network package.module:Net."
        )
    build = load(name)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = _built(build, name, spaces) if callable(build) and not isinstance(build, torch.nn.Module) else build
    if not isinstance(network, torch.nn.Module):
        raise ConfigError(f"network={name} made a {type(network).__name__}, not an nn.Module. {_PROTOCOL}")
    return network


def _built(build: Callable[..., object], name: str, spaces: tuple[gym.Space, gym.Space]) -> object:
    try:
        return build(*spaces)
    except Exception as error:  # somebody else's code, which may fail in any way
        raise ConfigError(
            f"network={name} could not be made from (observation_space, action_space): {type(error).__name__}: "
            f"{error}. {_PROTOCOL}"
        ) from error


def check_network(network: nn.Module, spaces: tuple[gym.Space, gym.Space], num_params: int) -> None:
    """`ConfigError` unless PPO can train `network`: it is asked about two observations of zeros."""
    import torch

    name, size = type(network).__name__, int(getattr(network, "state_size", 0))
    obs = map_tree(torch.from_numpy, empty_batch(spaces[0], 2))
    device = next((p.device for p in network.parameters()), torch.device("cpu"))
    obs, state = map_tree(partial(torch.Tensor.to, device=device), obs), torch.zeros(2, size, device=device)
    training = network.training
    try:
        with torch.no_grad():
            answer: Any = network.eval()(obs, state if size else None)
    except Exception as error:  # somebody else's code, which may fail in any way
        raise ConfigError(
            f"The network {name} failed when it was called as network(obs, state): {type(error).__name__}: {error}. "
            f"{_PROTOCOL}"
        ) from error
    finally:
        network.train(training)
    if not isinstance(answer, tuple) or len(answer) != 3:
        raise ConfigError(
            f"The network {name} must return (params, value, state), not {_described(answer)}. {_PROTOCOL}"
        )
    wanted = {"params": (2, num_params), "value": (2,), **({"state": (2, size)} if size else {})}
    for part, given in zip(("params", "value", "state"), answer, strict=True):
        if part in wanted and tuple(getattr(given, "shape", ())) != wanted[part]:
            raise ConfigError(
                f"The network {name} returned {part} of shape {list(getattr(given, 'shape', ()))} for 2 observations; "
                f"for {spaces[1]} it must be {list(wanted[part])}. {_PROTOCOL}"
            )
    if size and not callable(getattr(network, "unroll", None)):
        raise ConfigError(f"The network {name} has state_size={size}, but no `unroll` to learn over time. {_PROTOCOL}")


def _described(answer: object) -> str:
    shape = getattr(answer, "shape", None)
    return f"a {type(answer).__name__}" + ("" if shape is None else f" of shape {list(shape)}")
