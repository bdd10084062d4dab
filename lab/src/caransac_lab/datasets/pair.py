"""A pair: correspondences of two images, and their ground truth."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caransac._support.arrays import as_reals, spread_usable
from caransac.camera import Camera
from caransac.geometry import Array, Floats, join_pose
from caransac.io.matches import Matches
from caransac.options import ScoreKind
from caransac.robust.problems import Essential
from caransac.synthetic import SyntheticPair

RIGHT_PX = 1.0  # a match is right if its Sampson distance to the true geometry is below this


@dataclass(frozen=True, eq=False)
class Pair:
    """Correspondences of two images.

    Attributes:
        scene: name of the scene.
        name: name of the pair within the scene.
        points1: (n, 2) pixels in image 1.
        points2: (n, 2) pixels in image 2.
        scores: (n,) second-nearest-neighbour ratios, or scores of another `score_kind`; None if there are none.
        camera1: camera of image 1.
        camera2: camera of image 2.
        R: (3, 3) true rotation, ``x2 = R x1 + t``, or None if there is no truth (unrelated images).
        t: (3,) true translation of unit length, or None.
        score_kind: kind of the scores.
        features: (n, d) additional features of each match, or None.
    """

    scene: str
    name: str
    points1: Array
    points2: Array
    scores: Array | None
    camera1: Camera
    camera2: Camera
    R: Array | None
    t: Array | None
    score_kind: ScoreKind = "ratio"
    features: Array | None = None

    @classmethod
    def from_synthetic(cls, made: SyntheticPair, name: str = "") -> Pair:
        """Create a pair of the scene "synthetic" from a synthetic pair."""
        shared = (field.name for field in fields(SyntheticPair) if field.name != "inliers")
        return cls(scene="synthetic", name=name, **{field: getattr(made, field) for field in shared})

    @classmethod
    def from_matches(
        cls, scene: str, name: str, matches: Matches, R: Array | None, t: Array | None, features: Array | None = None
    ) -> Pair:
        """Create a pair from checked matches with cameras.

        Args:
            scene: name of the scene.
            name: name of the pair within the scene.
            matches: matches of the pair.
            R: (3, 3) true rotation, or None.
            t: (3,) true translation of unit length, or None.
            features: (n, d) additional features of each match, or None.

        Raises:
            ValueError: cameras are missing, or the number of features does not match. The message says which.
        """
        if matches.camera1 is None or matches.camera2 is None:
            raise ValueError("no cameras; want camera1 and camera2")
        if features is not None:
            features = as_reals(features, "features")
            if features.ndim != 2 or len(features) != len(matches.points1):
                raise ValueError(f"features must have shape ({len(matches.points1)}, d), got {features.shape}")
        return cls(
            scene=scene,
            name=name,
            points1=matches.points1,
            points2=matches.points2,
            scores=matches.scores,
            score_kind=matches.score_kind,
            camera1=matches.camera1,
            camera2=matches.camera2,
            R=R,
            t=t,
            features=features,
        )

    def swapped(self) -> Pair:
        """Return the pair with its images in the other order; its pose must be known."""
        assert self.R is not None and self.t is not None
        return replace(
            self,
            points1=self.points2,
            points2=self.points1,
            camera1=self.camera2,
            camera2=self.camera1,
            R=self.R.T,
            t=-self.R.T @ self.t,
        )

    def take(self, rows: NDArray[np.signedinteger] | NDArray[np.bool_]) -> Pair:
        """Return the pair with some of its matches, in the order of the rows (k,)."""
        names = ("points1", "points2", "scores", "features")
        return replace(self, **{name: each[rows] for name in names if (each := getattr(self, name)) is not None})

    def arguments(self) -> dict[str, Any]:
        """Return the matches and cameras as arguments of the pose estimators."""
        return {"camera1": self.camera1, "camera2": self.camera2} | self.match_arguments()

    def match_arguments(self) -> dict[str, Any]:
        """Return only the matches and their scores as arguments."""
        kind = None if self.scores is None else self.score_kind
        return {"points1": self.points1, "points2": self.points2, "scores": self.scores, "score_kind": kind}

    def right_matches(self) -> Floats:
        """Return 1 for matches within a pixel of the true geometry and in front of both cameras, else 0: (n,)."""
        if self.R is None or self.t is None:
            return np.zeros(len(self.points1), np.float32)
        problem = Essential.from_pixels(self.points1, self.points2, self.camera1, self.camera2)
        right = problem.inliers(join_pose(self.R, self.t), RIGHT_PX * problem.pixel)
        return spread_usable(right.astype(np.float32), problem.usable)


@contextmanager
def naming_pair(path: Path, name: str) -> Iterator[None]:
    """Turn errors about a pair in a file into ValueErrors that name both."""
    try:
        yield
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
        why = str(error.args[0] if isinstance(error, KeyError) and error.args else error)  # KeyError quotes its message
        raise ValueError(f"{path}: pair {name}: {why.removeprefix(f'{path}: ')}") from error
