"""A data set by its place, whatever its layout."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from caransac._support.arrays import check_whole
from caransac._support.files import as_path
from caransac.options import ScoreKind
from caransac_lab.datasets.npz import count_npz, read_npz
from caransac_lab.datasets.pair import Pair
from caransac_lab.datasets.pair_list import count_pair_list, read_pair_list
from caransac_lab.datasets.posebench import count_posebench, read_posebench
from caransac_lab.datasets.ransac_tutorial import count_ransac_tutorial, read_ransac_tutorial, split_score_kind
from caransac_lab.synthetic import random_pair

SYNTHETIC_PAIRS = 100  # of a place that says no number


@dataclass(frozen=True)
class Dataset:
    """Pairs that can be read again and again.

    Attributes:
        name: its name in tables.
        num_pairs: how many there are.
        read: starts reading.
    """

    name: str
    num_pairs: int
    read: Callable[[], Iterator[Pair]]


def open_dataset(source: str | Path, max_pairs: int | None = None) -> Dataset:
    """A data set by its place; its layout is seen from the files.

    Args:
        source: a folder of scenes (RANSAC Tutorial, where ``FOLDER=confidence`` or ``FOLDER=none`` says that scores
            are confidences or left out, or npz files), a pair list ``.txt``, a posebench ``.h5``, or
            ``synthetic:N`` for N synthetic pairs, ``synthetic:N:FIRST`` for those starting at number FIRST.
        max_pairs: pairs per scene at most.

    Raises:
        ValueError: there is nothing of a known layout; the message names it.
    """
    if max_pairs is not None:
        check_whole(max_pairs, "max_pairs", 0)
    if str(source).partition(":")[0] == "synthetic":
        return _open_synthetic(str(source), max_pairs)
    path = as_path(source, "source")
    count: Callable[[Path, int | None], int]
    read: Callable[..., Iterator[Pair]]
    if path.suffix == ".txt" and path.is_file():
        count, read = count_pair_list, read_pair_list
    elif path.suffix == ".h5" and path.is_file():
        count, read = count_posebench, read_posebench
    elif (folder := split_score_kind(path)[0]).is_dir() and any(folder.glob("*/matches.h5")):
        count, read = count_ransac_tutorial, read_ransac_tutorial
    elif path.is_dir() and any(path.glob("*/*.npz")):
        count, read = count_npz, read_npz
    else:
        raise ValueError(
            f"no pairs in {source}: want a folder of scenes, a pair list .txt, a posebench .h5 or synthetic:N"
        )
    name = "/".join(path.resolve().with_suffix("").parts[-2:])  # where it lay on the machine is nobody's business
    return Dataset(name, count(path, max_pairs), lambda: read(path, max_pairs=max_pairs))


def _open_synthetic(source: str, max_pairs: int | None) -> Dataset:
    numbers = source.split(":")[1:]
    if len(numbers) > 2 or not all(number.isdigit() for number in numbers):
        raise ValueError(f"{source!r}: want synthetic:N, or synthetic:N:FIRST")
    count, first = [int(number) for number in numbers] + [SYNTHETIC_PAIRS, 0][len(numbers) :]
    count = count if max_pairs is None else min(count, max_pairs)
    return Dataset("synthetic", count, lambda: make_synthetic(count, first=first))


def make_synthetic(num_pairs: int, *, first: int = 0, score_kind: ScoreKind = "ratio") -> Iterator[Pair]:
    """Pairs of `synthetic.random_pair` with 300 to 2000 matches; pair i is the same whatever else is asked for."""
    for index in range(first, first + num_pairs):
        rng = np.random.default_rng([index, 1])
        made = random_pair(rng, num_points=int(rng.integers(300, 2000)), score_kind=score_kind)
        yield Pair.from_synthetic(made, f"{index:04d}")
