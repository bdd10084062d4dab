"""Scenes that a homography explains: planes, which two poses explain, and rotations, which no translation does."""

from __future__ import annotations

from typing import cast

import numpy as np

from caransac.geometry import Array, angle_between_deg, homogeneous, nearest_rotation, rotation_angle_deg
from caransac.kernels import Correspondences, RefineOptions, plane_poses, where
from caransac.options import Options
from caransac.results import DegeneracyKind
from caransac.robust.loop.steps import likely_subset, quick_model
from caransac.robust.problems import Absolute, Homography, Problem
from caransac.robust.records import Degeneracy, Estimate
from caransac.tuning import Tuning

# A homography explains a pair if it carries this share of the inliers to their partners, up to so many deviations of a
# keypoint: 98 in 100 right matches of a plane are that close.
PLANE_SHARE, PLANE_REACH = 0.9, 4.0
LEAST_PLANE_SHARE = 0.5  # homographies of fewer inliers are not pursued any further
# Another pose explains the matches as well if it is this far from the answer, and the answer's consensus is larger by
# no more than so many deviations of what noise makes of it.
OTHER_POSE_DEG, LARGEST_CHANCE = 1.0, 3.0
CLEAR = 8.0  # deviations: more say no more


def find_degeneracy(problem: Problem, found: Estimate, options: Options) -> Degeneracy:
    """Whether a plane or a rotation explains an answer's inliers, and what else would then explain them.

    Torr, "An assessment of information criteria for motion model selection", CVPR 1997.
    """
    nothing = Degeneracy(None, 0.0, problem.no_models, CLEAR)
    if found.model is None or found.msac_scores is None or problem.traits.degeneracy is None:
        return nothing
    if problem.traits.degeneracy == "one view":
        return _flat_scene(cast("Absolute", problem), found, options.tuning)
    inliers = problem.subset(where(found.msac_scores > 0))
    deviation = found.noise / problem.median_error
    plane, max_error = Homography(inliers.correspondences), PLANE_REACH * deviation
    if plane.num_points < plane.sample_size:
        return nothing
    H = quick_model(plane, np.arange(plane.num_points, dtype=np.int32), max_error, found.noise, options)
    if H is None:
        return nothing
    share = np.count_nonzero(plane.inliers(H, max_error)) / plane.num_points
    if share < LEAST_PLANE_SHARE:
        return nothing
    others, margins = _second_poses(problem, found, H, inliers.correspondences, options.tuning)
    kind: DegeneracyKind | None = None
    if share >= PLANE_SHARE:
        R = _rotation(plane, H, max_error) if problem.traits.degeneracy == "two views" else None
        kind = "planar" if R is None else "rotation"
    return Degeneracy(kind, share, others[margins < LARGEST_CHANCE], min([CLEAR, *margins.tolist()]))


def _rotation(plane: Homography, H: Array, max_error: float) -> Array | None:
    """The rotation (3, 3) that explains the rays that a homography explains, or None if there is parallax."""
    R = nearest_rotation(H)
    for _ in range(2):  # the nearest one, then that of the rays it explains (Kabsch)
        explained = plane.inliers(R, max_error)
        if explained.mean() < LEAST_PLANE_SHARE:
            return None
        rays1, rays2 = (
            homogeneous(points[explained]) / np.linalg.norm(homogeneous(points[explained]), axis=1, keepdims=True)
            for points in (plane.points1, plane.points2)
        )
        R = nearest_rotation(np.einsum("ni,nj->ij", rays2, rays1))
    return R if plane.inliers(R, max_error).mean() >= PLANE_SHARE else None


def _flat_scene(problem: Absolute, found: Estimate, tuning: Tuning) -> Degeneracy:
    """Whether a plane explains the points in space of an absolute pose: from afar, it is as its mirror image.

    Schweighofer and Pinz, "Robust pose estimation from a planar target", TPAMI 2006.
    """
    assert found.model is not None and found.msac_scores is not None
    mirrored, share = problem.mirror(found.model, found.msac_scores > 0)
    weights = found.msac_scores.astype(float)
    options = RefineOptions(
        loss_scale=found.noise,
        max_steps=tuning.local_steps,
        min_decrease=1e-3,
        intrinsics=problem.intrinsics_prior(found.noise),
    )
    other = problem.refine(mirrored[None], options, weights)
    margin = CLEAR
    if np.linalg.norm(np.subtract(*problem.outcomes(np.stack([other[0], found.model])))) > np.radians(OTHER_POSE_DEG):
        difference = found.msac_scores - problem.msac_scores(other, found.max_error)[0]
        margin = min(CLEAR, float(difference.sum() / max(np.linalg.norm(difference), 1.0)))
    return Degeneracy(None, share, other if margin < LARGEST_CHANCE else problem.no_models, margin)


def _second_poses(
    problem: Problem, found: Estimate, H: Array, inliers: Correspondences, tuning: Tuning
) -> tuple[Array, Array]:
    """Poses of a plane's homography that are not the answer, refined, and how much better the answer is than each.

    Of two poses that explain a plane alike, noise gives now one and now the other the better score of a point: the
    answer's consensus beyond another's comes in units of what the differences amount to if their signs mean nothing.
    """
    assert found.model is not None and found.msac_scores is not None
    none = problem.no_models, np.empty(0)
    if problem.traits.degeneracy == "uncalibrated":
        return none
    likely = likely_subset(problem, found.msac_scores, tuning.compared_on)
    weights = likely.inliers(found.model, found.max_error)
    options = RefineOptions(
        loss_scale=found.noise,
        max_steps=tuning.local_steps,
        min_decrease=1e-3,
        single_precision=True,
    )
    poses = [problem.from_public(pose) for pose in plane_poses(H, inliers)]
    if not poses:
        return none
    refined = likely.refine(np.stack(poses), options, weights.astype(float))
    other = np.array([_differs(model, found.model) for model in refined])
    refined = refined[other]
    if len(refined) == 0:
        return none
    differences = found.msac_scores - problem.msac_scores(refined, found.max_error)
    margins = differences.sum(axis=1) / np.maximum(np.linalg.norm(differences, axis=1), 1.0)
    order = np.argsort(margins, kind="stable")
    return refined[order], margins[order]


def _differs(model: Array, answer: Array) -> bool:
    """Whether two poses are two answers."""
    turned = rotation_angle_deg(model[:, :3] @ answer[:, :3].T)
    return max(turned, angle_between_deg(model[:, 3], answer[:, 3])) > OTHER_POSE_DEG
