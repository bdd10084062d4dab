"""Run many calls in parallel, in threads or in any executor, with a bounded look-ahead."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import TypeVar

from caransac._support import interrupts
from caransac._support.arrays import shorten

Item = TypeVar("Item")
Value = TypeVar("Value")

MOST_WORKERS = 10_000  # maximum number of threads; no machine starts more
LOOK_AHEAD = 4  # items read ahead per thread, so that one slow item does not leave the other threads idle
POLL_S = 0.1  # seconds between two checks for a request to stop
EXECUTOR_LOOK_AHEAD = 256  # items read ahead if the number of workers is not known


def map_ordered(
    function: Callable[[Item], Value], items: Iterable[Item], workers: int | Executor | None = None
) -> Iterator[Value]:
    """Call a function with every item in parallel; yield the same values in the same order as ``map``.

    Only a bounded number of items is read ahead, so items may be produced lazily and values consumed one by one. The
    first exception, in the order of the items, ends the iteration and cancels the calls that have not started.

    Args:
        function: function to call with each item, in several threads at the same time.
        items: any iterable, read in the caller's thread.
        workers: number of threads. None means one per core that this process may use; 1 runs everything in the caller's
            thread. An executor of processes or of a cluster also works, if function, items and values can be sent to
            it. It stays open.
    """
    if isinstance(workers, Executor):
        return _map_in(workers, function, items, EXECUTOR_LOOK_AHEAD)
    workers = count_cores() if workers is None else workers
    if not isinstance(workers, int) or not 1 <= workers <= MOST_WORKERS:
        raise ValueError(
            f"workers must be a whole number from 1 to {MOST_WORKERS}, or an executor, not {shorten(workers)}"
        )
    return map(function, items) if workers == 1 else _map_in_threads(function, items, workers)


def submit_all(
    executor: Executor,
    function: Callable[[Item], Value],
    items: Iterable[Item],
    *,
    look_ahead: int,
    ordered: bool = False,
) -> Iterator[tuple[Item, Future[Value]]]:
    """Call a function with every item in an executor; yield each item with its finished future.

    Errors are raised only by the future's ``result()``, so the caller decides whether to continue. If the caller stops,
    the calls that have not started are cancelled.

    Args:
        executor: executor that runs the calls. It stays open.
        function: function to call with each item.
        items: any iterable, read in the caller's thread.
        look_ahead: maximum number of items that are read before the first of them is finished.
        ordered: whether to yield in the order of the items. By default, the first to finish comes first.
    """
    items = iter(items)
    under_way: dict[Future[Value], Item] = {}  # in the order of the items
    try:
        while True:
            for item in islice(items, look_ahead - len(under_way)):
                with interrupts.held():
                    under_way[executor.submit(function, item)] = item
            if not under_way:
                return
            done = _first_done([next(iter(under_way))] if ordered else under_way)
            yield under_way.pop(done), done
    finally:
        with interrupts.held():
            for future in under_way:
                future.cancel()


def _first_done(futures: Collection[Future[Value]]) -> Future[Value]:
    """Wait until one of the futures is done or a stop is requested."""
    while True:
        interrupts.check()
        with interrupts.held():
            done = wait(futures, timeout=POLL_S, return_when=FIRST_COMPLETED).done
        if done:
            return done.pop()


def count_cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _map_in_threads(function: Callable[[Item], Value], items: Iterable[Item], workers: int) -> Iterator[Value]:
    with ThreadPoolExecutor(workers, thread_name_prefix="caransac") as pool:
        yield from _map_in(pool, function, items, LOOK_AHEAD * workers)


def _map_in(
    executor: Executor, function: Callable[[Item], Value], items: Iterable[Item], look_ahead: int
) -> Iterator[Value]:
    for _, done in submit_all(executor, function, items, look_ahead=look_ahead, ordered=True):
        yield done.result()
