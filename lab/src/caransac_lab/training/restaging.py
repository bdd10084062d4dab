"""Hard scenes made from real matches: planes, lines, rotations, tiny baselines, two motions, few matches.

The confidence must know such scenes, but data sets of good photographs hardly contain them. The right matches of a pair
keep their positions in image 1 and their scores, but belong to another scene seen by the same cameras. Wrong matches
stay unchanged. Wrong cameras are included as well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from caransac.camera import Camera
from caransac.geometry import Array, homogeneous, rotation_from_vector
from caransac_lab.datasets import Pair
from caransac_lab.synthetic.distributions import log_uniform

SceneKind = Literal["plane", "line", "rotation", "tiny", "few", "focal", "centre", "motions", "facade"]
SCENE_KINDS: tuple[SceneKind, ...] = get_args(SceneKind)

BASELINES, TINY_BASELINES = (0.05, 0.5), (1e-4, 0.04)  # divided by the depth of the scene
NOISES_PX = (0.15, 1.5)  # noise of keypoints
FEW = (8, 30)  # number of matches
FOCAL_FACTORS = (1.15, 2.4)  # factors by which focal lengths are wrong
CENTRE_OFFSETS = (0.03, 0.15)  # errors of principal points, in image sizes
MOVING = (0.1, 0.75)  # share of the right matches that follow a second motion
MOVING_TURN = 0.05  # deviation of its rotation vector from that of the camera
# Share on the facade; share of these that match the next window; period in depths.
FACADE, SHIFTED, PERIOD = 0.8, (0.2, 0.8), (0.03, 0.15)
TURN = 0.12  # deviation of the rotation vector if the cameras get a new rotation
UNSCORED = 0.35  # share of scenes without scores
LARGEST_WRONG_SHARE = 0.7  # maximum share of wrong matches if a hard scene has outliers
CLEAN = 0.3  # share of scenes without wrong matches


@dataclass(frozen=True, eq=False)
class Restaged:
    """A pair of a hard scene.

    Attributes:
        pair: matches and cameras; R and t are None if no translation is right.
        H: (3, 3) true homography of pixels if there is one, otherwise None.
        R: (3, 3) true rotation, also for a pure rotation; None without truth.
        kind: kind of hard scene; "none" without any geometry, "" for an ordinary scene.
    """

    pair: Pair
    H: Array | None = None
    R: Array | None = None
    kind: str = ""


def restage(
    pair: Pair, kind: SceneKind, rng: np.random.Generator, largest_wrong_share: float = LARGEST_WRONG_SHARE
) -> Restaged:
    """Place the matches of a pair with truth in a hard scene, with wrong matches up to a share."""
    right = pair.right_matches() > 0
    if kind == "focal":
        factor = rng.uniform(*FOCAL_FACTORS) ** rng.choice([-1, 1])
        zoomed = replace(pair, camera1=_zoomed(pair.camera1, factor), camera2=_zoomed(pair.camera2, factor))
        return Restaged(_unscored(zoomed, rng), R=pair.R, kind=kind)
    if kind == "centre":
        angle = rng.uniform(0, 2 * np.pi)
        off = log_uniform(rng, *CENTRE_OFFSETS) * np.array([np.cos(angle), np.sin(angle)])
        return Restaged(
            _unscored(replace(pair, camera1=_moved(pair.camera1, off), camera2=_moved(pair.camera2, off)), rng),
            R=pair.R,
            kind=kind,
        )
    if kind == "few":
        size = int(rng.integers(FEW[0], FEW[1] + 1))
        num_right = min(int(rng.integers(size // 2, size + 1)), int(right.sum()))
        kept = np.concatenate(
            [
                rng.permutation(np.flatnonzero(right))[:num_right],
                rng.permutation(np.flatnonzero(~right))[: size - num_right],
            ]
        )
        return Restaged(_unscored(pair.take(kept), rng), R=pair.R, kind=kind)
    R, t = rotation_from_vector(TURN * rng.normal(size=3)), rng.normal(size=3) * (1, 0.7, 0.5)
    t /= np.linalg.norm(t)
    rays1 = pair.camera1.pixels_to_rays(pair.points1)
    homography: Array | None = None
    if kind == "line":
        points = _points_on_a_line(len(rays1), rng)
        pixels1 = pair.camera1.rays_to_pixels(points[:, :2] / points[:, 2:])
        t *= log_uniform(rng, *BASELINES)
    else:
        pixels1 = pair.points1
        inverse_depths, homography, t = _surface(kind, rays1, R, t, rng)
        points = homogeneous(rays1) / inverse_depths[:, None]
    moved = points @ R.T + t
    seen = right & np.isfinite(moved).all(axis=1) & (moved[:, 2] > 0.05) & (points[:, 2] > 0.05)
    if kind == "motions":
        moving = _moving(pixels1, right, rng)
        other = R @ rotation_from_vector(MOVING_TURN * rng.normal(size=3))
        moved = np.where(moving[:, None], points @ other.T + _baseline(rng), moved)
        seen &= moved[:, 2] > 0.05
    if kind == "facade":  # at a depth of one, in front of the camera
        period = rng.uniform(*PERIOD) * np.array([rng.choice([-1.0, 1.0]), 0.0, 0.0])
        taken = (points[:, 2] == 1) & (rng.random(len(points)) < rng.uniform(*SHIFTED))
        moved = np.where(taken[:, None], moved + period @ R.T, moved)
    pixels2 = pair.camera2.rays_to_pixels(moved[:, :2] / np.where(seen, moved[:, 2], 1.0)[:, None])
    noise = log_uniform(rng, *NOISES_PX)
    points1, points2 = (
        np.where(seen[:, None], pixels + noise * rng.normal(size=pixels.shape), given)
        for pixels, given in ((pixels1, pair.points1), (pixels2, pair.points2))
    )
    truth = (None, None) if kind == "rotation" else (R, t / np.linalg.norm(t))
    staged = replace(pair, points1=points1, points2=points2, R=truth[0], t=truth[1])
    H = None if homography is None else pair.camera2.K @ homography @ np.linalg.inv(pair.camera1.K)
    return Restaged(_unscored(staged.take(_with_fewer_wrong(seen, right, largest_wrong_share, rng)), rng), H, R, kind)


def _surface(
    kind: SceneKind, rays1: Array, R: Array, t: Array, rng: np.random.Generator
) -> tuple[Array, Array | None, Array]:
    """Return inverse depths (n,), the homography of rays if there is one, and the translation to scale."""
    if kind == "tiny":
        return np.exp(rng.uniform(-0.7, 0.7, len(rays1))), None, t * log_uniform(rng, *TINY_BASELINES)
    if kind == "rotation":
        return np.ones(len(rays1)), R, np.zeros(3)
    if kind == "facade":
        depths = np.where(rng.random(len(rays1)) < FACADE, 1.0, np.exp(rng.uniform(-0.7, 0.7, len(rays1))))
        return 1 / depths, None, t * log_uniform(rng, *BASELINES)
    if kind == "motions":
        return np.exp(rng.uniform(-0.7, 0.7, len(rays1))), None, t * log_uniform(rng, *BASELINES)
    normal = np.array([*(0.6 * rng.normal(size=2)), 1.0])
    t = t * log_uniform(rng, *BASELINES)
    inverse_depths = homogeneous(rays1) @ normal
    return np.where(inverse_depths > 0.1, inverse_depths, np.nan), R + np.outer(t, normal), t


def _moving(pixels1: Array, right: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.bool_]:
    """Choose the matches (n,) of a second motion: those of one place (an object), or any (a copy of the scene)."""
    direction = rng.normal(size=2)
    order = rng.random(len(pixels1)) if rng.random() < 0.5 else pixels1 @ direction
    limit = np.quantile(order[right], rng.uniform(*MOVING)) if right.any() else 0.0
    return np.asarray(order < limit)


def _baseline(rng: np.random.Generator) -> Array:
    """Draw a translation, in depths."""
    direction = rng.normal(size=3) * (1, 0.7, 0.5)
    return np.asarray(direction / np.linalg.norm(direction) * log_uniform(rng, *BASELINES))


def _points_on_a_line(count: int, rng: np.random.Generator) -> Array:
    """Draw points (count, 3) on a straight line in front of the camera."""
    middle = np.array([rng.uniform(-0.3, 0.3), rng.uniform(-0.2, 0.2), 1.0])
    direction = rng.normal(size=3)
    return middle + rng.uniform(-0.5, 0.5, (count, 1)) * direction / np.linalg.norm(direction)


def _with_fewer_wrong(
    seen: NDArray[np.bool_], right: NDArray[np.bool_], largest_share: float, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Return indices of the visible right matches, and of wrong matches: none, or up to a share.

    If there are too few wrong matches for the share, some right ones are left out.
    """
    share = 0.0 if rng.random() < CLEAN else rng.uniform(0, largest_share)
    kept, wrong = (rng.permutation(np.flatnonzero(chosen)) for chosen in (seen, ~right))
    num_wrong = int(len(kept) * share / (1 - share))
    if num_wrong > len(wrong) > 0:
        kept = kept[: max(int(len(wrong) * (1 - share) / share), FEW[1])]
    return np.sort(np.concatenate([kept, wrong[:num_wrong]]))


def _unscored(pair: Pair, rng: np.random.Generator) -> Pair:
    return replace(pair, scores=None) if rng.random() < UNSCORED else pair


def _zoomed(camera: Camera, factor: float) -> Camera:
    """Return the camera with focal lengths that are wrong by a factor."""
    return camera.adjusted(factor, (0.0, 0.0), camera.focal_deviation)


def _moved(camera: Camera, off: Array) -> Camera:
    """Return the camera with its principal point moved by a share (2,) of the image."""
    longer = max(camera.width, camera.height) or 2 * float(camera.K[:2, 2].max())
    return camera.adjusted(1.0, (longer * off[0], longer * off[1]), camera.focal_deviation)
