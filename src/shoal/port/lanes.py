"""`PortedKernel`: a kernel whose random numbers are those of NumPy, seeded as Gymnasium seeds an environment."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from shoal.port.pcg import FIELDS, words_of
from shoal.vector.kernel import Kernel


class PortedKernel(Kernel):
    """A kernel that was made from a `gymnasium.Env`: the same seed gives the same episode."""

    def seeded_fields(self, seeds: list[int]) -> Mapping[str, np.ndarray]:
        """The generator of every lane as `gymnasium.Env.reset(seed=...)` makes it."""
        if "pcg_hi" not in (self.state.names or ()):
            return {}
        words = [words_of(np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))) for seed in seeds]
        return {name: np.array([word[name] for word in words], field.dtype) for name, field in FIELDS.items()}
