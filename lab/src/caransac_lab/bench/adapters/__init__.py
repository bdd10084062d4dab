"""Robust estimators behind one interface: one file per library, each with its best public settings."""

from __future__ import annotations

from caransac_lab.bench.adapters import (
    kornia_rs,
    opencv,
    ours,
    poselib,
    pycolmap,
    pydegensac,
    pygcransac,
    pymagsac,
    pysuperansac,
)
from caransac_lab.bench.contract import Estimator, HomographyEstimator

ESTIMATORS: dict[str, Estimator] = {
    estimator.name: estimator
    for module in (ours, poselib, opencv, pymagsac, pygcransac, pysuperansac, pydegensac, pycolmap, kornia_rs)
    for estimator in module.ESTIMATORS
}
HOMOGRAPHY_ESTIMATORS: dict[str, HomographyEstimator] = {
    estimator.name: estimator
    for module in (ours, poselib, opencv, pymagsac, pygcransac, pysuperansac, pydegensac, pycolmap)
    for estimator in module.HOMOGRAPHY_ESTIMATORS
}
