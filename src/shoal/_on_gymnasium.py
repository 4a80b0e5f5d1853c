"""Tell Gymnasium our names without importing it.

`gymnasium.make("shoal/CartPole-v1")` should work after `import shoal`, and `import shoal` should cost nothing.
Gymnasium has no plug-in discovery, so the names are registered at once if it is already loaded, and otherwise in the
moment that somebody loads it.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType


class _Watcher(importlib.abc.MetaPathFinder):
    """Waits for the first import of gymnasium, steps aside, and registers when it is done."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != "gymnasium":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec("gymnasium")
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_register(module: ModuleType) -> None:
                execute(module)
                register()

            spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec


def register() -> None:
    """Put our names into Gymnasium's registry."""
    from shoal.registry import register_in_gymnasium

    register_in_gymnasium()


def register_when_loaded() -> None:
    """Register now if Gymnasium is there, otherwise as soon as it is."""
    if "gymnasium" in sys.modules:
        register()
    else:
        sys.meta_path.insert(0, _Watcher())
