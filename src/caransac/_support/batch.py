"""Many calls at once: threads or any executor, a bounded look-ahead, the order kept."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")

LOOK_AHEAD = 4  # items a thread that are read before their turn, so that one slow item does not idle the others
EXECUTOR_LOOK_AHEAD = 256  # items that are read before their turn where the number of workers is not known


def map_ordered(
    function: Callable[[Item], Answer], items: Iterable[Item], workers: int | Executor | None = None
) -> Iterator[Answer]:
    """Like ``map(function, items)``, several at a time: the same answers in the same order.

    A bounded number of items is taken before they are asked for, so items may be produced lazily and answers consumed
    one by one. The first exception, in the items' order, ends it and cancels what has not begun.

    Args:
        function: called with each item, in several threads at the same time.
        items: any iterable, read in the caller's thread.
        workers: threads; None for one a core this process may use; 1 runs everything in the caller's thread. Or an
            executor of processes or of a cluster, to which function, items and answers can be sent; it stays open.
    """
    if isinstance(workers, Executor):
        return _map_in(workers, function, items, EXECUTOR_LOOK_AHEAD)
    workers = count_cores() if workers is None else workers
    if not isinstance(workers, int) or workers < 1:
        raise ValueError(f"workers must be a whole number from 1 on, or an executor, not {workers!r}")
    return map(function, items) if workers == 1 else _map_in_threads(function, items, workers)


def count_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _map_in_threads(function: Callable[[Item], Answer], items: Iterable[Item], workers: int) -> Iterator[Answer]:
    with ThreadPoolExecutor(workers, thread_name_prefix="caransac") as pool:
        yield from _map_in(pool, function, items, LOOK_AHEAD * workers)


def _map_in(
    executor: Executor, function: Callable[[Item], Answer], items: Iterable[Item], look_ahead: int
) -> Iterator[Answer]:
    items = iter(items)
    running: deque[Future[Answer]] = deque()
    try:
        while True:
            for item in islice(items, look_ahead - len(running)):
                running.append(executor.submit(function, item))
            if not running:
                return
            yield running.popleft().result()
    finally:
        for future in running:
            future.cancel()
