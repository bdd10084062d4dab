"""A synthetic pair: correspondences and the truth about them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from caransac.camera import Camera
from caransac.geometry import Array
from caransac.options import ScoreKind

MOST_POINTS = 10**7  # of a scene


@dataclass(frozen=True, eq=False)
class SyntheticPair:
    """Correspondences of two views of a made-up scene, and the truth about them.

    Attributes:
        points1: (n, 2) pixels in image 1.
        points2: (n, 2) pixels in image 2.
        camera1: camera of image 1.
        camera2: camera of image 2.
        scores: (n,) second-nearest-neighbour ratios, lower for better matches, or confidences, higher for better ones.
        R: (3, 3) true rotation, ``x2 = R x1 + t``.
        t: (3,) true translation, of length one.
        inliers: (n,) which matches are right.
        score_kind: what the scores are.
    """

    points1: Array
    points2: Array
    camera1: Camera
    camera2: Camera
    scores: Array
    R: Array
    t: Array
    inliers: NDArray[np.bool_]
    score_kind: ScoreKind = "ratio"
