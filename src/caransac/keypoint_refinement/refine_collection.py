"""Refine the keypoints of a collection: align all pairs, solve for the shifts, and write the result."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from itertools import groupby, islice

import numpy as np
from numpy.typing import NDArray

from caransac.geometry import Array
from caransac.keypoint_refinement.collection import Collection, KeypointSummary
from caransac.keypoint_refinement.keypoint_patches import PhotographCache, PhotographedPair, align_batch
from caransac.keypoint_refinement.shifts import AlignedMatches, Equations, solve_shifts
from caransac.keypoint_refinement.work_file import WorkFile
from caransac.tuning import KEYPOINTS
from caransac.verification.build_identity import build_identity
from caransac.verification.executors import BATCHES_ON_CLUSTER, OnSkipped, run_batches

PAIRS_PER_BATCH = 128
IMAGES_PER_BLOCK = 16  # a batch has the pairs between two blocks of images, so that each photograph is read once for it
MATCHES_PER_PART = 2**18  # 50 MB of equations
PARTS_IN_MEMORY = 8  # more are read again for every product
RESIDUAL_STEP_PX, RESIDUAL_BINS = 0.001, 4000  # for the median of the summary


def refine_keypoints(
    collection: Collection,
    work: WorkFile,
    executor: Executor,
    *,
    in_flight: int = BATCHES_ON_CLUSTER,
    on_batch: Callable[[int, int], None] | None = None,
    on_problem: Callable[[str, str], None] | None = None,
    on_skipped: OnSkipped | None = None,
    on_lost_worker: Callable[[str], None] | None = None,
) -> KeypointSummary:
    """Refine all keypoints and write them. The geometries of the pairs must be estimated again afterwards.

    The result depends neither on the executor nor on its number of workers. If the run stops early because of an error
    or an interruption, nothing is written but the work file, and another call continues.

    Args:
        collection: images with verified matches. It is used only in the calling thread.
        work: work file of this refinement.
        executor: executor that runs the batches.
        in_flight: maximum number of batches that are read ahead.
        on_batch: function that is called with the number of aligned pairs, and with that of all pairs.
        on_problem: function that is called with the name of each image whose photograph cannot be used, and the reason.
            The matches of these images stay.
        on_skipped: function that is called for each pair that loses its worker twice. Without it, the first such pair
            ends the run.
        on_lost_worker: function that is called with a sentence for each worker process that ends before its batch.

    Raises:
        ValueError: no photograph can be used.
    """
    problems = _align(
        collection,
        work,
        executor,
        in_flight=in_flight,
        on_batch=on_batch,
        on_skipped=on_skipped,
        on_lost_worker=on_lost_worker,
    )
    done = work.count()
    if problems and not done:
        name, reason = next(iter(problems.items()))
        raise ValueError(f"--images: no photograph can be used; the first is that of {name}: {reason}")
    if on_problem is not None:
        for name, reason in sorted(problems.items()):
            on_problem(name, reason)
    refined = _Refined(collection, work, done)
    summary = refined.summary()
    collection.write(refined, summary)
    return summary


def _align(
    collection: Collection,
    work: WorkFile,
    executor: Executor,
    *,
    in_flight: int,
    on_batch: Callable[[int, int], None] | None,
    on_skipped: OnSkipped | None,
    on_lost_worker: Callable[[str], None] | None,
) -> dict[str, str]:
    """Align the pairs that are not in the work file. Return why photographs cannot be used, by image name."""
    done = work.count()
    pending = [key for key in collection.pairs if key not in done]
    total, finished = len(collection.pairs), len(collection.pairs) - len(pending)
    if on_batch is not None:
        on_batch(finished, total)
    problems = dict[str, str]()
    align = partial(align_batch, cache=PhotographCache(), build=build_identity())
    batches = ([_read_pair(collection, key) for key in keys] for keys in batches_of_pairs(collection, pending))
    for _, found in run_batches(executor, align, batches, in_flight, on_skipped, on_lost_worker):
        work.write([each for each in found if not each.problems])  # a photograph may be there the next time
        for each in found:
            problems |= each.problems
        finished += len(found)
        if on_batch is not None:
            on_batch(finished, total)
    return problems


def _read_pair(collection: Collection, key: int) -> PhotographedPair:
    images, matches = collection.images_of(key), collection.matches(key)
    points1, points2 = (collection.keypoints(image)[column] for image, column in zip(images, matches.T, strict=True))
    return PhotographedPair(
        key=key,
        image1=collection.name(images[0]),
        image2=collection.name(images[1]),
        files=(collection.photograph(images[0]), collection.photograph(images[1])),
        matches=matches,
        points1=points1,
        points2=points2,
    )


def batches_of_pairs(collection: Collection, keys: Sequence[int]) -> Iterator[list[int]]:
    """Yield the pairs in batches of few images, so that photographs are read few times."""
    pairs = {key: collection.images_of(key) for key in keys}
    rank = {image: number for number, image in enumerate(connected_order(pairs.values()))}

    def place(key: int) -> tuple[int, ...]:
        low, high = sorted(rank[image] for image in pairs[key])
        return low // IMAGES_PER_BLOCK, high // IMAGES_PER_BLOCK, low, high

    for _, block in groupby(sorted(keys, key=place), lambda key: place(key)[:2]):
        while batch := list(islice(block, PAIRS_PER_BATCH)):
            yield batch


def connected_order(pairs: Iterable[tuple[int, int]]) -> list[int]:
    """Order images so that matched images are near each other, by breadth-first search."""
    neighbours: dict[int, list[int]] = {}
    for first, second in pairs:
        neighbours.setdefault(first, []).append(second)
        neighbours.setdefault(second, []).append(first)
    found: dict[int, None] = {}
    for start in sorted(neighbours):
        queue = deque([start])
        while queue:
            image = queue.popleft()
            if image not in found:
                found[image] = None
                queue.extend(sorted(each for each in neighbours[image] if each not in found))
    return list(found)


class _Refined:
    """The shifts of all keypoints, and the matches that agree with them."""

    def __init__(self, collection: Collection, work: WorkFile, done: Mapping[int, tuple[int, int]]) -> None:
        """Solve for the shifts.

        Args:
            collection: the images with their matches.
            work: the offsets of their pairs.
            done: numbers of matches and aligned matches of the pairs in the work file.
        """
        self._collection, self._work, self._done = collection, work, done
        counts = [collection.num_keypoints(image) for image in collection.images]
        self._start = dict(zip(collection.images, np.cumsum([0, *counts[:-1]]).tolist(), strict=True))
        # Only matched keypoints are solved for.
        matched = np.zeros(sum(counts), bool)
        for key in done:
            for start, column in zip(self._starts(key), work.read(key)["keypoints"].T, strict=True):
                matched[start + column.astype(np.intp)] = True
        self._place = np.full(len(matched), -1, np.int32)
        self._place[matched] = np.arange(matched.sum(), dtype=np.int32)
        if sum(aligned for _, aligned in done.values()) <= PARTS_IN_MEMORY * MATCHES_PER_PART:
            parts = list(self._equations())
            self._shifts = solve_shifts(lambda: parts, int(matched.sum()))
        else:
            self._shifts = solve_shifts(self._equations, int(matched.sum()))
        lengths = np.linalg.norm(self._shifts, axis=1)
        self._refused = lengths > KEYPOINTS.max_shift_px
        self._shifts[self._refused] = 0

    def shifts(self, image: int) -> Array:
        """Return the shifts (n, 2) of the keypoints of an image."""
        start, count = self._start[image], self._collection.num_keypoints(image)
        place = self._place[start : start + count]
        shifts = np.zeros((count, 2))
        shifts[place >= 0] = self._shifts[place[place >= 0]]
        return shifts

    def agreeing(self, key: int) -> NDArray[np.bool_] | None:
        """Return which verified matches (m,) of a pair agree.

        None if that is unknown: there are no photographs, or about half of the patches are not similar because the
        views differ much.
        """
        if key not in self._done:
            return None
        agree = self._agree(key)[0]
        return agree if _is_clear(agree) else None

    def summary(self) -> KeypointSummary:
        """Describe the refinement."""
        agreeing, unjudged = 0, 0
        residuals = np.zeros(RESIDUAL_BINS, np.intp)  # numbers by size, because there may be very many
        for key in self._done:
            agree, distances = self._agree(key)
            if _is_clear(agree):
                agreeing += int(agree.sum())
            else:
                unjudged += len(agree)
            bins = np.minimum(distances / RESIDUAL_STEP_PX, RESIDUAL_BINS - 1).astype(np.intp)
            residuals += np.bincount(bins, minlength=RESIDUAL_BINS)
        lengths = np.linalg.norm(self._shifts, axis=1)
        moved, compared = lengths[lengths > 0], int(residuals.sum())
        median = int(np.searchsorted(np.cumsum(residuals), compared / 2))
        return KeypointSummary(
            pairs=len(self._done),
            matches=sum(matches for matches, _ in self._done.values()),
            compared=compared,
            agreeing=agreeing,
            unjudged=unjudged,
            moved=len(moved),
            refused=int(self._refused.sum()),
            median_shift_px=float(np.median(moved)) if len(moved) else 0.0,
            median_residual_px=RESIDUAL_STEP_PX * median,
        )

    def _agree(self, key: int) -> tuple[NDArray[np.bool_], Array]:
        """Return which verified matches (m,) of a pair agree, and the distances (k,) of its aligned matches."""
        aligned = self._work.read(key)
        matches = self._as_matches(key, aligned)
        distances = np.linalg.norm(matches.residuals(self._shifts), axis=1)
        refused = self._refused[matches.keypoints1] | self._refused[matches.keypoints2]
        agree = np.zeros(self._done[key][0], bool)
        agree[aligned["match"][(distances < KEYPOINTS.max_residual_px) & ~refused]] = True
        return agree, distances

    def _equations(self) -> Iterator[Equations]:
        """Yield the equations of all matches in parts."""
        part, count = list[AlignedMatches](), 0
        for key in self._done:
            part.append(self._as_matches(key, self._work.read(key)))
            count += len(part[-1].offsets)
            if count >= MATCHES_PER_PART:
                yield Equations(AlignedMatches.join(part))
                part, count = [], 0
        if part:
            yield Equations(AlignedMatches.join(part))

    def _as_matches(self, key: int, aligned: np.ndarray) -> AlignedMatches:
        """Return the aligned matches of a pair with the numbers of the keypoints that are solved for."""
        first, second = (
            self._place[start + column.astype(np.intp)]
            for start, column in zip(self._starts(key), aligned["keypoints"].T, strict=True)
        )
        return AlignedMatches(
            keypoints1=first,
            keypoints2=second,
            offsets=aligned["offset"].astype(float),
            maps=aligned["map"].astype(float),
            information=aligned["information"].astype(float),
        )

    def _starts(self, key: int) -> tuple[int, int]:
        """Return the number of the first keypoint of both images of a pair."""
        first, second = self._collection.images_of(key)
        return self._start[first], self._start[second]


def _is_clear(agree: NDArray[np.bool_]) -> bool:
    """Return whether the patches of a pair show which matches (m,) are right."""
    low, high = KEYPOINTS.unclear_shares
    return not low <= agree.mean() < high
