"""Queries: images matched with 3D points, made from the matches of many images with known poses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np

from caransac._support.arrays import spread_usable
from caransac.camera import Camera
from caransac.geometry import Array, Floats, absolute_pose_error_deg, join_pose
from caransac.geometry.triangulation import triangulate_matches
from caransac.options import ScoreKind
from caransac.robust.problems import Absolute
from caransac_lab.datasets.pair import Pair
from caransac_lab.datasets.ransac_tutorial import read_poses, read_ransac_tutorial, split_score_kind

RIGHT_PX = 2.0  # a match is right if its distance to the true projection is below this; 3D points are noisy, too
MAX_RATIO, MIN_ANGLE_DEG = 0.9, 1.5  # limits for right matches that give 3D points
MIN_POINTS = 8  # minimum number of right matches of a pair that gives 3D points
MIN_MATCHES = 30  # minimum number of matches of a query
ROUNDED = 2  # digits of pixels that identify a keypoint


@dataclass(frozen=True, eq=False)
class Query:
    """An image matched with 3D points.

    Attributes:
        scene: name of the scene.
        name: name of the image.
        points2d: (n, 2) pixels.
        points3d: (n, 3) 3D points.
        scores: (n,) second-nearest-neighbour ratios, or scores of another `score_kind`; None if there are none.
        camera: camera of the image.
        R: (3, 3) true rotation, ``x = R X + t``, or None if there is no truth (unrelated images).
        t: (3,) true translation, or None.
        score_kind: kind of the scores.
    """

    scene: str
    name: str
    points2d: Array
    points3d: Array
    scores: Array | None
    camera: Camera
    R: Array | None
    t: Array | None
    score_kind: ScoreKind = "ratio"

    def right_matches(self) -> Floats:
        """Return 1 for matches within two pixels of the true projection and in front of the camera, else 0: (n,)."""
        if self.R is None or self.t is None:
            return np.zeros(len(self.points2d), np.float32)
        problem = Absolute.from_pixels(self.points2d, self.points3d, self.camera.exact)
        pose = problem.from_public(join_pose(self.R, self.t))
        right = problem.inliers(pose, RIGHT_PX * problem.pixel)
        return spread_usable(right.astype(np.float32), problem.usable)

    def error_deg(self, R: Array, t: Array) -> float:
        """Return the error of a pose in degrees, see `absolute_pose_error_deg`."""
        assert self.R is not None and self.t is not None
        return absolute_pose_error_deg(R, t, self.R, self.t, self.points3d)


@dataclass(frozen=True, eq=False)
class Reference:
    """Matches of a query with one reference image whose keypoints have 3D points.

    Attributes:
        points2d: (n, 2) pixels of the query.
        points3d: (n, 3) 3D points.
        scores: (n,) scores of the matches, or None.
    """

    points2d: Array
    points3d: Array
    scores: Array | None


@dataclass(frozen=True, eq=False)
class QueryImage:
    """An image of a scene, and its matches with each reference.

    Attributes:
        scene: name of the scene.
        name: name of the image.
        camera: camera of the image.
        R: (3, 3) true rotation.
        t: (3,) true translation.
        references: references by name.
        score_kind: kind of the scores.
    """

    scene: str
    name: str
    camera: Camera
    R: Array
    t: Array
    references: dict[str, Reference]
    score_kind: ScoreKind = "ratio"

    def query(self, names: list[str]) -> Query:
        """Combine the matches with some references to a query."""
        chosen = [self.references[name] for name in names]
        points2d = np.concatenate([each.points2d for each in chosen])
        points3d = np.concatenate([each.points3d for each in chosen])
        known = [each.scores for each in chosen if each.scores is not None]
        scores = np.concatenate(known) if len(known) == len(chosen) else None
        return Query(self.scene, self.name, points2d, points3d, scores, self.camera, self.R, self.t, self.score_kind)


def read_query_images(root: str | Path) -> Iterator[QueryImage]:
    """Read the images of all scenes in a folder with the layout of the RANSAC Tutorial 2020, by scene and name.

    A keypoint of a reference has a 3D point if its match in a third image triangulates one with the true poses. If
    there are several points, the one with the largest angle is used.
    """
    for scene, pairs in groupby(read_ransac_tutorial(root), key=lambda pair: pair.scene):
        yield from _scene_images(scene, list(pairs), read_poses(split_score_kind(Path(root))[0] / scene))


def read_queries(
    root: str | Path, *, references: int = 1, max_queries: int | None = None, seed: int = 0
) -> list[Query]:
    """Read queries, each matched with up to `references` random images; up to `max_queries` per scene."""
    rng, found = np.random.default_rng(seed), []
    for _, images in groupby(read_query_images(root), key=lambda image: image.scene):
        queries = []
        for image in images:
            names = sorted(image.references)
            rng.shuffle(names)
            query = image.query(names[:references])
            if len(query.points2d) >= MIN_MATCHES:
                queries.append(query)
        rng.shuffle(queries)
        found += queries[:max_queries]
    return found


def _scene_images(scene: str, pairs: list[Pair], poses: dict[str, tuple[Array, Array]]) -> Iterator[QueryImage]:
    """Yield the images of one scene."""
    both = defaultdict[str, dict[str, tuple[Array, Array, Array | None]]](dict)
    cameras: dict[str, Camera] = {}
    points: dict[str, dict[complex, list[tuple[float, str, Array]]]] = defaultdict(lambda: defaultdict(list))
    for pair in pairs:
        a, b = pair.name.split("-")
        cameras[a], cameras[b] = pair.camera1, pair.camera2
        both[a][b] = pair.points1, pair.points2, pair.scores
        both[b][a] = pair.points2, pair.points1, pair.scores
        _add_points(pair, a, b, poses, points)
    for each in points.values():
        for candidates in each.values():
            candidates.sort(key=lambda candidate: -candidate[0])  # the largest angle first
    for name in sorted(both):
        references = {}
        for other, (own, theirs, scores) in both[name].items():
            known = points[other]
            found = [next((X for _, third, X in known.get(key, ()) if third != name), None) for key in _keys(theirs)]
            kept = np.array([X is not None for X in found], bool)
            if kept.any():
                space = np.array([X for X in found if X is not None])
                references[other] = Reference(own[kept], space, None if scores is None else scores[kept])
        if references:
            yield QueryImage(scene, name, cameras[name], *poses[name], references, pairs[0].score_kind)


def _add_points(
    pair: Pair,
    a: str,
    b: str,
    poses: dict[str, tuple[Array, Array]],
    points: dict[str, dict[complex, list[tuple[float, str, Array]]]],
) -> None:
    """Add the 3D points of a pair to the keypoints of both of its images."""
    (Ra, ta), (Rb, tb) = poses[a], poses[b]
    R = Rb @ Ra.T
    t = tb - R @ ta
    right = pair.right_matches() > 0
    if pair.scores is not None and pair.score_kind == "ratio":
        right &= pair.scores < MAX_RATIO
    if right.sum() < MIN_POINTS or not np.linalg.norm(t) > 0:
        return
    found = triangulate_matches(R, t, pair.points1, pair.points2, pair.camera1, pair.camera2, right)
    wide = found.angle_deg > MIN_ANGLE_DEG
    space = (found.xyz[wide] - ta) @ Ra
    for name, other, pixels in ((a, b, pair.points1), (b, a, pair.points2)):
        for key, angle, X in zip(_keys(pixels[found.index[wide]]), found.angle_deg[wide], space, strict=True):
            points[name][key].append((float(angle), other, X))


def _keys(pixels: Array) -> list[complex]:
    """Return keys that identify keypoints (n, 2)."""
    rounded = np.round(pixels, ROUNDED)
    keys: list[complex] = (rounded[:, 0] + 1j * rounded[:, 1]).tolist()
    return keys
