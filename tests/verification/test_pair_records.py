"""Inputs and outputs of the verification are checked when they are created."""

from dataclasses import replace

import numpy as np
import pytest

from caransac import Camera, Options
from caransac.verification import Config, PairGeometry, PairMatches, PairReport, VerificationOptions

GEOMETRY = PairGeometry(
    key=0,
    image1="a",
    image2="b",
    config=Config.UNCALIBRATED,
    matches=np.zeros((20, 2), np.uint32),
    num_matches=50,
    confidence=0.5,
    elapsed_ms=2.0,
    F=np.eye(3),
)
PAIR = PairMatches(
    key=0,
    image1="a",
    image2="b",
    matches=np.zeros((20, 2), np.uint32),
    points1=np.zeros((20, 2), np.float32),
    points2=np.zeros((20, 2), np.float32),
)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"config": Config.UNDEFINED}, "config must be one of DEGENERATE, CALIBRATED"),
        ({"config": Config.CALIBRATED}, r"E must have shape \(3, 3\) if config is CALIBRATED"),
        ({"config": Config.PLANAR_OR_PANORAMIC}, "H must have shape"),
        ({"config": Config.DEGENERATE}, "matches must be empty for a degenerate pair"),
        ({"config": Config.DEGENERATE, "matches": np.zeros((0, 2), np.uint32)}, "F must be None"),
        ({"t": np.zeros(3)}, "t must be None if config is UNCALIBRATED"),
        ({"F": np.eye(3)[:2]}, r"F must have shape \(3, 3\)"),
        ({"matches": np.zeros((60, 2), np.uint32)}, "matches must be up to 50 rows of 2"),
        ({"matches": np.zeros(20, np.uint32)}, "matches must be up to 50 rows of 2"),
    ],
)
def test_impossible_geometries_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(GEOMETRY, **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"points1": np.zeros((19, 2))}, r"points1 must have shape \(20, 2\), got \(19, 2\)"),
        ({"points2": np.zeros((20, 3))}, r"points2 must have shape \(20, 2\)"),
        ({"matches": np.zeros((20, 3))}, r"matches must have shape \(20, 2\)"),
        ({"cameras": (Camera("SIMPLE_RADIAL", (9, 1, 1, 0.1)),) * 2}, "cameras must have no distortion"),
    ],
)
def test_impossible_pairs_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(PAIR, **changes)


def test_impossible_options_are_refused():
    for wrong in ({"min_inliers": -1}, {"min_confidence": 1.5}, {"min_confidence": -0.1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            VerificationOptions(**wrong)
    with pytest.raises(ValueError, match="min_confidence needs method 'ca-ransac'"):
        VerificationOptions(estimation=Options(method="lm-lo"), min_confidence=0.5)


def test_a_report_describes_a_geometry():
    expected = PairReport("a", "b", 50, 20, 0.4, 0.5, "uncalibrated", 2.0)
    assert PairReport.of_geometry(GEOMETRY) == expected
    assert PairReport.of(("a", "b"), 0, 0, 42).config == "config 42"  # a newer COLMAP may write other values
