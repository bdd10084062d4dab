"""The rules that accept an answer and choose its geometry, shared by `estimate`, `verify` and the command line."""

from __future__ import annotations

from dataclasses import dataclass

from caransac._support.arrays import is_integer, is_real, shorten
from caransac.results import Result, TwoViewResult


@dataclass(frozen=True, kw_only=True, slots=True)
class GeometryPolicy:
    """Thresholds that decide whether a result is reliable, and which kind of geometry it is.

    `caransac.estimate` and ``caransac pose`` use the defaults. ``caransac verify`` requires 15 inliers, as COLMAP does,
    and less confidence, because a reconstruction drops geometry that does not fit.

    Attributes:
        min_confidence: minimum confidence of a reliable result. Results without a confidence pass.
        min_inliers: minimum number of inliers of a reliable result.
        mirrored_share: minimum share of inliers with a mirrored neighbourhood at which one image counts as mirrored.
            The share is 0.42 or less in 307 real pairs (RootSIFT, ORB, XFeat, ALIKED with LightGlue). If one image of
            each pair is mirrored, it is below 0.6 in only one pair.
        planar_share: minimum ratio of inliers (homography / epipolar geometry) at which a reliable homography replaces
            an unreliable epipolar geometry. It is below one because more matches are close to lines than to points. If
            a focal length is unknown, a homography that explains this share of the inliers of a reliable pose also
            replaces the pose.
        planar_reach: maximum error of a match that the homography explains when it replaces a reliable pose, divided by
            the inlier threshold of the pose. If a fixed camera zooms (Oxford's boat and bark), homographies explain
            0.92 to 1 of the inliers. In scenes with depth, they explain more than 0.9 in only 3 of 1065 pairs.
        min_rotation_confidence: minimum confidence of a rotation that is returned instead of a pose if the camera
            hardly moved.
        max_direction_deviation_deg: standard deviation of the translation direction, in degrees, above which the camera
            hardly moved.
        min_parallax: parallax of an unreliable pose, divided by the inlier threshold, below which the camera hardly
            moved.
        still_extent: motion of a match, divided by the extent of the points, below which the match is still: about a
            pixel.
        still_shares: minimum shares of still matches, among the inliers and among all matches, at which both images are
            the same.
        min_still: minimum number of still matches at which both images are the same.
    """

    min_confidence: float = 0.5
    min_inliers: int = 0
    mirrored_share: float = 0.6
    planar_share: float = 0.9
    planar_reach: float = 2.0
    min_rotation_confidence: float = 0.8
    max_direction_deviation_deg: float = 5.0
    min_parallax: float = 4.0
    still_extent: float = 0.003
    still_shares: tuple[float, float] = (0.8, 0.3)
    min_still: int = 8

    def __post_init__(self) -> None:
        if not is_integer(self.min_inliers) or self.min_inliers < 0:
            raise ValueError(f"min_inliers must be an integer of at least 0, got {shorten(self.min_inliers)}")
        if not is_real(self.min_confidence) or not 0 <= self.min_confidence <= 1:
            raise ValueError(f"min_confidence must be from 0 to 1, got {shorten(self.min_confidence)}")

    def accepts(self, found: Result) -> bool:
        """Return True if a result is reliable."""
        if not found.success or found.num_inliers < self.min_inliers or self.is_mirrored(found):
            return False
        return found.confidence is None or found.confidence >= self.min_confidence

    def is_mirrored(self, found: Result) -> bool:
        """Return True if the inliers show that one of two images is mirrored. No camera takes such a pair."""
        return isinstance(found, TwoViewResult) and (found.mirrored_share or 0.0) >= self.mirrored_share


DEFAULT_POLICY = GeometryPolicy()
