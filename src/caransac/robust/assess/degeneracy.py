"""Degenerate scenes, which a homography explains: two poses explain a plane, and a rotation leaves t undetermined."""

from __future__ import annotations

from typing import cast

import numpy as np

from caransac.geometry import Array, angle_between_deg, homogeneous, nearest_rotation, rotation_angle_deg
from caransac.kernels import Correspondences, RefineOptions, plane_poses
from caransac.options import Options
from caransac.results import DegeneracyKind
from caransac.robust.loop.steps import likely_subset, quick_model
from caransac.robust.problems import Absolute, Homography, Problem
from caransac.robust.records import Degeneracy, Estimate
from caransac.tuning import Tuning


def find_degeneracy(problem: Problem, found: Estimate, options: Options) -> Degeneracy:
    """Test whether a plane or a rotation explains the inliers of an answer, and find other poses that explain them.

    Torr, "An assessment of information criteria for motion model selection", CVPR 1997.
    """
    assert found.msac_scores is not None
    nothing = _with_others(None, 0.0, problem.no_models, np.empty(0))
    if problem.traits.degeneracy is None:
        return nothing
    if problem.traits.degeneracy == "one view":
        return _flat_scene(cast("Absolute", problem), found, options.tuning)
    inliers = problem.subset(found.inliers)
    deviation = found.noise / problem.median_error
    plane, max_error = Homography(inliers.correspondences), 4.0 * deviation  # reaches 98 % of the right matches
    if plane.num_points < plane.sample_size:
        return nothing
    H = quick_model(plane, np.ones(plane.num_points, np.float32), max_error, found.noise, options)
    if H is None:
        return nothing
    share = np.count_nonzero(plane.inliers(H, max_error)) / plane.num_points
    least, most = 0.5, 0.9  # shares of the inliers: a model needs `least`; from `most` it explains the scene
    if share < least:
        return nothing
    others, margins = _second_poses(problem, found, H, inliers.correspondences, options.tuning)
    kind: DegeneracyKind | None = None
    if share >= most:
        rotates = problem.traits.degeneracy == "two views" and _rotation_share(plane, H, max_error, least) >= most
        kind = "rotation" if rotates else "planar"
    return _with_others(kind, share, others, margins)


def shows_plane_twice(problem: Problem, found: Estimate, options: Options) -> bool:
    """Return True if the inliers lie on a plane and its shifted copy, as if some windows match the next ones.

    A shift along the epipolar lines looks like another depth. One model then explains both, and neither is known to be
    right. Both are at the same places in image 1, and in image 2 they differ by nearly the same vector everywhere.
    """
    if problem.traits.degeneracy not in ("two views", "uncalibrated"):
        return False
    inliers = found.inliers
    plane = Homography(problem.subset(inliers[:: len(inliers) // 512 + 1]).correspondences)  # 512 suffice
    max_error, fewest = 4.0 * found.noise / problem.median_error, max(20.0, 0.1 * plane.num_points)
    images, supports, rest = list[Array](), [], np.arange(plane.num_points, dtype=np.int32)
    while len(images) < 2:
        part = plane.subset(rest)
        if len(rest) < fewest:
            return False
        H = quick_model(part, np.ones(len(rest), np.float32), max_error, found.noise, options)
        if H is None:
            return False
        x, y, w = (homogeneous(plane.points1) @ H.T).T
        images.append(np.stack([x, y], axis=1) / np.copysign(np.maximum(np.abs(w), 1e-9), w)[:, None])
        supports.append(rest[part.inliers(H, max_error)])
        rest = rest[~part.inliers(H, 3.0 * max_error)]  # matches just beyond the threshold are no copy
    first, second = supports
    if len(second) < fewest or len(first) == 0:
        return False
    shifts = (images[1] - images[0])[second]
    shift = shifts.mean(axis=0)
    length_sq = max(float(shift @ shift), 1e-300)
    spread_sq = float(((shifts - shift) ** 2).sum(axis=1).mean()) / length_sq
    # A scene with depth has matches between any two of its planes. A copy has nearly none.
    along = (plane.points2 - images[0]) @ shift / length_sq
    between = np.count_nonzero((along > 0.3) & (along < 0.7))
    # The share of the plane among the neighbours of the copy, divided by its share among all matches.
    both, some = np.concatenate(supports), plane.points1[second[:: len(second) // 64 + 1]]
    distances_sq = ((some[:, None] - plane.points1[both]) ** 2).sum(axis=2)
    near = np.argpartition(distances_sq, 6, axis=1)[:, :7]  # each point itself, and six others
    mixing = np.mean(near < len(first)) * (7 / 6) * len(both) / len(first)
    return bool(spread_sq < 0.2**2 and between < 0.2 * len(second) and mixing > 0.7)


def shows_depth(problem: Problem, found: Estimate, tuning: Tuning) -> bool:
    """Return True if the inliers of a homography may belong to a scene with depth instead of a plane.

    A homography explains a range of depths. The depths next to it give as many matches just beyond the threshold, or
    the threshold is so large that it includes them. Right matches of a plane lie well within the threshold.
    """
    assert found.model is not None
    if not isinstance(problem, Homography):
        return False
    largest_noise = 10.0  # times that of ordinary keypoints: an error of 5 px in 1000, more than any detector makes
    if found.noise > largest_noise * tuning.usual_deviation * problem.median_error * problem.extent:
        return True
    distances = problem.distances(found.model) / found.max_error
    low, high = 1.5, 3.0  # thresholds; a few right matches of a plane with imprecise keypoints are just below 1.5
    beyond = np.count_nonzero((distances > low) & (distances < high))
    by_chance = (beyond**0.5 + 1) ** 2 / (high - low)  # two deviations of the count are added
    most = 0.2  # share of the inliers. Homographies fit the densest depths: at most five times the mean density
    return bool(by_chance > most * np.count_nonzero(distances < 1))


def _with_others(kind: DegeneracyKind | None, share: float, others: Array, margins: Array) -> Degeneracy:
    """Return the degeneracy, given other poses (k, ...) and the margins (k,) by which the answer is better."""
    largest_chance, clear = 3.0, 8.0  # smaller margins than the first may be noise; margins are clipped at the second
    return Degeneracy(kind, share, others[margins < largest_chance], min([clear, *margins.tolist()]))


def _rotation_share(plane: Homography, H: Array, max_error: float, least: float) -> float:
    """Return the share of rays that the rotation nearest to a homography explains; it is small with parallax."""
    R = nearest_rotation(H)
    for _ in range(2):  # start from the nearest rotation, then fit the rays that it explains (Kabsch)
        explained = plane.inliers(R, max_error)
        if explained.mean() < least:
            return 0.0
        rays1, rays2 = (
            homogeneous(points[explained]) / np.linalg.norm(homogeneous(points[explained]), axis=1, keepdims=True)
            for points in (plane.points1, plane.points2)
        )
        R = nearest_rotation(np.einsum("ni,nj->ij", rays2, rays1))
    return float(plane.inliers(R, max_error).mean())


def _flat_scene(problem: Absolute, found: Estimate, tuning: Tuning) -> Degeneracy:
    """Test whether a plane explains the 3D points of an absolute pose. A distant plane looks like its mirror image.

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
    margins = np.empty(0)
    apart = np.linalg.norm(np.subtract(*problem.outcomes(np.stack([other[0], found.model]))))
    if _is_other(np.degrees(apart)):
        difference = found.msac_scores - problem.msac_scores(other, found.max_error)[0]
        margins = np.array([difference.sum() / max(np.linalg.norm(difference), 1.0)])
    return _with_others(None, share, other[: len(margins)], margins)


def _second_poses(
    problem: Problem, found: Estimate, H: Array, inliers: Correspondences, tuning: Tuning
) -> tuple[Array, Array]:
    """Return the other poses of a plane's homography, refined, and the margins by which the answer is better.

    If two poses explain a plane equally well, noise decides which of them scores a point higher. A margin is therefore
    the difference in consensus, divided by its standard deviation under random signs of the differences.
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
    R, t = found.model[:, :3], found.model[:, 3]
    angles = (max(rotation_angle_deg(each[:, :3] @ R.T), angle_between_deg(each[:, 3], t)) for each in refined)
    refined = refined[[_is_other(angle) for angle in angles]]
    if len(refined) == 0:
        return none
    differences = found.msac_scores - problem.msac_scores(refined, found.max_error)
    margins = differences.sum(axis=1) / np.maximum(np.linalg.norm(differences, axis=1), 1.0)
    order = np.argsort(margins, kind="stable")
    return refined[order], margins[order]


def _is_other(angle_deg: float) -> bool:
    """Return True if a pose at this angle from the answer counts as a different pose."""
    return angle_deg > 1.0
