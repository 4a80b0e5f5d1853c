"""The batch under test: makes batches of any size and mode, and keeps them, because making one can cost a process."""

from __future__ import annotations

import contextlib
import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, cast

from gymnasium.vector import AutoresetMode, VectorEnv

from shoal.testing.findings import NotOffered, describe
from shoal.testing.player import Case, Player
from shoal.vector.batch import Batch

MakeBatch = Callable[..., VectorEnv]
KEPT_ALIVE = 16


class Subject:
    """Hands out batches by size, autoreset mode and options; the same request gets the same object again."""

    def __init__(self, make_batch: MakeBatch) -> None:
        self._make = make_batch
        self._kept: OrderedDict[tuple, VectorEnv] = OrderedDict()
        self._modes: dict[AutoresetMode, str] = {}
        self.default_mode = self._find_default_mode()
        self._unused_left = 3
        self.saw_an_end = False

    def batch(self, num_envs: int, mode: AutoresetMode | None = None, twin: int = 0, **options: Any) -> VectorEnv:
        """A batch to reset and step. `twin` tells apart batches that must exist side by side."""
        mode = mode or self.default_mode
        key = (num_envs, mode, twin, *sorted(options.items()))
        if key not in self._kept:
            while len(self._kept) >= KEPT_ALIVE:
                _close(self._kept.popitem(last=False)[1])
            self._kept[key] = self.fresh(num_envs, mode, **options)
        self._kept.move_to_end(key)
        return self._kept[key]

    def player(
        self, case: Case, mode: AutoresetMode | None = None, twin: int = 0, num_envs: int = 0, **options: Any
    ) -> Player:
        """Somebody to play a batch of the case's size, already reset with the case's seed."""
        mode = mode or self.default_mode
        return Player(self.batch(num_envs or case.num_envs, mode, twin, **options), case, mode).reset()

    def fresh(self, num_envs: int, mode: AutoresetMode | None = None, **options: Any) -> VectorEnv:
        """A batch that nobody has used; the caller closes it."""
        mode = mode or self.default_mode
        if mode is not self.default_mode:
            options["autoreset_mode"] = mode
        for name in options:
            if not self._takes(name):
                raise NotOffered(f"make_batch takes no {name!r}, so there is only what it makes by default.")
        return self._make(num_envs, **options)

    @contextlib.contextmanager
    def unused(self, num_envs: int) -> Iterator[VectorEnv | None]:
        """A fresh batch, three times; then None, because making one may cost processes."""
        if self._unused_left == 0:
            yield None
            return
        self._unused_left -= 1
        with _closing(self.fresh(num_envs)) as batch:
            yield batch

    def offers(self, mode: AutoresetMode) -> bool:
        """Whether batches of this mode can be had."""
        if mode not in self._modes:
            self._modes[mode] = self._why_not(mode)
        return not self._modes[mode]

    def demand(self, mode: AutoresetMode) -> AutoresetMode:
        """`mode` itself, or `NotOffered`."""
        if not self.offers(mode):
            raise NotOffered(self._modes[mode])
        return mode

    def reference_mode(self, mode: AutoresetMode) -> AutoresetMode | None:
        """Another mode to compare `mode` with."""
        others = (AutoresetMode.DISABLED, AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP)
        return next((other for other in others if other is not mode and self.offers(other)), None)

    def forget(self) -> None:
        """Close every batch that is kept: after a failure none of them can be trusted."""
        self._unused_left = 3
        while self._kept:
            _close(self._kept.popitem()[1])

    def _takes(self, option: str) -> bool:
        parameters = inspect.signature(self._make).parameters
        return option in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())

    def _find_default_mode(self) -> AutoresetMode:
        """The mode that the batch announces; NEXT_STEP if it announces none, which is Gymnasium's own default."""
        with _closing(self._make(1)) as batch:
            mode = (batch.metadata or {}).get("autoreset_mode")
        return mode if isinstance(mode, AutoresetMode) else AutoresetMode.NEXT_STEP

    def _why_not(self, mode: AutoresetMode) -> str:
        """An empty string if `mode` is offered, otherwise a sentence that says why not."""
        if mode is self.default_mode:
            return ""
        try:
            with _closing(self.fresh(1, mode)) as batch:
                got = (batch.metadata or {}).get("autoreset_mode")
        except NotOffered as refusal:
            return str(refusal)
        except Exception as error:
            return f"A batch with autoreset_mode={mode.name} cannot be made: {describe(error)}."
        return "" if got is mode else f"Asked for {mode.name}, the batch says it is {got}."


def _close(batch: VectorEnv) -> None:
    with contextlib.suppress(Exception):
        batch.close()


@contextlib.contextmanager
def _closing(batch: VectorEnv) -> Iterator[VectorEnv]:
    try:
        yield batch
    finally:
        _close(batch)


def demand_attributes(batch: VectorEnv, *names: str) -> Batch:
    """The batch itself, or `NotOffered` unless it has all of these."""
    for name in names:
        if not hasattr(batch, name):
            raise NotOffered(f"{type(batch).__name__} has no {name}().")
    return cast(Batch, batch)  # as far as it was asked for
