"""All pairs of a source through an executor, here or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager

from caransac.verification.estimation import verify_batch
from caransac.verification.records import Geometry, Settings, Source

BATCHES_A_WORKER = 2  # one that it works on and one that waits for it
BATCHES_ON_CLUSTER = 64  # enough for 32 workers; a cluster may begin with none and grow


def verify(
    source: Source,
    executor: Executor,
    settings: Settings,
    *,
    in_flight: int = BATCHES_ON_CLUSTER,
    on_batch: Callable[[Sequence[Geometry]], None] | None = None,
) -> None:
    """Verify all pending pairs of a source, and write each batch as soon as it is there.

    Neither the executor nor the number of its workers changes any geometry. Where this stops early, by an error or an
    interruption, the batches that were written stay, and another call does the rest.

    Args:
        source: the pairs; only the calling thread touches it.
        executor: runs the batches: a ThreadPoolExecutor, Dask's ``client.get_executor()``, or any other.
        settings: how to verify.
        in_flight: batches that are read ahead at most.
        on_batch: called with the geometries of every batch after it was written.
    """
    size = source.batch_size
    batches = iter([source.pending[i : i + size] for i in range(0, len(source.pending), size)])
    running: set[Future[list[Geometry]]] = set()
    try:
        while True:
            for batch in batches:
                running.add(executor.submit(verify_batch, [source.read(key) for key in batch], settings))
                if len(running) >= in_flight:
                    break
            if not running:
                break
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                found = future.result()
                source.write(found)
                if on_batch is not None:
                    on_batch(found)
    finally:
        for future in running:
            future.cancel()
    source.finish()


@contextmanager
def open_executor(workers: int = 1, scheduler: str | None = None) -> Iterator[tuple[Executor, int]]:
    """An executor, and how many batches to keep in flight on it.

    The kernels release the interpreter lock, so threads serve as well as processes, and need no copies.

    Args:
        workers: threads on this machine.
        scheduler: address of a Dask scheduler, ``tcp://host:8786``; it takes the place of the threads. Its workers need
            caransac installed, in the same version.

    Raises:
        ImportError: Dask is missing.
        OSError: the cluster does not answer, is lost, or keeps losing a batch.
    """
    if workers < 1:
        raise ValueError(f"workers must be at least 1, not {workers}")
    if scheduler is None:
        with ThreadPoolExecutor(workers) as threads:
            yield threads, BATCHES_A_WORKER * workers
        return
    try:
        from distributed import Client, KilledWorker
    except ImportError as error:
        raise ImportError("a Dask cluster needs distributed: pip install 'caransac[cluster]'") from error
    try:
        client = Client(scheduler, set_as_default=False)  # type: ignore[no-untyped-call]  # Dask has few types
    except (OSError, ValueError) as error:
        raise OSError(f"no Dask scheduler answers at {scheduler}: start one with 'dask scheduler' ({error})") from error
    with client:
        try:
            executor = client.get_executor()  # type: ignore[no-untyped-call]  # Dask has few types
            yield executor, BATCHES_ON_CLUSTER
        except KilledWorker as error:
            raise OSError(f"the cluster at {scheduler} gave up a batch, its workers died too often: {error}") from error
        except CancelledError as error:
            raise OSError(f"the connection to {scheduler} was lost: start it again, then continue") from error
