"""How the engine's scalar functions are compiled, without memory management, and the memory that they are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, get_type_hints

import numpy as np

from shoal.jit import LEAN, inner

jit = inner(**LEAN)
inline = inner(forceinline=True, **LEAN)
"""For small functions in inner loops: a call would pass every array of every table on the stack."""

Array = np.ndarray
T = TypeVar("T")


def zeros(kind: Callable[..., T], **sizes: int) -> T:
    """A named tuple of zeroed arrays. Its fields say of which type and shape: `Annotated[Array, "int32 B A 3"]`."""
    fields = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        dtype, *shape = hint.__metadata__[0].split()
        fields[name] = np.zeros([sizes[n] if n in sizes else int(n) for n in shape], dtype)
    return kind(**fields)


def slots_for(count: int) -> int:
    """Places of a hash table that `count` entries leave half empty: a power of two."""
    return max(16, 1 << (2 * count - 1).bit_length())
