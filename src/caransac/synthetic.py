"""Synthetic image pairs with known truth, for demonstration, tests and training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from caransac.camera import Camera
from caransac.geometry import Array, homogeneous, rotation_from_vector
from caransac.options import ScoreKind

Integers = NDArray[np.intp]


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


def make_pair(
    num_points: int = 1000,
    outlier_ratio: float = 0.7,
    noise_px: float = 0.5,
    seed: int = 0,
    *,
    width: int = 1024,
    height: int = 768,
) -> SyntheticPair:
    """A pair of views of a cloud of points, with random outliers and ratio-like scores.

    Args:
        num_points: number of matches.
        outlier_ratio: fraction of them that are wrong, 0 to 1.
        noise_px: standard deviation of the keypoints' position in pixels.
        seed: seed of the scene.
        width: image width in pixels.
        height: image height in pixels.
    """
    if not 0 <= outlier_ratio <= 1:
        raise ValueError(f"outlier_ratio must be between 0 and 1, not {outlier_ratio!r}")
    rng = np.random.default_rng(seed)
    focal = 0.9 * width
    camera = Camera("SIMPLE_PINHOLE", (focal, width / 2, height / 2), width, height)
    size = np.array([width, height])
    R = rotation_from_vector(rng.uniform(-0.25, 0.25, 3))
    t = rng.normal(size=3) * (1, 1, 0.5)
    t /= np.linalg.norm(t)

    num_inliers = round(num_points * (1 - outlier_ratio))
    points1, points2 = np.empty((0, 2)), np.empty((0, 2))
    while len(points1) < num_inliers:  # points seen by both cameras, at depths of 3 to 12 baselines
        pixels = rng.uniform(0, 1, (4 * num_points, 2)) * size
        rays = np.c_[camera.pixels_to_rays(pixels), np.ones(len(pixels))]
        moved = rays * rng.uniform(3, 12, (len(pixels), 1)) @ R.T + t
        projected = camera.rays_to_pixels(moved[:, :2] / moved[:, 2:])
        seen = (moved[:, 2] > 0) & np.all((projected >= 0) & (projected < size), axis=1)
        points1 = np.concatenate([points1, pixels[seen]])
        points2 = np.concatenate([points2, projected[seen]])
    outliers = rng.uniform(0, 1, (2, num_points - num_inliers, 2)) * size
    points1 = np.concatenate([points1[:num_inliers], outliers[0]])
    points2 = np.concatenate([points2[:num_inliers], outliers[1]])
    points1 += rng.normal(size=points1.shape) * noise_px
    points2 += rng.normal(size=points2.shape) * noise_px

    inliers = np.arange(num_points) < num_inliers
    # Right matches spread over all ratios, wrong ones crowd just below one.
    scores = np.where(inliers, rng.beta(4, 2.5, num_points), rng.beta(14, 1.2, num_points))
    order = rng.permutation(num_points)
    return SyntheticPair(points1[order], points2[order], camera, camera, scores[order], R, t, inliers[order])


@dataclass(frozen=True)
class _Descriptor:
    """How the ratios of one kind of feature are distributed, and how it errs.

    Ratios of a pair follow Beta distributions. Their means and concentrations vary from pair to pair, and the means
    depend on how hard the pair is: ``logit(mean) = offset + slope * logit(inlier ratio) + deviation * normal``.

    Attributes:
        inlier_mean: offset, slope and deviation of the right matches.
        inlier_concentration: mean and deviation of the logarithm of the right matches' concentration.
        outlier_mean: offset, slope and deviation of the wrong matches.
        outlier_concentration: mean and deviation of the logarithm of the wrong matches' concentration.
        near_misses: mean share of wrong matches that lie on the right surface, some pixels off.
        mutual: whether matches are mutual nearest neighbours; otherwise many points share one of image 2.
        levels: descriptor distances are integers of about this size, so ratios are coarse; 0 for real numbers.
    """

    inlier_mean: tuple[float, float, float]
    inlier_concentration: tuple[float, float]
    outlier_mean: tuple[float, float, float]
    outlier_concentration: tuple[float, float]
    near_misses: float
    mutual: bool = True
    levels: int = 0


# Fitted by moments to mutual nearest neighbours in photographs of five places (RootSIFT, 300 pairs) and of three
# (ALIKED, 180 pairs): matches within 1 px of the true geometry are right, less those expected there by chance. Of the
# wrong ones 20 and 50 % lie within 160 px of where their right neighbours would put them. The binary descriptor is an
# assumption: a little less distinctive than RootSIFT, and quantised.
ROOTSIFT = _Descriptor((0.53, -0.26, 0.37), (1.87, 0.39), (2.48, -0.05, 0.16), (2.76, 0.30), near_misses=0.15)
ALIKED = _Descriptor((1.25, -0.47, 0.35), (2.36, 0.44), (3.02, -0.13, 0.21), (3.18, 0.46), near_misses=0.55)
BINARY = _Descriptor((0.8, -0.25, 0.4), (2.1, 0.4), (2.4, -0.05, 0.2), (2.9, 0.3), 0.05, mutual=False, levels=60)
DESCRIPTORS = (ROOTSIFT, ROOTSIFT, ALIKED, ALIKED, BINARY)  # each pair draws one of them

# Reasons for wrong matches other than chance, and the share of them with ratios like right ones. RootSIFT's wrong
# matches that agree with their neighbours have a median ratio of 0.90 and a first decile of 0.65, the others 0.95 and
# 0.86: about a third look right. ALIKED's, mostly near misses, look hardly better than its others (median 0.96, 0.97).
LOOKS_RIGHT = {"near miss": 0.1, "repetition": 0.4, "displaced patch": 0.3, "moving object": 0.9}


@dataclass(frozen=True, eq=False)
class _Keypoints:
    """Keypoints of image 1: pixels (n, 2), the cluster each is of (n,), and the inverse depth there (n,)."""

    pixels: Array
    clusters: Integers
    inverse_depths: Array

    def take(self, chosen: NDArray[np.integer] | NDArray[np.bool_]) -> _Keypoints:
        """The chosen ones."""
        return _Keypoints(self.pixels[chosen], self.clusters[chosen], self.inverse_depths[chosen])


@dataclass(frozen=True, eq=False)
class _Views:
    """Two cameras and the pose between them, depths of the scene being around one."""

    camera1: Camera
    camera2: Camera
    R: Array
    t: Array

    def project(self, keypoints: _Keypoints) -> tuple[Array, NDArray[np.bool_]]:
        """Where image 2 has the keypoints, (n, 2) pixels, and whether they are within it, (n,)."""
        rays = homogeneous(self.camera1.pixels_to_rays(keypoints.pixels)) @ self.R.T
        rays += keypoints.inverse_depths[:, None] * self.t
        ahead = rays[:, 2] > 0.05
        pixels = self.camera2.rays_to_pixels(rays[:, :2] / np.where(ahead, rays[:, 2], 1)[:, None])
        return pixels, ahead & np.all((pixels >= 0) & (pixels < _size(self.camera2)), axis=1)


@dataclass(frozen=True, eq=False)
class _Scene:
    """Surfaces as image 1 sees them, and the clusters in which a detector finds keypoints on them.

    Attributes:
        camera: camera of image 1.
        faces: (s, 3, 3) inverse depths of the surfaces as affine functions of the ray (x, y, 1). A surface is the
            farthest of its three faces: a box that turns an edge to the camera. The faces of a plane coincide.
        roughness: (s,) deviation of the logarithm of depth about the faces: none for walls, some for foliage.
        repetitive: (s,) whether the surface bears a regular pattern.
        surfaces: (c,) surface of each cluster.
        centres: (c, 2) pixels.
        radii: (c,) pixels.
    """

    camera: Camera
    faces: Array
    roughness: Array
    repetitive: NDArray[np.bool_]
    surfaces: Integers
    centres: Array
    radii: Array

    @property
    def num_clusters(self) -> int:
        """Number of clusters."""
        return len(self.centres)

    def middles(self) -> _Keypoints:
        """A keypoint in the middle of each cluster."""
        return self.keypoints_at(self.centres, np.arange(self.num_clusters), np.zeros(self.num_clusters))

    def keypoints_at(self, pixels: Array, clusters: Integers, bumps: Array) -> _Keypoints:
        """Keypoints at pixels (n, 2), on the surfaces of clusters (n,), with bumps (n,) in units of the roughness."""
        surfaces = self.surfaces[clusters]
        rays = homogeneous(self.camera.pixels_to_rays(pixels))
        inverse_depths = np.clip(np.min(self.faces[surfaces] @ rays[:, :, None], axis=(1, 2)), 0.02, 4)
        return _Keypoints(pixels, clusters, inverse_depths * np.exp(self.roughness[surfaces] * bumps))

    def draw(self, rng: np.random.Generator, weights: Array, num_points: int) -> _Keypoints:
        """Keypoints of clusters drawn with the given weights, (c,), now and then two or more on one corner."""
        clusters = rng.choice(len(weights), num_points, p=weights / weights.sum())
        pixels = self.centres[clusters] + self.radii[clusters, None] * rng.normal(size=(num_points, 2))
        bumps = rng.normal(size=len(weights))[clusters] + 0.15 * rng.normal(size=num_points)
        source = np.arange(num_points)
        repeated = rng.random(num_points) < rng.uniform(0, 0.12)
        source[repeated] = rng.integers(0, max(num_points, 1), repeated.sum())
        pixels[repeated] = pixels[source[repeated]] + rng.normal(size=(repeated.sum(), 2))
        return self.keypoints_at(_reflect(pixels, _size(self.camera)), clusters[source], bumps[source])


def random_pair(
    rng: np.random.Generator,
    *,
    num_points: int | None = None,
    inlier_ratio: float | None = None,
    score_kind: ScoreKind | None = None,
) -> SyntheticPair:
    """A pair as image matching gives it: surfaces, clustered keypoints, structured outliers, realistic scores.

    What is not given is drawn at random.

    Args:
        rng: source of randomness; the same state gives the same pair.
        num_points: number of matches; drawn from 100 to 8000, log-uniformly.
        inlier_ratio: fraction of right matches, 0 to 1; drawn from 0.02 to 0.95, mostly low, 12 matches at least.
        score_kind: what the scores are.
    """
    if num_points is None:
        num_points = round(_log_uniform(rng, 100, 8000))
    elif num_points < 1:
        raise ValueError(f"num_points must be at least 1, not {num_points!r}")
    if inlier_ratio is None:
        inlier_ratio = min(max(0.02 + 0.93 * float(rng.beta(0.8, 2.2)), 12 / num_points), 1.0)
    elif not 0 <= inlier_ratio <= 1:
        raise ValueError(f"inlier_ratio must be between 0 and 1, not {inlier_ratio!r}")
    if score_kind is None:
        score_kind = "ratio" if rng.random() < 0.5 else "confidence"
    elif score_kind not in get_args(ScoreKind):
        raise ValueError(f"score_kind must be one of {', '.join(get_args(ScoreKind))}, not {score_kind!r}")

    descriptor = DESCRIPTORS[rng.integers(len(DESCRIPTORS))]
    num_inliers = round(num_points * inlier_ratio)
    scene, views, right = _draw_inliers(rng, num_inliers)
    wrong1, wrong2, looks_right = _draw_outliers(rng, scene, views, right, descriptor, num_points - num_inliers)
    points1 = np.concatenate([right.pixels, wrong1])
    points2 = np.concatenate([views.project(right)[0], wrong2])
    # Where a pattern repeats, the second-nearest descriptor is a good one too.
    distinct = np.where(scene.repetitive[scene.surfaces[right.clusters]], rng.uniform(0.4, 1), 1.0)
    ratios = _draw_ratios(rng, descriptor, inlier_ratio, np.concatenate([distinct, looks_right]))

    noise_px = _draw_noise_px(rng, num_points)
    points1 = np.clip(points1 + noise_px[0], 0, _size(views.camera1))
    points2 = np.clip(points2 + noise_px[1], 0, _size(views.camera2))
    if not descriptor.mutual:
        points2 = _share_points(rng, points2, num_inliers)
    scores = ratios if score_kind == "ratio" else _confidences(rng, ratios)
    order = rng.permutation(num_points)
    cameras, t = (views.camera1, views.camera2), views.t / np.linalg.norm(views.t)
    inliers = order < num_inliers
    return SyntheticPair(points1[order], points2[order], *cameras, scores[order], views.R, t, inliers, score_kind)


def _size(camera: Camera) -> Array:
    return np.array([camera.width, camera.height], float)


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _reflect(pixels: Array, size: Array) -> Array:
    """Pixels (n, 2) beyond a border folded back into the image."""
    return np.asarray(np.clip(size - np.abs(size - np.abs(pixels)), 0, size))


def _draw_camera(rng: np.random.Generator) -> Camera:
    long_side = _log_uniform(rng, 640, 2000)
    sides = round(long_side), round(long_side / rng.choice([1, 4 / 3, 3 / 2, 16 / 9], p=[0.05, 0.45, 0.25, 0.25]))
    width, height = sides if rng.random() < 0.75 else sides[::-1]
    cx, cy = np.array([width, height]) / 2 + rng.normal(size=2) * 0.005 * long_side
    return Camera("SIMPLE_PINHOLE", (long_side * rng.triangular(0.5, 0.85, 1.6), cx, cy), width, height)


def _draw_views(rng: np.random.Generator) -> _Views:
    """A camera, and another one that looks at about the same place from a little or a long way off."""
    camera1 = _draw_camera(rng)
    camera2 = camera1 if rng.random() < 0.6 else _draw_camera(rng)
    target1, target2 = (
        homogeneous(camera.pixels_to_rays(rng.uniform(0.25, 0.75, (1, 2)) * _size(camera)))[0]
        for camera in (camera1, camera2)
    )
    baseline, spread = (
        (_log_uniform(rng, 0.15, 1.2), (1, 0.3, 0.4)),  # wide
        (_log_uniform(rng, 0.02, 0.15), (1, 0.5, 0.5)),  # narrow
        (_log_uniform(rng, 0.1, 0.6), (0.15, 0.1, 1)),  # forward or backward
        (_log_uniform(rng, 0.001, 0.02), (1, 1, 1)),  # nearly a rotation
    )[rng.choice(4, p=[0.5, 0.25, 0.15, 0.1])]
    direction = rng.normal(size=3) * spread
    centre2 = baseline * direction / np.linalg.norm(direction)
    sight, wanted = ((v / np.linalg.norm(v)) for v in (target1 - centre2, target2))
    axis = np.cross(sight, wanted)
    sine = np.linalg.norm(axis)
    turn = rotation_from_vector(axis / max(sine, 1e-12) * np.arctan2(sine, sight @ wanted))
    roll = rng.uniform(-np.pi, np.pi) if rng.random() < 0.12 else rng.normal() * 0.06
    R = rotation_from_vector(wanted * roll) @ turn
    return _Views(camera1, camera2, R, -R @ centre2)


def _draw_scene(rng: np.random.Generator, camera: Camera) -> _Scene:
    """One large surface and up to four smaller ones at any depth, planes, boxes and foliage."""
    size, count = _size(camera), int(rng.integers(1, 6))
    middles = rng.uniform(0.1, 0.9, (count, 2))
    extents = rng.uniform(0.08, 0.35, (count, 2))
    middles[0], extents[0] = rng.uniform(0.35, 0.65, 2), rng.uniform(0.35, 0.6, 2)
    inverse_depths = np.exp(rng.uniform(-1.2, 0.5, count))
    slopes = np.repeat(rng.normal(size=(count, 1, 2)) * 0.4, 3, axis=1)
    slopes += (rng.random((count, 1, 1)) < 0.3) * rng.normal(size=(count, 3, 2))
    offsets = 1 - np.sum(slopes * camera.pixels_to_rays(middles * size)[:, None], axis=2, keepdims=True)
    faces = np.concatenate([slopes, offsets], axis=2) * inverse_depths[:, None, None]

    num_clusters = round(_log_uniform(rng, 20, 300))
    areas = np.prod(extents, axis=1)
    surfaces = rng.choice(count, num_clusters, p=areas / areas.sum())
    centres = middles[surfaces] + extents[surfaces] * rng.uniform(-1, 1, (num_clusters, 2))
    covers = np.all(np.abs(centres[:, None] - middles) <= extents, axis=2)
    surfaces = np.argmax(covers * inverse_depths, axis=1)  # the nearest one hides the others
    centres *= size
    return _Scene(
        camera=camera,
        faces=faces,
        roughness=rng.uniform(0.02, 0.25, count) * (rng.random(count) < 0.4),
        repetitive=rng.random(count) < 0.15,
        surfaces=surfaces,
        centres=_reflect(centres, size),
        radii=np.exp(rng.uniform(np.log(0.01), np.log(0.1), num_clusters)) * size.max(),
    )


def _draw_inliers(rng: np.random.Generator, count: int) -> tuple[_Scene, _Views, _Keypoints]:
    """A scene, two views of it, and as many keypoints that both see."""
    for attempt in range(10):
        views = _draw_views(rng)
        if attempt == 9:  # nearly the same view twice shows almost everything twice
            views = _Views(views.camera1, views.camera1, np.eye(3), 0.01 * views.t / np.linalg.norm(views.t))
        scene = _draw_scene(rng, views.camera1)
        # Right matches crowd where texture and overlap are good: in a pair of nine wrong matches in ten, half of the
        # neighbours of a right one are still right.
        weights = rng.gamma(_log_uniform(rng, 0.1, 1), size=scene.num_clusters)
        candidates = scene.draw(rng, weights * views.project(scene.middles())[1] + 1e-9, 2 * count + 50)
        seen = np.flatnonzero(views.project(candidates)[1])
        if len(seen) >= max(count / 2, 12):
            break
    return scene, views, candidates.take(np.resize(seen, count))


def _draw_outliers(
    rng: np.random.Generator, scene: _Scene, views: _Views, right: _Keypoints, descriptor: _Descriptor, count: int
) -> tuple[Array, Array, Array]:
    """Wrong matches: pixels in image 1 and in image 2, both (count, 2), and which look right, (count,) 0 or 1."""
    # Both images have keypoints where there is texture, image 2 also on things image 1 does not show. A wrong match
    # connects any two of them, rarely such that have found their right partner.
    size2, num_clusters = _size(views.camera2), scene.num_clusters
    texture = rng.gamma(_log_uniform(rng, 0.2, 1.5), size=num_clusters) + 0.02
    crowds = np.bincount(right.clusters, minlength=num_clusters) * num_clusters / max(len(right.clusters), 1)
    unmatched = texture / (1 + _log_uniform(rng, 0.3, 10) * crowds)
    points1 = scene.draw(rng, unmatched, count).pixels
    centres2, shown = views.project(scene.middles())
    centres2[~shown] = rng.random((num_clusters - shown.sum(), 2)) * size2
    clusters = rng.choice(num_clusters, count, p=texture / texture.sum())
    points2 = _reflect(centres2[clusters] + scene.radii[clusters, None] * rng.normal(size=(count, 2)), size2)
    anywhere = rng.random(count) < rng.uniform(0, 0.4)
    points1[anywhere] = rng.random((anywhere.sum(), 2)) * _size(views.camera1)
    points2[anywhere] = rng.random((anywhere.sum(), 2)) * size2

    near_misses = rng.beta(1, 1 / descriptor.near_misses - 1)
    others = rng.dirichlet([0.5] * (len(LOOKS_RIGHT) - 1)) * rng.beta(0.5, 6) * (1 - near_misses)
    counts = rng.multinomial(count, [near_misses, *others, 1 - near_misses - others.sum()])
    looks_right, stop = np.zeros(count), 0
    for (reason, plausible), number in zip(LOOKS_RIGHT.items(), counts, strict=False):
        part, stop = slice(stop, stop + number), stop + number
        weights = unmatched * shown if reason == "near miss" else rng.gamma(0.1, size=num_clusters)
        points1[part], wrong2 = _mislead(rng, scene, views, reason, weights + 1e-9, number)
        inside = np.all((wrong2 >= 0) & (wrong2 < size2), axis=1)
        points2[part] = np.where(inside[:, None], wrong2, points2[part])
        looks_right[part] = inside & (rng.random(number) < plausible)
    return points1, points2, looks_right


def _mislead(
    rng: np.random.Generator, scene: _Scene, views: _Views, reason: str, weights: Array, count: int
) -> tuple[Array, Array]:
    """Wrong matches of clusters weighted (c,), for a reason: pixels in image 1 and in image 2, both (count, 2)."""
    if reason == "repetition" and scene.repetitive.any():
        weights = weights * (scene.repetitive[scene.surfaces] + 1e-6)
    keypoints = scene.draw(rng, weights, count)
    points1, clusters = keypoints.pixels, keypoints.clusters
    if reason == "near miss":
        offsets = np.exp(rng.uniform(np.log(4), np.log(0.25 * _size(views.camera2).max()), (count, 1)))
        return points1, views.project(keypoints)[0] + offsets * rng.normal(size=(count, 2))
    if reason == "repetition":  # the right surface, some periods of its pattern away
        periods = rng.uniform(-0.06, 0.06, (2, 2)) * _size(scene.camera).max()
        steps = rng.integers(-2, 3, (scene.num_clusters, 2))[clusters] + rng.integers(0, 2, (count, 2))
        steps[np.all(steps == 0, axis=1)] = 1, 0
        return points1, views.project(scene.keypoints_at(points1 + steps @ periods, clusters, np.zeros(count)))[0]
    if reason == "displaced patch":  # turned, scaled and moved as a whole
        turns = rng.normal(size=(scene.num_clusters, 2, 2)) * 0.3 + np.eye(2)
        targets = rng.random((scene.num_clusters, 2)) * _size(views.camera2)
        return points1, targets[clusters] + np.einsum("nij,nj->ni", turns[clusters], points1 - scene.centres[clusters])
    R = rotation_from_vector(rng.normal(size=3) * 0.05) @ views.R  # a moving object
    return points1, _Views(views.camera1, views.camera2, R, views.t + rng.normal(size=3) * 0.1).project(keypoints)[0]


def _share_points(rng: np.random.Generator, points2: Array, first_outlier: int) -> Array:
    """Points of image 2, (n, 2), for matches that need not be mutual: a few attract many wrong ones."""
    shared = np.flatnonzero(rng.random(len(points2)) < rng.uniform(0.2, 0.8))
    shared = shared[shared >= first_outlier]
    popular = rng.permutation(len(points2))[(len(points2) * rng.random(len(shared)) ** 3).astype(int)]
    shared_points = points2.copy()
    shared_points[shared] = points2[popular]
    return shared_points


def _draw_noise_px(rng: np.random.Generator, count: int) -> Array:
    """Errors of keypoints, (2, count, 2): 0.2 to 2 px as the pair has it, more in higher octaves, some far larger."""
    octaves = np.minimum(rng.exponential(0.5, (count, 1)), 3)
    errors = np.clip(rng.standard_t(5, (2, count, 2)), -6, 6) / 1.29  # of deviation one
    return np.asarray(0.2 * 10 ** rng.beta(1, 2) * 2**octaves * errors)


def _draw_beta(rng: np.random.Generator, logit_mean: float, concentration: float, count: int) -> Array:
    """Numbers (count,) of the Beta distribution with this logit of its mean and this concentration."""
    mean = 1 / (1 + np.exp(-logit_mean))
    return rng.beta(mean * concentration, (1 - mean) * concentration, count)


def _draw_ratios(rng: np.random.Generator, descriptor: _Descriptor, inlier_ratio: float, looks_right: Array) -> Array:
    """Ratios (n,) of matches that look right or wrong, (n,) one or zero; in between blends the two."""
    logit = np.log(np.clip(inlier_ratio, 0.01, 0.99) / np.clip(1 - inlier_ratio, 0.01, 0.99))
    right, wrong = (
        _draw_beta(
            rng, offset + slope * logit + deviation * rng.normal(), np.exp(rng.normal(*spread)), len(looks_right)
        )
        for (offset, slope, deviation), spread in (
            (descriptor.inlier_mean, descriptor.inlier_concentration),
            (descriptor.outlier_mean, descriptor.outlier_concentration),
        )
    )
    ratios = looks_right * right + (1 - looks_right) * wrong
    if descriptor.levels:
        second = np.round(descriptor.levels * np.exp(0.2 * rng.normal(size=len(ratios))))
        ratios = np.round(ratios * second) / second
    return np.asarray(ratios)


def _confidences(rng: np.random.Generator, ratios: Array) -> Array:
    """Confidences (n,) of a matcher that is saturated, soft or hardly informative, as the pair draws it."""
    quality = 1 - ratios + 0.4 * rng.random() ** 3 * rng.normal(size=len(ratios))
    steepness, threshold = _log_uniform(rng, 2, 60), rng.uniform(-0.1, 0.4)
    return np.asarray(1 / (1 + np.exp(-steepness * (quality - threshold))))
