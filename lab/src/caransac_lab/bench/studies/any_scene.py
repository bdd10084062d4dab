"""Rendered photographs of a building, a poster, a panorama and two places: answers of one call and one command.

Images have noise of five grey levels and are matched by RootSIFT. `caransac.estimate` gets the cameras, the image
sizes, or nothing. The command is `caransac pose a.png b.png --focal F --json`. There are ten seeds of each scene by
default. "right" counts answers of a kind that the scene has, near the truth: a pose to five degrees, a rotation to one
degree, a homography to three pixels at the inliers, a fundamental matrix whose pose with the true cameras is right. For
two places, "none" is the right answer. If the scene has no pose (panorama, two places), a pose of the command also
counts as right if its confidence is 0.5 or lower. All rows are ours.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import caransac
from caransac.geometry import Array, homogeneous, pose_error_deg, rotation_angle_deg
from caransac.io.images import match_images, write_image
from caransac_lab.bench.publication import Content, table
from caransac_lab.bench.row_labels import label as in_words
from caransac_lab.render import TARGET, Face, Image, look_at, make_face, make_scene, render, render_views

NAME = "any_scene"
SEEDS, QUICK_SEEDS = 10, 1
WIDTH, HEIGHT, GREY_NOISE = 640, 480, 5.0
LIMITS = {"pose": 5.0, "pose_and_focals": 5.0, "fundamental": 5.0, "rotation": 1.0, "homography": 3.0}
SURE = 0.5  # minimum confidence of an answer that the command does not doubt
COUNTED, SPREAD = ("kind", "degeneracy", "reason"), ("confidence", "error", "nearest_alternative_deg")
SAID, MODELS = ("reason", "confidence", "degeneracy", "stop_reason"), ("R", "t", "F", "H")
CAMERA = render_views(1, width=WIDTH, height=HEIGHT).camera
TOLD: dict[str, dict[str, Any]] = {
    "cameras": {"camera1": CAMERA, "camera2": CAMERA},
    "sizes": {"image_size1": (WIDTH, HEIGHT), "image_size2": (WIDTH, HEIGHT)},
    "nothing": {},
}

Pose = tuple[Array, Array]


@dataclass(frozen=True)
class Photographs:
    """Two images and the truth: R (3, 3), t (3,) or None, H (3, 3) or None; both None for two places."""

    images: tuple[Image, Image]
    R: Array | None = None
    t: Array | None = None
    H: Array | None = None


def seen_from(poses: tuple[Pose, Pose], faces: list[Face]) -> tuple[Image, Image]:
    """Render a scene from two cameras."""
    first, second = (render(faces, CAMERA, *pose) for pose in poses)
    return first, second


def building(seed: int) -> Photographs:
    """Render boxes in front of walls, from two viewpoints."""
    views = render_views(2, width=WIDTH, height=HEIGHT, seed=seed, arc_deg=12.0)
    return Photographs((views.images[0], views.images[1]), *views.relative_pose(0, 1))


def poster(seed: int) -> Photographs:
    """Render one plane that fills the view, from two viewpoints."""
    rng = np.random.default_rng([seed, 2])
    x, _, z = np.eye(3)
    face = make_face(rng, [-9, 0, -8], x, z, (18, 16))  # in the plane y = 0, towards negative y
    sides = rng.permutation([-1, 1]) * rng.uniform(0.5, 1.2, 2)
    centres = [np.array([side, -rng.uniform(3.5, 4.5), rng.uniform(-0.3, 0.3)]) for side in sides]
    poses = tuple(look_at(centre, rng.uniform(-0.3, 0.3, 3) * (1, 0, 1)) for centre in centres)
    (R1, t1), (R2, t2) = poses
    # For the plane n . X = d of camera 1: x2 = (R + t n' / d) x1.
    R, t = R2 @ R1.T, t2 - R2 @ R1.T @ t1
    normal, distance = R1[:, 1], float(R1[:, 1] @ t1)
    H = CAMERA.K @ (R + np.outer(t, normal) / distance) @ np.linalg.inv(CAMERA.K)
    return Photographs(seen_from(poses, [face]), R, t / np.linalg.norm(t), H)


def panorama(seed: int) -> Photographs:
    """Render two views of a camera that only rotates."""
    rng = np.random.default_rng([seed, 3])
    centre = TARGET + np.array([rng.uniform(-1, 1), -6.5, rng.uniform(1, 2)])
    offset = rng.uniform(0.6, 1.0)
    targets = [TARGET + np.array([side * offset, 0, rng.uniform(-0.3, 0.3)]) for side in rng.permutation([-1, 1])]
    poses = tuple(look_at(centre, target) for target in targets)
    R = poses[1][0] @ poses[0][0].T
    return Photographs(seen_from(poses, make_scene(seed)), R, None, CAMERA.K @ R @ np.linalg.inv(CAMERA.K))


def two_places(seed: int) -> Photographs:
    """Render two scenes without anything in common."""
    first, second = (render_views(1, width=WIDTH, height=HEIGHT, seed=s).images[0] for s in (seed, seed + 1000))
    return Photographs((first, second))


SCENES: dict[str, Callable[[int], Photographs]] = {
    "building": building,
    "poster": poster,
    "panorama": panorama,
    "two places": two_places,
}


def noisy(made: Photographs, seed: int) -> Photographs:
    """Add sensor noise to the images."""
    rng = np.random.default_rng([seed, 4])
    first, second = (
        np.clip(np.rint(image + GREY_NOISE * rng.normal(size=image.shape)), 0, 255).astype(np.uint8)
        for image in made.images
    )
    return replace(made, images=(first, second))


def pose_error(pose: Pose | None, truth: Photographs) -> float | None:
    """Return the pose error in degrees, or None if there is no true pose."""
    if pose is None or truth.R is None or truth.t is None:
        return None
    return pose_error_deg(*pose, truth.R, truth.t)


def homography_error(H: Array, truth: Photographs, points1: Array) -> float | None:
    """Return the median distance in pixels between estimated and true positions of points of image 1."""
    if truth.H is None:
        return None
    went, should = (homogeneous(points1) @ each.T for each in (H, truth.H))
    return float(np.median(np.linalg.norm(went[:, :2] / went[:, 2:] - should[:, :2] / should[:, 2:], axis=1)))


def error_of(kind: str, models: dict[str, Any], truth: Photographs, inliers: tuple[Array, Array]) -> float | None:
    """Return the error of an answer in its unit, or None if the scene has nothing of this kind."""
    if kind == "rotation" and truth.R is not None and truth.t is None:
        return rotation_angle_deg(models["R"] @ truth.R.T)
    if kind == "homography":
        return homography_error(models["H"], truth, inliers[0])
    if kind == "fundamental":
        return pose_error(caransac.pose_from_fundamental(models["F"], *inliers, CAMERA, CAMERA), truth)
    return pose_error((models["R"], models["t"]), truth) if kind in ("pose", "pose_and_focals") else None


def assess(kind: str, said: dict[str, Any], error: float | None, truth: Photographs) -> dict[str, Any]:
    """Return the answer, its error, and whether it is right."""
    near = error is not None and error <= LIMITS[kind]
    return {"kind": kind, **said, "error": error, "right": kind == "none" if truth.R is None else near}


def ask_call(truth: Photographs, matches: tuple[Array, Array, Array], known: dict[str, Any]) -> dict[str, Any]:
    """Run the one call on matches."""
    points1, points2, ratios = matches
    result = caransac.estimate(points1, points2, **known, scores=ratios, score_kind="ratio")
    said = {name: getattr(result, name) for name in SAID}
    said["nearest_alternative_deg"] = nearest([pose_error(pose, truth) for pose in result.alternatives])
    models = {name: getattr(result, name) for name in MODELS}
    error = error_of(result.kind, models, truth, (points1[result.inliers], points2[result.inliers]))
    return assess(result.kind, said, error, truth)


def nearest(errors: list[float | None]) -> float | None:
    """Return the smallest of the errors that are not None."""
    return min((error for error in errors if error is not None), default=None)


def ask_command(truth: Photographs, matches: tuple[Array, Array, Array]) -> dict[str, Any]:
    """Run the command on the two images as files. It matches them in the same way."""
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("a.png", "b.png")]
        for path, image in zip(paths, truth.images, strict=True):
            write_image(path, image)
        command = [sys.executable, "-m", "caransac", "pose", *map(str, paths), "--focal", str(CAMERA.fx), "--json"]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode not in (0, 1):  # 1: no answer
        raise RuntimeError(ended.stderr)
    answer = json.loads(ended.stdout)
    kind = answer.get("kind") or ("pose" if answer["success"] else "none")
    models = {name: None if answer.get(name) is None else np.array(answer[name]) for name in MODELS}
    inliers = matches[0][answer["inliers"]], matches[1][answer["inliers"]]
    said = {name: answer.get(name) for name in SAID} | {"nearest_alternative_deg": None}
    assessed = assess(kind, said, error_of(kind, models, truth, inliers), truth)
    doubted = answer["confidence"] is not None and answer["confidence"] <= SURE
    return assessed | {"right": assessed["right"] or (doubted and truth.t is None)}


def measure(make: Callable[[int], Photographs], seed: int) -> dict[str, dict[str, Any]]:
    """Return the answers of all variants for one pair of photographs."""
    truth = noisy(make(seed), seed)
    matches = match_images(*truth.images)
    rows = {told: ask_call(truth, matches, known) for told, known in TOLD.items()}
    return rows | {"the command": ask_command(truth, matches)}


def summarise(said: list[dict[str, Any]]) -> dict[str, Any]:
    """Count the answers, and return the median, minimum and maximum of the figures."""
    row: dict[str, Any] = {"answers": len(said), "right": sum(each["right"] for each in said)}
    for name in COUNTED:
        row[name] = dict(Counter(str(each[name]) for each in said if each[name] or name != "reason").most_common())
    for name in SPREAD:
        known = [each[name] for each in said if each[name] is not None]
        row[name] = [float(np.median(known)), min(known), max(known)] if known else None
    return row


def counted(counts: dict[str, int]) -> str:
    """Format values and their counts."""
    return ", ".join(f"{value} {count}" for value, count in counts.items())


def spread(values: list[float] | None) -> str:
    """Format median and range."""
    return "{:.2f} ({:.2f} to {:.2f})".format(*values) if values else ""


def as_markdown(content: dict[str, Any]) -> str:
    """Format the tables."""
    text = "# Any scene\n\nMedians, in parentheses the smallest and the largest; errors are degrees, of homographies "
    text += "pixels. `caransac-lab study any_scene --help` defines right answers.\n"
    header = ["", "kind", "degeneracy", "confidence", "error", "nearest alternative pose, degrees", "right"]
    for scene, rows in content["scenes"].items():
        lines = [
            [
                in_words(NAME, told),
                counted(row["kind"]),
                counted(row["degeneracy"]),
                *(spread(row[name]) for name in SPREAD),
                f"{row['right']} of {row['answers']}",
            ]
            for told, row in rows.items()
        ]
        text += f"\n## {scene}\n\n{table(header, lines)}\n"
        reasons: Counter[str] = Counter()
        for row in rows.values():
            reasons.update(row["reason"])
        text += "".join(f'- "{reason}" ({count})\n' for reason, count in reasons.most_common())
    return text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--seeds", type=int, default=SEEDS, metavar="N", help="seeds per scene (default: %(default)s)")


def study(arguments: argparse.Namespace) -> Content:
    """Measure all tables."""
    content: Content = {"scenes": {}}
    for scene, make in SCENES.items():
        measured = [measure(make, seed) for seed in range(QUICK_SEEDS if arguments.quick else arguments.seeds)]
        content["scenes"][scene] = {told: summarise([each[told] for each in measured]) for told in measured[0]}
        print(scene, flush=True)
    return content
