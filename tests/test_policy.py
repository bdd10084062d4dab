"""One policy decides which results are accepted, for `estimate`, databases and the command line."""

from __future__ import annotations

import pytest

import caransac
from caransac import GeometryPolicy
from caransac.policy import DEFAULT_POLICY
from caransac.synthetic import make_pair
from caransac.verification.pair_records import VerificationOptions


def test_estimate_follows_the_policy():
    pair = make_pair(num_points=300, outlier_ratio=0.3)
    call = (pair.points1, pair.points2, pair.camera1, pair.camera2)
    found = caransac.estimate(*call)
    assert found.kind == "pose" and DEFAULT_POLICY.accepts(found)
    unsure = GeometryPolicy(min_confidence=1.0)
    assert not unsure.accepts(found) and caransac.estimate(*call, policy=unsure).kind == "none"
    many = GeometryPolicy(min_inliers=found.num_inliers + 1)
    assert not many.accepts(found) and caransac.estimate(*call, policy=many).kind == "none"


def test_verification_has_a_policy():
    for calibrated, least in ((True, 0.2), (False, 0.0)):
        policy = VerificationOptions().policy(calibrated=calibrated)
        assert policy == GeometryPolicy(min_confidence=least, min_inliers=15)
        assert VerificationOptions(min_confidence=0.3).policy(calibrated=calibrated).min_confidence == 0.3


@pytest.mark.parametrize(("name", "value"), [("min_confidence", 1.5), ("min_confidence", "no"), ("min_inliers", -1)])
def test_wrong_policies_name_the_field(name, value):
    with pytest.raises(ValueError, match=name):
        GeometryPolicy(**{name: value})
    with pytest.raises(ValueError, match="policy"):
        caransac.estimate([[0, 0]], [[0, 0]], policy=name)
