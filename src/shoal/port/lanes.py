"""`PortedKernel`: a kernel whose random numbers are those of NumPy, seeded as Gymnasium seeds an environment."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from shoal.port import mt, pcg
from shoal.vector.kernel import Kernel


class PortedKernel(Kernel):
    """A kernel that was made from a `gymnasium.Env`: the same seed gives the same episode."""

    def seeded_fields(self, seeds: list[int]) -> Mapping[str, np.ndarray]:
        """The generator of every lane as `gymnasium.Env.reset(seed=...)` makes it, or as `RandomState(seed)`."""
        names = self.state.names or ()
        words: list[dict[str, object]] = [{} for _ in seeds]
        for word, seed in zip(words, seeds, strict=True):
            if "pcg_hi" in names:
                word |= pcg.words_of(np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed))))
            if "mt_key" in names:
                word |= mt.words_of(np.random.RandomState(seed % 2**32))
        fields = {**pcg.FIELDS, **mt.FIELDS}
        return {key: np.array([word[key] for word in words], fields[key].dtype) for key in words[0]}
