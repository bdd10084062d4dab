"""Absolute poses from 2D-3D matches that are made of real pairs: accuracy, time, calibration, next to the peers.

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    .venv/bin/python benchmarks/absolute.py DIR ... [--max-queries N] [--out FILE]

DIR holds scenes in the layout of the RANSAC Tutorial 2020 (docs/formats.md). A query image is matched with one or three
other images; a keypoint of these has a point in space where another pair, without the query, gives one at the true
poses: within 1 px of the epipolar geometry, and with rays more than 1.5 degrees apart. Wrong matches are those that
matching makes. The error is the larger of that of the rotation and of the angle at which the centre is off, seen from
the median depth. "focal 5 %" rows get a focal length off by so much: "stated" with that deviation. Peers get the
matches with a ratio below 0.9, best first, a threshold of 2 px and 1024 hypotheses; caransac all of them, and finds
its threshold. One thread; no answer counts 180 degrees; means over scenes.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from published import LEFT_OUT, data_name, destination, make_parser, origin, publish, table

import caransac
from caransac import Camera, Options
from caransac._support.files import open_h5
from caransac.geometry import (
    Array,
    essential_from_pose,
    fundamental_from_essential,
    homogeneous,
    relative_pose,
    rotation_angle_deg,
    sampson_sq,
)
from caransac.metrics import FAILURE_DEG, auc, expected_calibration_error

NAME = "absolute"
PARTNERS, FOCAL_OFF = (1, 3), 0.05
MIN_ANGLE_DEG, MAX_RATIO, MIN_MATCHES = 1.5, 0.9, 30
PEER_PX, HYPOTHESES = 2.0, 1024
OPTIONS = Options(early_stop=False)

Pose = tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class Query:
    """An image to localise: pixels (n, 2), points in space (n, 3), ratios (n,), and the truth."""

    scene: str
    name: str
    points2d: Array
    points3d: Array
    ratios: Array
    K: Array
    R: Array
    t: Array

    @property
    def size(self) -> tuple[int, int]:
        """Width and height, taken from the principal point."""
        width, height = (round(2 * c + 1) for c in self.K[:2, 2])
        return width, height

    def camera(self, factor: float = 1.0, deviation: float = 0.0) -> Camera:
        """Its camera with the focal length off."""
        K = self.K.copy()
        K[[0, 1], [0, 1]] *= factor
        return Camera.from_matrix(K, width=self.size[0], height=self.size[1], focal_deviation=deviation)

    @property
    def wrong_factor(self) -> float:
        """By which a wrong focal length is off, up or down by the image's name."""
        return float(np.exp(FOCAL_OFF * (1 if sum(map(ord, self.name)) % 2 else -1)))

    def best_first(self) -> tuple[Array, Array]:
        """What the peers get."""
        order = np.argsort(self.ratios, kind="stable")
        order = order[: max(int((self.ratios < MAX_RATIO).sum()), 20)]
        return np.ascontiguousarray(self.points2d[order]), np.ascontiguousarray(self.points3d[order])


class Scene:
    """The matches, poses and cameras of a folder, by image."""

    def __init__(self, folder: Path) -> None:
        self.name = folder.name
        matches, ratios, cameras, R, T = (
            open_h5(folder / f"{name}.h5") for name in ("matches", "match_conf", "K1_K2", "R", "T")
        )
        self.poses = {name: (np.asarray(R[name], float), np.asarray(T[name], float).ravel()) for name in R}
        self.K: dict[str, Array] = {}
        self.pairs: dict[str, dict[str, tuple[Array, Array]]] = defaultdict(dict)
        for key in sorted(matches):
            first, second = key.split("-")
            self.K[first], self.K[second] = np.asarray(cameras[key], float)[0]
            points, scores = np.asarray(matches[key], float), np.asarray(ratios[key], float).ravel()
            self.pairs[first][second] = points, scores
            self.pairs[second][first] = points[:, [2, 3, 0, 1]], scores
        self.space = {image: self.points_of(image) for image in self.pairs}

    def points_of(self, image: str) -> dict[tuple[float, ...], dict[str, tuple[float, Array]]]:
        """For every keypoint of an image: by partner, the angle of its rays and its point in space."""
        found: dict[tuple[float, ...], dict[str, tuple[float, Array]]] = defaultdict(dict)
        for partner, (points, ratios) in self.pairs[image].items():
            pose = relative_pose(*self.poses[image], *self.poses[partner])
            F = fundamental_from_essential(essential_from_pose(*pose), self.K[image], self.K[partner])
            right = (sampson_sq(F, points[:, :2], points[:, 2:]) < 1) & (ratios < MAX_RATIO)
            xyz, angles = self.triangulate(image, partner, points[right])
            for pixel, point, angle in zip(points[right, :2], xyz, angles, strict=True):
                if angle > MIN_ANGLE_DEG:
                    found[tuple(np.round(pixel, 2))][partner] = float(angle), point
        return found

    def triangulate(self, first: str, second: str, points: Array) -> tuple[Array, Array]:
        """Points in space (n, 3), nearest to both rays, and the angles of the rays; -1 behind a camera."""
        centres, rays = [], []
        for image, pixels in ((first, points[:, :2]), (second, points[:, 2:])):
            R, t = self.poses[image]
            directions = homogeneous(pixels) @ np.linalg.inv(self.K[image]).T @ R
            rays.append(directions / np.linalg.norm(directions, axis=1, keepdims=True))
            centres.append(-R.T @ t)
        cosine = np.clip(np.sum(rays[0] * rays[1], axis=1), -1, 1)
        between = centres[1] - centres[0]
        along = rays[0] @ between, rays[1] @ between
        sine_sq = np.maximum(1 - cosine**2, 1e-12)
        depth1 = (along[0] - cosine * along[1]) / sine_sq
        depth2 = (cosine * along[0] - along[1]) / sine_sq
        middle = 0.5 * (centres[0] + depth1[:, None] * rays[0] + centres[1] + depth2[:, None] * rays[1])
        return middle, np.where((depth1 > 0) & (depth2 > 0), np.degrees(np.arccos(cosine)), -1.0)

    def queries(self, partners: int, most: int) -> Iterator[Query]:
        """Images to localise, in a fixed shuffle."""
        rng = np.random.default_rng(0)
        found = []
        for image in sorted(self.pairs):
            near = rng.permutation(sorted(self.pairs[image]))[:partners]
            rows = [row for partner in near for row in self.rows(image, str(partner))]
            if len(rows) >= MIN_MATCHES:
                pixels, space, ratios = (np.array(each) for each in zip(*rows, strict=True))
                found.append(Query(self.name, image, pixels, space, ratios, self.K[image], *self.poses[image]))
        for index in rng.permutation(len(found))[:most]:
            yield found[index]

    def rows(self, image: str, partner: str) -> Iterator[tuple[Array, Array, float]]:
        """Matches of an image with the points in space that others than itself give to a partner's keypoints."""
        points, ratios = self.pairs[image][partner]
        for match, ratio in zip(points, ratios, strict=True):
            known = self.space[partner].get(tuple(np.round(match[2:], 2)), {})
            seen = [(angle, point) for other, (angle, point) in known.items() if other != image]
            if seen:
                yield match[:2], max(seen, key=lambda each: each[0])[1], float(ratio)


@dataclass(frozen=True)
class Answer:
    """What a method found; the confidence where it tells."""

    pose: Pose | None
    confidence: float | None = None


def ours(query: Query, camera: Camera | None, **told: Any) -> Answer:
    """Our pose."""
    found = caransac.estimate_absolute_pose(
        query.points2d, query.points3d, camera, scores=query.ratios, score_kind="ratio", **({"options": OPTIONS} | told)
    )
    return Answer((found.R, found.t) if found.success else None, found.confidence)


def by_poselib(query: Query, camera: Camera) -> Answer:
    """PoseLib, by progressive sampling."""
    import poselib

    told = {"max_reproj_error": PEER_PX, "progressive_sampling": True}
    told |= {"max_iterations": HYPOTHESES, "min_iterations": HYPOTHESES}
    pose, info = poselib.estimate_absolute_pose(*query.best_first(), camera.to_dict(), told, {})
    return Answer((np.asarray(pose.R), np.asarray(pose.t)) if info["num_inliers"] > 0 else None)


def by_colmap(query: Query, camera: Camera) -> Answer:
    """COLMAP's estimator and refinement."""
    import pycolmap

    told = {"ransac": {"max_error": PEER_PX, "max_num_trials": HYPOTHESES}}
    theirs = pycolmap.Camera(**camera.to_dict())
    found = pycolmap.estimate_and_refine_absolute_pose(*query.best_first(), theirs, told, {})
    if found is None:
        return Answer(None)
    pose = found["cam_from_world"]
    return Answer((pose.rotation.matrix(), np.array(pose.translation)))


def by_opencv(query: Query, camera: Camera) -> Answer:
    """OpenCV's P3P in RANSAC, then its Levenberg-Marquardt on the inliers."""
    import cv2

    points2d, points3d = query.best_first()
    limits = {"iterationsCount": HYPOTHESES, "reprojectionError": PEER_PX, "confidence": 0.9999}
    success, vector, t, inliers = cv2.solvePnPRansac(
        points3d, points2d, camera.K, None, flags=cv2.SOLVEPNP_P3P, **limits
    )
    if not success or inliers is None:
        return Answer(None)
    chosen = inliers.ravel()
    vector, t = cv2.solvePnPRefineLM(points3d[chosen], points2d[chosen], camera.K, None, vector, t)
    return Answer((cv2.Rodrigues(vector)[0], t.ravel()))


def methods() -> dict[str, Callable[[Query], Answer]]:
    """All rows."""
    return {
        "CA-RANSAC": lambda q: ours(q, q.camera()),
        "CA-RANSAC, early stop": lambda q: ours(q, q.camera(), options=Options()),
        "LM-LO": lambda q: ours(q, q.camera(), options=Options(method="lm-lo", early_stop=False)),
        "PoseLib": lambda q: by_poselib(q, q.camera()),
        "COLMAP": lambda q: by_colmap(q, q.camera()),
        "OpenCV P3P and LM": lambda q: by_opencv(q, q.camera()),
        "CA-RANSAC, focal 5 % stated": lambda q: ours(q, q.camera(q.wrong_factor, FOCAL_OFF)),
        "CA-RANSAC, focal 5 % as if exact": lambda q: ours(q, q.camera(q.wrong_factor)),
        "PoseLib, focal 5 %": lambda q: by_poselib(q, q.camera(q.wrong_factor)),
        "CA-RANSAC, unknown": lambda q: ours(q, None, image_size=q.size),
    }


def error_deg(pose: Pose | None, query: Query) -> float:
    """Of the rotation, or of the centre seen from the median depth, whichever is larger."""
    if pose is None:
        return FAILURE_DEG
    R, t = pose
    depth = abs(float(np.median((query.points3d @ query.R.T + query.t)[:, 2])))
    centre = np.linalg.norm(R.T @ t - query.R.T @ query.t)
    error = max(rotation_angle_deg(R @ query.R.T), float(np.degrees(np.arctan2(centre, depth))))
    return error if np.isfinite(error) else FAILURE_DEG


def measure(queries: list[Query], run: Callable[[Query], Answer]) -> dict[str, Any]:
    """Figures of a row."""
    errors, times, said, right = defaultdict(list), [], [], []
    for query in queries:
        started = time.process_time()
        answer = run(query)
        times.append(time.process_time() - started)
        error = error_deg(answer.pose, query)
        errors[query.scene].append(error)
        if answer.confidence is not None:
            said.append(answer.confidence)
            right.append(error < 5)
    every = [error for each in errors.values() for error in each]
    return {
        "AUC5": float(np.mean([auc(each, 5.0) for each in errors.values()])),
        "AUC1": float(np.mean([auc(each, 1.0) for each in errors.values()])),
        "no_answer": sum(error == FAILURE_DEG for error in every),
        "ms": 1e3 * float(np.median(times)),
        "calibration_error": expected_calibration_error(said, right) if said else None,
    }


def as_markdown(content: dict[str, Any]) -> str:
    """The tables for readers."""
    text = "# Absolute poses\n\n`benchmarks/absolute.py` says what the rows mean.\n"
    for name, found in content["tables"].items():
        lines = [
            [
                label,
                *(f"{row[figure]:.1f}" for figure in ("AUC5", "AUC1")),
                str(row["no_answer"]),
                f"{row['ms']:.1f}",
                "" if row["calibration_error"] is None else f"{row['calibration_error']:.3f}",
            ]
            for label, row in found["rows"].items()
        ]
        header = ["", "AUC@5", "AUC@1", "no answer", "ms", "calibration error"]
        text += f"\n## {name}, {found['queries']} queries\n\n{table(header, lines)}"
    return text


def main() -> int:
    """Measure, print, and write the tables."""
    parser = make_parser(__doc__, NAME)
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--max-queries", type=int, default=30, metavar="N", help="per scene (default: %(default)s)")
    arguments = parser.parse_args()
    if "estimate_absolute_pose" not in caransac.__all__:
        print("this version has no absolute poses")
        return LEFT_OUT
    made, tables = origin(), dict[str, Any]()
    for folder in arguments.folders:
        scenes = [Scene(path) for path in sorted(folder.iterdir()) if path.is_dir()]
        for partners in PARTNERS:
            most = 1 if arguments.quick else arguments.max_queries
            queries = [query for scene in scenes for query in scene.queries(partners, most)]
            if not queries:
                continue
            name = f"{data_name(folder)}, {partners} reference{'s' * (partners > 1)}"
            rows = {label: measure(queries, run) for label, run in methods().items()}
            tables[name] = {"queries": len(queries), "rows": rows}
            print(name, flush=True)
    if not tables:
        print("no image shares enough points with others")
        return LEFT_OUT
    publish(destination(arguments, NAME), {"made": made, "tables": tables}, as_markdown)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
