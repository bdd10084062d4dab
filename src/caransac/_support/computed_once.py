"""Properties that are computed when they are first read, without a lock."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar, cast

Value = TypeVar("Value")


def computed_once(compute: Callable[..., Value]) -> Callable[..., Value]:
    """Keep what a property computes first. It stands below ``@property``.

    `functools.cached_property` holds a lock before Python 3.12, for which a forked process may wait forever. Here,
    threads may compute a value twice, and all get the one that was kept first.
    """
    name = f"_{compute.__name__}"

    @wraps(compute)
    def read(self: object) -> Value:
        kept = self.__dict__
        return cast(Value, kept[name] if name in kept else kept.setdefault(name, compute(self)))

    return read
