"""Open a data set of any layout by its location."""

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

SYNTHETIC_PAIRS = 100  # default number of synthetic pairs


@dataclass(frozen=True)
class Dataset:
    """Pairs that can be read repeatedly.

    Attributes:
        name: name in tables.
        num_pairs: number of pairs.
        read: function that starts reading.
    """

    name: str
    num_pairs: int
    read: Callable[[], Iterator[Pair]]


def open_dataset(source: str | Path, max_pairs: int | None = None) -> Dataset:
    """Open a data set by its location. Its files determine the layout.

    Args:
        source: a folder of scenes, a pair list ``.txt``, a posebench ``.h5``, or synthetic pairs. The folder has the
            layout of the RANSAC Tutorial or npz files; ``FOLDER=confidence`` means that scores are confidences,
            ``FOLDER=none`` ignores them and shuffles the matches. ``synthetic:N`` means N synthetic pairs,
            ``synthetic:N:FIRST`` those starting at number FIRST.
        max_pairs: maximum number of pairs per scene.

    Raises:
        ValueError: there is no data set of a known layout. The message names the location.
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
    name = "/".join(path.resolve().with_suffix("").parts[-2:])  # without the folders above, which are private
    return Dataset(name, count(path, max_pairs), lambda: read(path, max_pairs=max_pairs))


def _open_synthetic(source: str, max_pairs: int | None) -> Dataset:
    numbers = source.split(":")[1:]
    if len(numbers) > 2 or not all(number.isdigit() for number in numbers):
        raise ValueError(f"{source!r}: want synthetic:N, or synthetic:N:FIRST")
    count, first = [int(number) for number in numbers] + [SYNTHETIC_PAIRS, 0][len(numbers) :]
    count = count if max_pairs is None else min(count, max_pairs)
    return Dataset("synthetic", count, lambda: make_synthetic(count, first=first))


def make_synthetic(num_pairs: int, *, first: int = 0, score_kind: ScoreKind = "ratio") -> Iterator[Pair]:
    """Create pairs by `synthetic.random_pair` with 300 to 2000 matches. Pair i does not depend on the other pairs."""
    for index in range(first, first + num_pairs):
        rng = np.random.default_rng([index, 1])
        made = random_pair(rng, num_points=int(rng.integers(300, 2000)), score_kind=score_kind)
        yield Pair.from_synthetic(made, f"{index:04d}")
