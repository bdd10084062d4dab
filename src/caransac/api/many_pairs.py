"""Public calls for many pairs at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from caransac._support.arrays import shorten
from caransac._support.batch import map_ordered
from caransac.api.estimators import estimate_fundamental, estimate_relative_pose
from caransac.options import Options, refuse_unknown
from caransac.results import FundamentalResult, RelativePoseResult, Result

Found = TypeVar("Found")
OPTIONAL = (
    "image_size1",
    "image_size2",
    "same_camera",
    "initial_model",
    "images",
)  # further arguments that a pair may have


def estimate_relative_poses(
    pairs: Iterable[object],
    *,
    options: Options | None = None,
    workers: int | Executor | None = None,
    progress: Callable[[int], object] | None = None,
) -> list[RelativePoseResult]:
    """Estimate the relative poses of many pairs in threads.

    The results are bitwise equal to those of single calls.

    Args:
        pairs: any iterable. A generator is read in the caller's thread, when pairs are needed. A pair is

            - a mapping of the arguments of `estimate_relative_pose`, ``{"points1": ..., "camera1": ..., ...}``,
            - a tuple ``(points1, points2, camera1, camera2[, scores, score_kind[, image_size1, image_size2]])``, with
              None for unknown entries, or
            - a record such as `caransac_lab.datasets.Pair` with these attributes and, optionally, `scores`,
              `score_kind`, `features`, `image_size1`, `image_size2`, `same_camera`, `initial_model` and `images`.

            With paths as `images`, photographs are read when their pair is estimated, and not kept.
        options: options of the pairs that have none of their own.
        workers: number of threads, or None for one per core; or an executor. Much of the work needs Python's
            interpreter lock, so threads gain little, and hardly anything with a few hundred matches per pair. The
            processes of a ``concurrent.futures.ProcessPoolExecutor`` do not share a lock.
        progress: function that is called in the caller's thread after each pair, with the number of finished pairs.

    Returns:
        One result per pair, in the same order. A pair without an answer has ``success=False``.

    Raises:
        ValueError: a pair is wrong; the message has its index and names the argument.
    """
    names = PairNames(("camera1", "camera2"), OPTIONAL)
    return estimate_all(estimate_relative_pose, names, number(pairs), options, workers, progress)


def estimate_fundamentals(
    pairs: Iterable[object],
    *,
    options: Options | None = None,
    workers: int | Executor | None = None,
    progress: Callable[[int], object] | None = None,
) -> list[FundamentalResult]:
    """Estimate the fundamental matrices of many pairs in threads, like `estimate_relative_poses`.

    A pair is a mapping of the arguments of `estimate_fundamental`, a tuple ``(points1, points2[, scores, score_kind[,
    image_size1, image_size2]])``, or a record. Cameras of a record are ignored.
    """
    return estimate_all(estimate_fundamental, PairNames((), OPTIONAL), number(pairs), options, workers, progress)


@dataclass(frozen=True)
class PairNames:
    """Names of the arguments that a pair may have besides its points, scores, features and options.

    Attributes:
        cameras: names of the entries that follow the points in a tuple.
        optional: names that mappings and records may have.
    """

    cameras: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()

    def arguments(self, pair: object) -> dict[str, Any]:
        """Return the keyword arguments of a pair."""
        required = ("points1", "points2", *self.cameras)
        names = (*required, "scores", "score_kind", "features", *self.optional, "options")
        if isinstance(pair, Mapping):
            refuse_unknown(pair, names, "argument")
            arguments = dict(pair)
        elif isinstance(pair, tuple | list):
            if len(pair) not in (len(required), len(required) + 2, len(required) + 4):
                raise ValueError(
                    f"a tuple must be ({', '.join(required)}[, scores, score_kind[, image_size1, image_size2]]), got "
                    f"{len(pair)} entries"
                )
            in_order = (*required, "scores", "score_kind", "image_size1", "image_size2")
            arguments = dict(zip(in_order, pair, strict=False))
        else:
            arguments = {name: getattr(pair, name) for name in names if hasattr(pair, name)}
        arguments = {name: value for name, value in arguments.items() if value is not None}
        missing = [
            name for name in required if name not in arguments and name.replace("camera", "image_size") not in arguments
        ]
        if missing:
            unknown = [name.replace("camera", "image_size") for name in missing if name in self.cameras]
            advice = f"; for unknown cameras, give {', '.join(unknown)}=(width, height)" if unknown else ""
            raise ValueError(f"{', '.join(missing)} missing in a {type(pair).__name__}{advice}")
        return arguments


def number(pairs: Iterable[object]) -> Iterator[tuple[int, object]]:
    """Return the pairs with their numbers. Raise a ValueError if they are not iterable."""
    try:
        return enumerate(pairs)
    except TypeError as error:
        raise ValueError(f"pairs must be a list or another iterable of pairs, not {shorten(pairs)}") from error


def estimate_all(
    estimate: Callable[..., Found],
    names: PairNames,
    numbered: Iterable[tuple[int, object]],
    options: Options | None,
    workers: int | Executor | None,
    progress: Callable[[int], object] | None,
) -> list[Found]:
    """Call `estimate` with the arguments of each numbered pair, and return the results in order.

    `estimate_relative_poses` explains the other arguments.
    """
    if progress is not None and not callable(progress):
        raise ValueError(f"progress must be a function of the number of pairs done, or None, not {shorten(progress)}")
    results: list[Found] = []
    for result in map_ordered(partial(_estimate_one, estimate, names, options), numbered, workers):
        results.append(result)
        if progress is not None:
            progress(len(results))
    return results


def _estimate_one(
    estimate: Callable[..., Found], names: PairNames, options: Options | None, numbered: tuple[int, object]
) -> Found:
    index, pair = numbered
    try:
        found = estimate(**{"options": options, **names.arguments(pair)})
        if isinstance(found, Result):
            _ = found.confidence  # the worker, not the caller, computes the assessment
        return found
    except ValueError as error:
        raise ValueError(f"pairs[{index}]: {error}") from error
