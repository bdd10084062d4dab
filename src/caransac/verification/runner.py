"""All pairs of a source through an executor, here or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import islice

from caransac._support.batch import submit_all
from caransac._support.processes import ProcessPool, WorkerDiedError
from caransac.camera import Camera
from caransac.focal_pooling import pool_focal
from caransac.geometry import Array
from caransac.verification.estimation import profile_batch, verify_batch
from caransac.verification.records import PairGeometry, PairMatches, Source, VerificationOptions

BATCHES_PER_WORKER = 2  # one that it works on and one that waits for it
BATCHES_ON_CLUSTER = 64  # enough for 32 workers; a cluster may begin with none and grow


def verify(
    source: Source,
    executor: Executor,
    options: VerificationOptions,
    *,
    in_flight: int = BATCHES_ON_CLUSTER,
    on_batch: Callable[[Sequence[PairGeometry]], None] | None = None,
    on_profiles: Callable[[int], None] | None = None,
) -> None:
    """Verify all pending pairs of a source, and write each batch as soon as it is there.

    Cameras whose focal lengths are unknown come first: each gets what its pairs agree on, if they do.

    Neither the executor nor the number of its workers changes any geometry. Where this stops early, by an error or an
    interruption, the batches that were written stay, and another call does the rest.

    Args:
        source: the pairs; only the calling thread touches it.
        executor: runs the batches: one of `open_executor`, or any other.
        options: how to verify.
        in_flight: batches that are read ahead at most.
        on_batch: called with the geometries of every batch after it was written.
        on_profiles: called with the number of pairs that were asked for the focal length of their camera, after each
            batch.
    """
    pool_focals(source, executor, options, in_flight=in_flight, on_profiles=on_profiles)
    verify_some = partial(verify_batch, options=options)
    for _, verified in submit_all(executor, verify_some, _read_batches(source, source.pending), look_ahead=in_flight):
        found = verified.result()
        source.write(found)
        if on_batch is not None:
            on_batch(found)
    source.finish()


def pool_focals(
    source: Source,
    executor: Executor,
    options: VerificationOptions,
    *,
    in_flight: int = BATCHES_ON_CLUSTER,
    on_profiles: Callable[[int], None] | None = None,
) -> None:
    """Pool the focal lengths of the cameras of a source that are unknown, and let it use them; see `verify`."""
    keys = [key for unknown in source.unpooled.values() for key in unknown.pairs]
    profiles: list[Array | None] = []
    profile_some = partial(profile_batch, options=options)
    for _, asked in submit_all(executor, profile_some, _read_batches(source, keys), look_ahead=in_flight, ordered=True):
        profiles += asked.result()
        if on_profiles is not None:
            on_profiles(len(profiles))
    rest, found = iter(profiles), {}
    for number, unknown in source.unpooled.items():
        lens, told = Camera.of_unknown_focal(*unknown.image_size), list(islice(rest, len(unknown.pairs)))
        found[number] = pool_focal(told, lens, seed=options.estimation.seed)
    source.learn_focals(found)


def _read_batches(source: Source, keys: Sequence[int]) -> Iterator[list[PairMatches]]:
    for first in range(0, len(keys), source.batch_size):
        yield [source.read(key) for key in keys[first : first + source.batch_size]]


@contextmanager
def open_executor(workers: int = 1, scheduler: str | None = None) -> Iterator[tuple[Executor, int]]:
    """An executor, and how many batches to keep in flight on it.

    One worker is a thread. Several are processes: a third to a half of an estimate holds the interpreter lock, so
    threads would keep two or three cores busy. They are spawned, so a script that calls this must do so under ``if
    __name__ == "__main__":``.

    Args:
        workers: workers on this machine.
        scheduler: address of a Dask scheduler, ``tcp://host:8786``; it takes their place. Its workers need caransac
            installed, in the same version.

    Raises:
        ImportError: Dask is missing.
        OSError: a worker died, or the cluster does not answer, is lost, or keeps losing a batch.
    """
    if workers < 1:
        raise ValueError(f"workers must be at least 1, not {workers}")
    if scheduler is not None:
        with _open_cluster(scheduler) as executor:
            yield executor, BATCHES_ON_CLUSTER
    elif workers == 1:
        with ThreadPoolExecutor(1) as executor:
            yield executor, BATCHES_PER_WORKER
    else:
        with ProcessPool(workers) as executor:
            try:
                yield executor, BATCHES_PER_WORKER * workers
            except WorkerDiedError as error:
                raise OSError("a worker died, out of memory perhaps: continue with fewer --workers") from error


@contextmanager
def _open_cluster(scheduler: str) -> Iterator[Executor]:
    """The executor of a Dask cluster."""
    try:
        from distributed import Client, KilledWorker
        from distributed.comm.addressing import resolve_address
    except ImportError as error:
        raise ImportError("a Dask cluster needs distributed: pip install 'caransac[cluster]'") from error
    try:
        resolve_address(scheduler)  # first: a Client without an address to try waits for a minute in its destructor
        client = Client(scheduler, set_as_default=False)  # type: ignore[no-untyped-call]  # Dask has few types
    except ValueError as error:
        raise ValueError(f"scheduler must be an address like tcp://host:8786, not {scheduler!r}: {error}") from error
    except OSError as error:
        raise OSError(f"no Dask scheduler answers at {scheduler}: start one with 'dask scheduler' ({error})") from error
    with client:
        try:
            yield client.get_executor()  # type: ignore[no-untyped-call]  # Dask has few types
        except KilledWorker as error:
            raise OSError(f"the cluster at {scheduler} gave up a batch, its workers died too often: {error}") from error
        except CancelledError as error:
            raise OSError(f"the connection to {scheduler} was lost: start it again, then continue") from error
