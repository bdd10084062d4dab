"""What a run says about its own answer: the numbers that the confidence is a function of."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from caransac.geometry import Array


def _number(label: str) -> Any:
    """A number of the evidence, and what a weights file says of it."""
    return field(metadata={"label": label})


@dataclass(frozen=True, kw_only=True, slots=True)
class RunEvidence:
    """The numbers, each with its label; the fitted weights are in this order."""

    support: float = _number("log support: probability-weighted consensus of the answer")
    num_matches: float = _number("log number of matches")
    expected_right: float = _number("log expected number of right matches")
    likely_explained: float = _number(
        "share of the matches of a high prior which the answer explains, as if there were eight more"
    )
    next_support: float = _number("support of the best other model in the last round, relative to the answer's")
    noise: float = _number("log noise, in extents of the points")
    deviation: float = _number("log standard deviation of the baseline's direction, were the noise as estimated")
    agreeing_rounds: float = _number("share of the rounds whose best model had the answer's consensus")
    safe_deviation: float = _number(
        "log standard deviation of that direction without the most influential matches, which may agree by chance"
    )
    plane_margin: float = _number("consensus beyond that of the second pose of a plane, in deviations by chance")
    plane_share: float = _number("share of the inliers that a homography explains")
    camera_gain: float = _number(
        "log consensus of the nearest fundamental matrix, in the answer's: cameras other than given explain more"
    )
    focal_shift: float = _number("shift of the logarithm of the focal lengths once they are free")
    focal_deviation: float = _number("deviation of that logarithm which the matches leave")
    unusual_extent: float = _number(
        "log factor, beyond a usual one, between the points' extent in focal lengths and that of ordinary images"
    )
    width: float = _number("log width of the region of the inliers, in its lengths, where that is little")
    rotation_deviation: float = _number("log standard deviation of the rotation, were the noise as estimated")
    lens_shift: float = _number(
        "log shift of the direction by an ordinary lens, which bends the points and is not modelled"
    )
    rival: float = _number(
        "root of the matches of the strongest other model of matches that the answer does not explain, in its own"
    )

    @property
    def numbers(self) -> Array:
        """(19,) in their order."""
        return np.array([getattr(self, name) for name in self.__slots__])  # astuple copies each number, deeply


EVIDENCE: tuple[str, ...] = tuple(each.metadata["label"] for each in fields(RunEvidence))
