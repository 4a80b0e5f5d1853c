"""NumPy's random numbers as kernel code, against NumPy itself."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.port import pcg, pcg_more
from shoal.port.draws import DISTRIBUTIONS
from shoal.vector.kernel.build import Build
from shoal.vector.kernel.source import SourceSet

DRAWS = {
    "random": (lambda f, s: f["random"](s), lambda g: g.random()),
    "uniform": (lambda f, s: f["uniform"](s, -2.5, 7.0), lambda g: g.uniform(-2.5, 7.0)),
    "below 7": (lambda f, s: f["below"](s, 7), lambda g: g.integers(7)),
    "below 2**31 + 5": (lambda f, s: f["below"](s, 2**31 + 5), lambda g: g.integers(2**31 + 5)),
    "below 2**32": (lambda f, s: f["below"](s, 2**32), lambda g: g.integers(2**32)),
    "standard_normal": (lambda f, s: f["standard_normal"](s), lambda g: g.standard_normal()),
    "normal": (lambda f, s: f["normal"](s, 1.0, 3.0), lambda g: g.normal(1.0, 3.0)),
    "exponential": (lambda f, s: f["standard_exponential"](s), lambda g: g.standard_exponential()),
    "poisson 3.5": (lambda f, s: f["poisson"](s, 3.5), lambda g: g.poisson(3.5)),
    "poisson 40": (lambda f, s: f["poisson"](s, 40.0), lambda g: g.poisson(40.0)),
    "binomial 0.3": (lambda f, s: f["binomial"](s, 20, 0.3), lambda g: g.binomial(20, 0.3)),
    "binomial 0.9": (lambda f, s: f["binomial"](s, 25, 0.9), lambda g: g.binomial(25, 0.9)),
    "binomial of many": (lambda f, s: f["binomial"](s, 990, 0.04), lambda g: g.binomial(990, 0.04)),
    "binomial of very many": (lambda f, s: f["binomial"](s, 100_000, 0.7), lambda g: g.binomial(100_000, 0.7)),
    **{
        name: (lambda f, s, n=name, v=values: f[n](s, *v), lambda g, n=name, v=values: getattr(g, n)(*v))
        for name, values in {
            "triangular": (0.0, 1.0, 3.0), "rayleigh": (2.0,), "weibull": (1.5,), "pareto": (3.0,),
            "laplace": (1.0, 2.0), "gumbel": (1.0, 2.0), "logistic": (1.0, 2.0), "geometric": (0.4,),
            "standard_gamma": (0.4,), "gamma": (2.5, 2.0), "chisquare": (3.0,), "beta": (0.5, 0.7),
            "negative_binomial": (3.0, 0.4),
        }.items()
    },
    "rare geometric": (lambda f, s: f["geometric"](s, 0.1), lambda g: g.geometric(0.1)),
    "beta above one": (lambda f, s: f["beta"](s, 2.0, 0.5), lambda g: g.beta(2.0, 0.5)),
}  # fmt: skip


def functions() -> dict:
    """The kernel functions as uncompiled kernels run them; compiled ones agree with these bit for bit."""
    rewritten = SourceSet(Build(compiled=False), lambda function: function)
    names = (
        "random",
        "uniform",
        "below",
        "up_to",
        "standard_normal",
        "normal",
        "standard_exponential",
        "poisson",
        "binomial",
    )
    more = {name: rewritten.add(getattr(pcg_more, name)) for name in DISTRIBUTIONS}
    return {name: rewritten.add(getattr(pcg, name)) for name in names} | more


FUNCTIONS = functions()


def lane(seed: int) -> tuple[SimpleNamespace, np.random.Generator]:
    generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
    return SimpleNamespace(**pcg.words_of(generator)), generator


def word(s: SimpleNamespace) -> None:
    """Fields of a record are stored in their own types."""
    for name, field in pcg.FIELDS.items():
        value = getattr(s, name)
        bits = 8 * field.dtype.itemsize
        setattr(s, name, field.dtype.type(int(value) & (2**bits - 1) if field.dtype.kind == "u" else value))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**63), names=st.lists(st.sampled_from(sorted(DRAWS)), min_size=1, max_size=12))
def test_any_sequence_of_draws_is_numpys(seed, names):
    s, generator = lane(seed)
    for name in names:
        ours, theirs = DRAWS[name]
        value = ours(FUNCTIONS, s)
        word(s)
        assert value == theirs(generator), name
    assert pcg.words_of(generator) == {name: getattr(s, name) for name in pcg.FIELDS}


@pytest.mark.parametrize("name", ["standard_normal", "exponential"])
def test_the_rare_ways_through_the_ziggurats_are_numpys_too(name):
    s, generator = lane(1)
    ours, theirs = DRAWS[name]
    for _ in range(3000):
        value = ours(FUNCTIONS, s)
        word(s)
        assert value == theirs(generator)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**63), n=st.integers(2, 60))
def test_a_shuffle_is_numpys(seed, n):
    s, generator = lane(seed)
    ours, theirs = np.arange(n), np.arange(n)
    generator.shuffle(theirs)
    for i in range(n - 1, 0, -1):
        j = FUNCTIONS["up_to"](s, i)
        word(s)
        ours[i], ours[j] = ours[j], ours[i]
    assert ours.tolist() == theirs.tolist()


def test_other_generators_are_refused():
    with pytest.raises(ValueError, match="MT19937, not NumPy's PCG64"):
        pcg.words_of(np.random.Generator(np.random.MT19937(0)))
