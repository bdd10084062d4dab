"""Many calls at once: threads, a bounded look-ahead, the order kept."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")

LOOK_AHEAD = 4  # items a worker that are read before their turn, so that one slow item does not idle the others


def map_ordered(
    function: Callable[[Item], Answer], items: Iterable[Item], workers: int | None = None
) -> Iterator[Answer]:
    """Like ``map(function, items)``, in threads: the same answers in the same order.

    At most `LOOK_AHEAD` items a worker are taken before they are asked for, so items may be produced lazily and answers
    consumed one by one. The first exception, in the items' order, ends it and cancels what has not begun.

    Args:
        function: called with each item; runs at the same time in several threads.
        items: any iterable, read in the caller's thread.
        workers: threads; None for one a core this process may use. One runs everything in the caller's thread.
    """
    workers = count_cores() if workers is None else workers
    if not isinstance(workers, int) or workers < 1:
        raise ValueError(f"workers must be a whole number from 1 on, not {workers!r}")
    return map(function, items) if workers == 1 else _map_in_threads(function, items, workers)


def count_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _map_in_threads(function: Callable[[Item], Answer], items: Iterable[Item], workers: int) -> Iterator[Answer]:
    items = iter(items)
    with ThreadPoolExecutor(workers, thread_name_prefix="caransac") as pool:
        running: deque[Future[Answer]] = deque()
        try:
            while True:
                for item in islice(items, LOOK_AHEAD * workers - len(running)):
                    running.append(pool.submit(function, item))
                if not running:
                    return
                yield running.popleft().result()
        finally:
            for future in running:
                future.cancel()
