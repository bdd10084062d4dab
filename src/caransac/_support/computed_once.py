"""Properties that are computed on first access, without a lock."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar, cast

Value = TypeVar("Value")


def computed_once(compute: Callable[..., Value]) -> Callable[..., Value]:
    """Cache the first value of a property. Write this decorator below ``@property``.

    Before Python 3.12, `functools.cached_property` takes a lock, and a forked process may wait for it forever. Without
    a lock, two threads may both compute the value; both get the value that was stored first.
    """
    name = f"_{compute.__name__}"

    @wraps(compute)
    def read(self: object) -> Value:
        kept = self.__dict__
        return cast(Value, kept[name] if name in kept else kept.setdefault(name, compute(self)))

    return read
