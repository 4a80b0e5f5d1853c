"""Named arguments of a function that is known here: none may be passed over in silence."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from shoal.port.refusal import Cannot
from shoal.port.values import Value


class Given(dict[str, Value]):
    """Named arguments, of which it is noted which were looked at."""

    def __init__(self, named: dict[str, Value]) -> None:
        super().__init__(named)
        self.read: set[str] = set()

    def __getitem__(self, key: str) -> Value:
        self.read.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.read.add(key)
        return super().get(key, default)

    def items(self) -> Any:
        self.read |= self.keys()
        return super().items()

    def all_read(self, function: str, harmless: Collection[str] = ()) -> None:
        """Refuse what nobody has looked at."""
        unread = self.keys() - self.read - set(harmless)
        if unread:
            raise Cannot(f"gives {', '.join(sorted(unread))}= to {function}, which is not followed", "Do without it.")
