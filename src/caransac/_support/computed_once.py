"""Properties that are computed when they are first read, without a lock."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar, cast

Value = TypeVar("Value")


def computed_once(compute: Callable[..., Value]) -> Callable[..., Value]:
    """Keep what a property computes first. It stands below ``@property``.

    Before Python 3.12, `functools.cached_property` holds one lock for all instances of a class. Threads wait for each
    other then, and a process that was forked meanwhile waits forever. Here, two threads may compute a value twice;
    both get the value that was kept first.
    """
    name = f"_{compute.__name__}"

    @wraps(compute)
    def read(self: object) -> Value:
        kept = self.__dict__
        return cast(Value, kept[name] if name in kept else kept.setdefault(name, compute(self)))

    return read
