"""Interface between the refinement and a collection of images with verified matches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from caransac.geometry import Array, Floats
from caransac.keypoint_refinement.keypoint_patches import PhotographFile
from caransac.verification.pair_records import MatchIndices


@dataclass(frozen=True, kw_only=True)
class KeypointSummary:
    """What a refinement changed.

    Attributes:
        pairs: number of pairs with verified matches and both photographs.
        matches: number of their verified matches.
        compared: number of matches whose patches are similar.
        agreeing: number of matches whose patches agree with those of the other matches of their keypoints.
        unjudged: number of matches of pairs in which about half of the patches agree. They stay.
        moved: number of keypoints that were moved.
        refused: number of keypoints that stay because they would move too far.
        median_shift_px: median length of the shifts of moved keypoints.
        median_residual_px: median distance that remains between the aligned patches of a match.
    """

    pairs: int
    matches: int
    compared: int
    agreeing: int
    unjudged: int
    moved: int
    refused: int
    median_shift_px: float
    median_residual_px: float


class RefinedKeypoints(Protocol):
    """The result of a refinement, image by image and pair by pair."""

    def shifts(self, image: int) -> Array:
        """Return the shifts (n, 2) of the keypoints of an image in pixels."""
        ...

    def agreeing(self, key: int) -> NDArray[np.bool_] | None:
        """Return which verified matches (m,) of a pair agree; None if that is unknown."""
        ...


class Collection(Protocol):
    """Images with keypoints and verified matches. Only the process that opened it uses it."""

    @property
    def identity(self) -> str:
        """A text that changes if images, keypoints, verified matches or options change."""
        ...

    @property
    def images(self) -> Sequence[int]:
        """Numbers of the images, in a fixed order."""
        ...

    @property
    def pairs(self) -> Sequence[int]:
        """Keys of the pairs with verified matches, in a fixed order."""
        ...

    def images_of(self, key: int) -> tuple[int, int]:
        """Return the images of a pair."""
        ...

    def name(self, image: int) -> str:
        """Return the name of an image."""
        ...

    def photograph(self, image: int) -> PhotographFile:
        """Return the file of an image."""
        ...

    def num_keypoints(self, image: int) -> int:
        """Return the number of keypoints of an image."""
        ...

    def keypoints(self, image: int) -> Floats:
        """Return the keypoints (n, 2) of an image. The centre of its top-left pixel is (0, 0)."""
        ...

    def matches(self, key: int) -> MatchIndices:
        """Return the verified matches (m, 2) of a pair as indices of keypoints."""
        ...

    def write(self, refined: RefinedKeypoints, summary: KeypointSummary) -> None:
        """Write refined keypoints and the matches that agree."""
        ...

    def close(self) -> None:
        """Close the collection."""
        ...
