"""One random generator per lane: xoroshiro128++ (Blackman & Vigna 2019) on two 64-bit words of the lane's own.

`Rng` is written twice over the same words: as a Python class for uncompiled kernels and as a Numba type with the same
methods. Both give the same numbers, bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numba
import numpy as np
from numba.core import cgutils, types, typing
from numba.core.imputils import impl_ret_borrowed
from numba.extending import (
    lower_builtin,
    make_attribute_wrapper,
    models,
    overload_method,
    register_model,
    type_callable,
)

from shoal.seeding import mix

if TYPE_CHECKING:
    from llvmlite import ir
    from numba.core.base import BaseContext
    from numba.core.datamodel import DataModelManager

_MASK = 0xFFFFFFFFFFFFFFFF
_TO_UNIT = 2.0**-53
_U = np.uint64


def seed_words(keys: np.ndarray) -> np.ndarray:
    """Generator words [B, 2] from lane keys [B]. Never both zero, the one state xoroshiro cannot leave."""
    words = np.stack([mix(keys), mix(keys ^ _U(0xD1B54A32D192ED03))], axis=1)
    words[:, 1] |= _U(1)
    return words


class Rng:
    """Random numbers of one lane, inside `reset` and `step`."""

    def __init__(self, words: np.ndarray) -> None:
        self.words = words

    def bits(self) -> int:
        """The next 64 random bits."""
        a, b = int(self.words[0]), int(self.words[1])
        total = (a + b) & _MASK
        result = (_rotate(total, 17) + a) & _MASK
        b ^= a
        self.words[0] = _rotate(a, 49) ^ b ^ ((b << 21) & _MASK)
        self.words[1] = _rotate(b, 28)
        return result

    def uniform(self, low: float = 0.0, high: float = 1.0) -> float:
        """Uniform on [low, high)."""
        return low + (high - low) * ((self.bits() >> 11) * _TO_UNIT)

    def integers(self, low: int, high: int | None = None) -> int:
        """Uniform on low..high-1, or on 0..low-1; of n < 2**32 numbers, the bias is below n / 2**32."""
        if high is None:
            return ((self.bits() >> 32) * low) >> 32
        return low + (((self.bits() >> 32) * (high - low)) >> 32)

    def normal(self) -> float:
        """Standard normal, by Box and Muller from two uniforms."""
        radius = math.sqrt(-2.0 * math.log(1.0 - self.uniform()))
        return radius * math.cos(2.0 * math.pi * self.uniform())

    def choice(self, weights: Sequence[float] | np.ndarray) -> int:
        """Index i with probability weights[i] / sum(weights); weights are not negative."""
        total = 0.0
        for i in range(len(weights)):
            total += float(weights[i])
        left = total * self.uniform()
        last = 0
        for i in range(len(weights)):
            weight = float(weights[i])
            if weight > 0.0:
                if left < weight:
                    return i
                last = i
            left -= weight
        return last  # rounding used up the last weight


def _rotate(x: int, k: int) -> int:
    return ((x << k) | (x >> (64 - k))) & _MASK


# ---------------------------------------------------------------------- the same as a Numba type


class RngType(types.Type):
    """Numba's type of an `Rng` over words of array type `words`."""

    def __init__(self, words: types.Array) -> None:
        self.words = words
        super().__init__(name=f"Rng({words})")


@register_model(RngType)
class _RngModel(models.StructModel):
    def __init__(self, dmm: DataModelManager, fe_type: RngType) -> None:
        super().__init__(dmm, fe_type, [("words", fe_type.words)])


make_attribute_wrapper(RngType, "words", "words")


@type_callable(Rng)
def _type_rng(context: typing.Context) -> Callable[[types.Type], RngType | None]:
    def typer(words: types.Type) -> RngType | None:
        return RngType(words) if isinstance(words, types.Array) else None

    return typer


@lower_builtin(Rng, types.Array)
def _make_rng(context: BaseContext, builder: ir.IRBuilder, sig: typing.Signature, args: Sequence[ir.Value]) -> ir.Value:
    rng = cgutils.create_struct_proxy(sig.return_type)(context, builder)
    rng.words = args[0]
    # the words stay the caller's: without a reference of its own, code that counts references would free them twice
    return impl_ret_borrowed(context, builder, sig.return_type, rng._getvalue())


@numba.njit(error_model="numpy")
def _next_bits(words):
    a, b = words[0], words[1]
    total = a + b
    result = ((total << _U(17)) | (total >> _U(47))) + a
    b ^= a
    words[0] = ((a << _U(49)) | (a >> _U(15))) ^ b ^ (b << _U(21))
    words[1] = (b << _U(28)) | (b >> _U(36))
    return result


@numba.njit(error_model="numpy")
def _uniform(words, low, high):
    return low + (high - low) * (np.float64(_next_bits(words) >> _U(11)) * _TO_UNIT)


@overload_method(RngType, "uniform")
def _overload_uniform(rng, low=0.0, high=1.0):
    def impl(rng, low=0.0, high=1.0):
        return _uniform(rng.words, low, high)

    return impl


@overload_method(RngType, "integers")
def _overload_integers(rng, low, high=None):
    def below(rng, low, high=None):
        return np.int64(((_next_bits(rng.words) >> _U(32)) * _U(low)) >> _U(32))

    def between(rng, low, high=None):
        return low + np.int64(((_next_bits(rng.words) >> _U(32)) * _U(high - low)) >> _U(32))

    return below if high is None or isinstance(high, types.Omitted | types.NoneType) else between


@overload_method(RngType, "normal")
def _overload_normal(self):
    return Rng.normal  # nothing in it but floats: compiled as it stands


@overload_method(RngType, "choice")
def _overload_choice(self, weights: Sequence[float] | np.ndarray):  # Numba compares the signatures
    return Rng.choice
