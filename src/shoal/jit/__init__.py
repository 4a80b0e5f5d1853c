"""Compiling with Numba: one cache for everything that is compiled, random numbers and maths for compiled code, SIMD.

    cache     modules of compiled code whose name is a digest of what they mean
    folder    where they are kept, and how that is kept from growing
    digest    that digest: every function, constant and extension that compiled code reaches or freezes
    entries   functions that Python calls, and those that only they call
    rng       one random generator per lane
    splitmix  random numbers of compiled code that passes its state along
    maths     sine, cosine and small powers as plain arithmetic
    vector_maths, vector_code  sine, cosine and remainder of several lanes at once, with the C library's bits
    narrow_stores  bytes that some lanes set, without an instruction that LLVM gets wrong
    simd      blocks of matrix products in vector registers, fast exp, log and tanh

Functions that only compiled code calls are decorated with `inner` (or any `numba.njit` without `cache=True`), those
that Python calls with `entry`. Importing compiles nothing and writes nothing: an entry is compiled, or loaded from
disk, when it is first called with arguments of new types.

    from shoal.jit import entry, inner
    from shoal.agents.choosing import FORBIDDEN      # frozen into the code, and seen by the cache

    @inner(fastmath=FAST)
    def mask(outputs, allowed): ...

    @entry("ppo", fastmath=FAST)
    def act(flat, outputs, allowed):
        mask(outputs, allowed)

    act(flat, outputs, allowed)                           # "compiling ppo, once" if it takes over a second

`entry` costs less than 0.1 µs per call on top of Numba's own. Where that counts, or where several functions should be
compiled together and be announced as one, `entry_points` gives Numba's own functions by name. It takes `inner`
functions, either a list (compiled by the types of the first call) or with an example of the arguments of each (compiled
at once):

    @functools.cache
    def compiled() -> dict[str, Callable]:
        return entry_points("proofs", {fill: (tables, lanes), begin: (tables, source)})

    compiled()["fill"](tables, lanes)

NamedTuples may be passed as arguments. Options of compiled functions (`fastmath`, `error_model`, ...) are Numba's, and
are those of the function itself, not of its entry.
"""

from shoal.jit.entries import LEAN, Entry, entry, entry_points, inner

__all__ = ["LEAN", "Entry", "entry", "entry_points", "inner"]
