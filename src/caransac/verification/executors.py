"""Run all pairs of a source through an executor, on this machine or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Protocol, TypeVar

from caransac._support.arrays import check_whole
from caransac._support.batch import submit_all
from caransac._support.processes import ProcessPool, WorkerDiedError
from caransac.api.camera_pooling import pool_camera
from caransac.api.camera_profile import CameraProfile
from caransac.camera import Camera
from caransac.geometry import Floats
from caransac.verification.build_identity import build_identity
from caransac.verification.cluster import open_cluster
from caransac.verification.pair_records import BadPairError, PairGeometry, PairMatches, VerificationOptions
from caransac.verification.pair_verification import profile_batch, verify_batch
from caransac.verification.source import Source


class NamedPair(Protocol):
    """A pair of images for a worker."""

    @property
    def image1(self) -> str:
        """Name of image 1."""
        ...

    @property
    def image2(self) -> str:
        """Name of image 2."""
        ...


Pair = TypeVar("Pair", bound=NamedPair)
Value = TypeVar("Value")
OnSkipped = Callable[[BadPairError], None]

PAIRS_PER_WORKER = 32  # a worker takes half a second for them, as long as for its start
BATCHES_PER_WORKER = 2  # one that is being worked on, and one that waits
MOST_DEATHS = 8  # consecutive deaths of workers without progress; after that, pairs are not the cause
BATCHES_ON_CLUSTER = 64  # enough for 32 workers; a cluster may start with none and grow


def verify(
    source: Source,
    executor: Executor,
    options: VerificationOptions,
    *,
    in_flight: int = BATCHES_ON_CLUSTER,
    on_batch: Callable[[Sequence[PairGeometry]], None] | None = None,
    on_profiles: Callable[[int], None] | None = None,
    on_skipped: OnSkipped | None = None,
    on_lost_worker: Callable[[str], None] | None = None,
) -> None:
    """Verify all pending pairs of a source. Write each batch as soon as it is done.

    Cameras with unknown focal lengths come first: each gets the focal length that its pairs agree on, if they agree.

    If a worker process dies or is stopped for ten seconds, its batch is tried again, pair by pair. A pair that loses
    its worker again is skipped, like a pair that cannot be read.

    The result depends neither on the executor nor on its number of workers. If the run stops early because of an error
    or an interruption, finished batches are kept, and another call verifies the rest.

    Args:
        source: source of the pairs. It is used only in the calling thread.
        executor: executor that runs the batches, from `open_executor` or any other.
        options: options of the verification.
        in_flight: maximum number of batches that are read ahead.
        on_batch: function that is called with the geometries of every batch after they are written.
        on_profiles: function that is called after each batch of pooling, with its number of pairs.
        on_skipped: function that is called for each pair that cannot be read or verified. Without it, the first such
            pair ends the run.
        on_lost_worker: function that is called with a sentence for each worker process that ends before its batch.

    Raises:
        BadPairError: a pair cannot be read or verified, and there is no `on_skipped`.
    """
    ratios = pool_focals(
        source, executor, options, in_flight=in_flight, on_profiles=on_profiles, on_lost_worker=on_lost_worker
    )
    batches = _read_batches(source, source.pending, on_skipped, ratios)
    for _, found in run_batches(
        executor, _for_workers(verify_batch, options), batches, in_flight, on_skipped, on_lost_worker
    ):
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
    on_lost_worker: Callable[[str], None] | None = None,
) -> dict[int, Floats]:
    """Pool the unknown focal lengths of the cameras of a source, and pass them to the source; see `verify`.

    Returns:
        Ratios (n,) of the descriptors of pending pairs by key, for the pairs for which pooling computed them.
    """
    keys = [key for unknown in source.unpooled.values() for key in unknown.pairs]
    pending, ratios = frozenset(source.pending), dict[int, Floats]()
    profiles: dict[int, CameraProfile | None] = dict.fromkeys(keys)
    batches = _read_batches(source, keys, _pass_over, {})
    done = 0
    profile = _for_workers(profile_batch, options)
    for batch, asked in run_batches(executor, profile, batches, in_flight, _pass_over, on_lost_worker):
        for pair, found in zip(batch, asked, strict=True):
            profiles[pair.key] = found.profile
            if found.ratios is not None and pair.key in pending:
                ratios[pair.key] = found.ratios
        done += len(batch)
        if on_profiles is not None:
            on_profiles(done)
    pooled = {}
    for number, unknown in source.unpooled.items():
        lens, told = Camera.of_unknown_focal(*unknown.image_size), [profiles[key] for key in unknown.pairs]
        pooled[number] = pool_camera(told, lens, seed=options.estimation.seed)
    source.learn_focals(pooled)
    return ratios


def _pass_over(error: BadPairError) -> None:
    """Ignore a pair that cannot be profiled. It is reported when it is verified."""


def run_batches(
    executor: Executor,
    function: Callable[[list[Pair]], list[Value]],
    batches: Iterable[list[Pair]],
    in_flight: int,
    on_skipped: OnSkipped | None,
    on_lost_worker: Callable[[str], None] | None,
) -> Iterator[tuple[list[Pair], list[Value]]]:
    """Yield finished batches with the results of a function for their pairs.

    Batches whose worker died are repeated at the end, pair by pair. A worker can die for any reason; a pair is blamed
    only if it kills a second worker.
    """
    again: list[list[Pair]] = []
    deaths = 0
    for chosen in (batches, again):
        for batch, done in submit_all(executor, function, chosen, look_ahead=in_flight):
            try:
                found = done.result()
            except WorkerDiedError as error:
                deaths += 1
                if on_lost_worker is not None:
                    on_lost_worker(str(error))
                if deaths >= MOST_DEATHS:
                    raise
                if chosen is not again:
                    again.extend([pair] for pair in batch)
                    continue
                names = batch[0].image1, batch[0].image2
                lost = BadPairError(names, "its worker process died twice, perhaps out of memory: use fewer --workers")
                if on_skipped is None:
                    raise lost from error
                on_skipped(lost)
            else:
                deaths = 0
                yield batch, found


def _for_workers(function: Callable[..., list[Value]], options: VerificationOptions) -> Callable[..., list[Value]]:
    """Bind options and build to a function of pairs, for sending it to workers."""
    return partial(function, options=options, build=build_identity())


def _read_batches(
    source: Source, keys: Sequence[int], on_skipped: OnSkipped | None, ratios: dict[int, Floats]
) -> Iterator[list[PairMatches]]:
    """Yield batches of pairs with known ratios. Unreadable pairs go to `on_skipped`, or raise if that is None."""
    for first in range(0, len(keys), source.batch_size):
        batch = []
        for key in keys[first : first + source.batch_size]:
            try:
                pair = source.read(key)
                batch.append(pair.with_ratios(ratios.pop(key)) if key in ratios else pair)
            except BadPairError as error:
                if on_skipped is None:
                    raise
                on_skipped(error)
        if batch:
            yield batch


def choose_workers(workers: int, num_pairs: int) -> int:
    """Choose the number of workers: one for every `PAIRS_PER_WORKER` pairs, up to `workers`.

    A single worker is a thread of this process, so a small job starts no process.
    """
    check_whole(workers, "workers", 1)
    check_whole(num_pairs, "num_pairs", 0)
    return min(workers, max(num_pairs // PAIRS_PER_WORKER, 1))


@contextmanager
def open_executor(workers: int = 1, scheduler: str | None = None) -> Iterator[tuple[Executor, int]]:
    """Open an executor. Yield it with the number of batches to keep in flight.

    One worker is a thread; several workers are processes. The Python code of an estimate keeps the interpreter lock,
    so threads gain little. Processes are spawned, so a script must call this under
    ``if __name__ == "__main__":``.

    Args:
        workers: number of workers on this machine.
        scheduler: address of a Dask scheduler, ``tcp://host:8786`` or ``tls://host:8786``, which replaces local
            workers. Its workers need the same version of caransac.

    Raises:
        ImportError: Dask is missing.
        OSError: workers die repeatedly, or the cluster does not answer, is lost, or repeatedly loses a batch.
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
                raise OSError("workers keep dying, perhaps out of memory: continue with fewer --workers") from error
