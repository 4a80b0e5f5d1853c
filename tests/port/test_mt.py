"""The random numbers of `RandomState` as kernel code, against NumPy itself."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.port import mt
from shoal.vector.kernel.build import Build
from shoal.vector.kernel.source import SourceSet

DRAWS = {
    "random": (lambda f, s: f["random"](s), lambda g: g.random_sample()),
    "uniform": (lambda f, s: f["uniform"](s, -2.5, 7.0), lambda g: g.uniform(-2.5, 7.0)),
    "below": (lambda f, s: f["below"](s, 7), lambda g: g.randint(7)),
    "standard_normal": (lambda f, s: f["standard_normal"](s), lambda g: g.standard_normal()),
    "normal": (lambda f, s: f["normal"](s, 1.0, 3.0), lambda g: g.normal(1.0, 3.0)),
}
REWRITTEN = SourceSet(Build(compiled=False), lambda function: function)
FUNCTIONS = {name: REWRITTEN.add(getattr(mt, name)) for name in DRAWS}


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), names=st.lists(st.sampled_from(sorted(DRAWS)), min_size=1, max_size=20))
def test_any_sequence_of_draws_is_numpys(seed, names):
    generator = np.random.RandomState(seed)
    s = SimpleNamespace(**mt.words_of(generator))
    s.mt_key = s.mt_key.copy()
    for name in names:
        ours, theirs = DRAWS[name]
        assert ours(FUNCTIONS, s) == theirs(generator), name
    after = mt.words_of(generator)
    assert (s.mt_key == after["mt_key"]).all()
    assert (int(s.mt_at), bool(s.mt_kept), float(s.mt_normal)) == tuple(
        after[key].item() for key in ("mt_at", "mt_kept", "mt_normal")
    )
