"""Which answers are accepted, and as which geometry: one record for `estimate`, `verify` and the command line."""

from __future__ import annotations

from dataclasses import dataclass

from caransac._support.arrays import is_integer, is_real, shorten
from caransac.results import Result, TwoViewResult


@dataclass(frozen=True, kw_only=True, slots=True)
class GeometryPolicy:
    """What makes a result reliable, and what tells the kinds of geometry apart.

    `caransac.estimate` and ``caransac pose`` have these defaults. ``caransac verify`` asks for 15 inliers, as COLMAP
    does, and for less confidence: a reconstruction drops what does not fit.

    Attributes:
        min_confidence: least confidence of a result; results of methods without a confidence pass.
        min_inliers: least number of inliers.
        mirrored_share: minimum share of inliers with a mirrored neighbourhood at which one image counts as mirrored.
            None of 307 real pairs (RootSIFT, ORB, XFeat, ALIKED with LightGlue) has more than 0.42. Mirrored, one of
            them has less than 0.6.
        planar_share: a reliable homography is told in the place of an unreliable epipolar geometry if it has at least
            this share of the other's number of inliers: lines are near more matches than points are. If a focal length
            is unknown, it also takes the place of a reliable pose if it explains this share of the pose's inliers.
        planar_reach: maximum error of a match that a homography explains there, divided by the pose's inlier threshold.
            Homographies explain 0.92 to 1 of the inliers if a fixed camera zoomed (Oxford's boat and bark), and more
            than 0.9 in 3 of 1065 pairs of scenes with depth.
        min_rotation_confidence: without a reliable pose, least confidence of a rotation to be the result, if the
            direction or the parallax is as the next two say.
        max_direction_deviation_deg: standard deviation of the translation's direction above which the camera hardly
            moved.
        min_parallax: parallax of an unreliable pose, in inlier thresholds, below which the camera hardly moved.
        still_extent: motion below which a match is still, in extents of the points (about a pixel).
        still_shares: shares of the inliers and of all matches that are still where one image was matched to itself.
        min_still: matches that are still there, at least.
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
            raise ValueError(f"min_inliers must not be negative nor a fraction, got {shorten(self.min_inliers)}")
        if not is_real(self.min_confidence) or not 0 <= self.min_confidence <= 1:
            raise ValueError(f"min_confidence must be from 0 to 1, got {shorten(self.min_confidence)}")

    def accepts(self, found: Result) -> bool:
        """Whether a result is reliable."""
        if not found.success or found.num_inliers < self.min_inliers or self.is_mirrored(found):
            return False
        return found.confidence is None or found.confidence >= self.min_confidence

    def is_mirrored(self, found: Result) -> bool:
        """Whether the inliers show that one of two images is mirrored, so that no geometry of theirs is a camera's."""
        return isinstance(found, TwoViewResult) and (found.mirrored_share or 0.0) >= self.mirrored_share


DEFAULT_POLICY = GeometryPolicy()
