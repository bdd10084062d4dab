"""All pairs of a source through an executor, here or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

import caransac
from caransac._support.batch import submit_all
from caransac._support.processes import ProcessPool, WorkerDiedError
from caransac.api.focal_pooling import pool_focal
from caransac.camera import Camera
from caransac.geometry import Array
from caransac.verification.cluster import open_cluster
from caransac.verification.pair_verification import profile_batch, verify_batch
from caransac.verification.records import BadPairError, PairGeometry, PairMatches, VerificationOptions
from caransac.verification.source import Source

Value = TypeVar("Value")
OnSkipped = Callable[[BadPairError], None]

PAIRS_PER_WORKER = 32  # takes half a second: as long as a process takes to start
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
    on_skipped: OnSkipped | None = None,
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
        on_skipped: called for each pair that cannot be read; without it the first one ends the run.

    Raises:
        BadPairError: a pair cannot be read, and there is no `on_skipped`.
    """
    pool_focals(source, executor, options, in_flight=in_flight, on_profiles=on_profiles)
    verify_some, batches = _for_workers(verify_batch, options), _read_batches(source, source.pending, on_skipped)
    for _, verified in submit_all(executor, verify_some, batches, look_ahead=in_flight):
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
    profiles: dict[int, Array | None] = dict.fromkeys(keys)
    profile_some, batches = _for_workers(profile_batch, options), _read_batches(source, keys, lambda _: None)
    done = 0
    for batch, asked in submit_all(executor, profile_some, batches, look_ahead=in_flight):
        profiles |= zip([pair.key for pair in batch], asked.result(), strict=True)
        done += len(batch)
        if on_profiles is not None:
            on_profiles(done)
    found = {}
    for number, unknown in source.unpooled.items():
        lens, told = Camera.of_unknown_focal(*unknown.image_size), [profiles[key] for key in unknown.pairs]
        found[number] = pool_focal(told, lens, seed=options.estimation.seed)
    source.learn_focals(found)


def _for_workers(function: Callable[..., list[Value]], options: VerificationOptions) -> Callable[..., list[Value]]:
    """A function of pairs, options and version, as it is sent to workers."""
    return partial(function, options=options, version=caransac.__version__)


def _read_batches(source: Source, keys: Sequence[int], on_skipped: OnSkipped | None) -> Iterator[list[PairMatches]]:
    """Pairs in batches; those that cannot be read are handed to `on_skipped`, or raised."""
    for first in range(0, len(keys), source.batch_size):
        batch = []
        for key in keys[first : first + source.batch_size]:
            try:
                batch.append(source.read(key))
            except BadPairError as error:
                if on_skipped is None:
                    raise
                on_skipped(error)
        if batch:
            yield batch


def choose_workers(workers: int, num_pairs: int) -> int:
    """How many workers are worth their start, of those that may be: one for every `PAIRS_PER_WORKER` pairs.

    One is a thread of this process, so that a small job starts no process at all.
    """
    return min(workers, max(num_pairs // PAIRS_PER_WORKER, 1))


@contextmanager
def open_executor(workers: int = 1, scheduler: str | None = None) -> Iterator[tuple[Executor, int]]:
    """An executor, and how many batches to keep in flight on it.

    One worker is a thread. Several are processes: a third to a half of an estimate holds the interpreter lock, so
    threads would keep two or three cores busy. They are spawned, so a script that calls this must do so under ``if
    __name__ == "__main__":``.

    Args:
        workers: workers on this machine.
        scheduler: address of a Dask scheduler, ``tcp://host:8786`` or ``tls://host:8786``; it takes their place. Its
            workers need caransac installed, in the same version.

    Raises:
        ImportError: Dask is missing.
        OSError: a worker died, or the cluster does not answer, is lost, or keeps losing a batch.
    """
    if workers < 1:
        raise ValueError(f"workers must be at least 1, not {workers}")
    if scheduler is not None:
        with open_cluster(scheduler) as executor:
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
