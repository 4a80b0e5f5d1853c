"""Which seeds an experiment has: a number of them, or a list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from shoal.errors import ConfigError
from shoal.seeding import check_run_seed

Seeds = int | str | Sequence[int]
"""8 is 0 to 7; "3,5,9" and [3, 5, 9] are those three."""
MOST = 10_000


def read_seeds(seeds: Seeds) -> tuple[int, ...]:
    """The seeds that are meant, in the order given."""
    if isinstance(seeds, str):
        words = [word.strip() for word in seeds.split(",") if word.strip()]
        if not all(word.isdigit() for word in words):
            raise ConfigError(f"seeds={seeds!r} is not valid. Pass a number of seeds, e.g. 8, or a list, e.g. 3,5,9.")
        numbers = [int(word) for word in words]
        seeds = numbers if "," in seeds or not numbers else numbers[0]
    if isinstance(seeds, int):
        if not 1 <= seeds <= MOST:
            raise ConfigError(f"The number of seeds must be from 1 to {MOST:,}, not {seeds}.")
        return tuple(range(seeds))
    if not seeds:
        raise ConfigError("The list of seeds is empty. Pass a number of seeds, e.g. 8, or a list, e.g. 3,5,9.")
    chosen = tuple(check_run_seed(int(seed)) for seed in seeds)
    twice = [str(seed) for seed, count in Counter(chosen).items() if count > 1]
    if twice:
        raise ConfigError(
            f"Seed {', '.join(twice)} is named more than once. The same seed gives the same run, so name each one once."
        )
    return chosen
