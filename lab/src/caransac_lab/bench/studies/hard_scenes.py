"""Scenes with ambiguous or uncertain poses: how often answers are wrong, and whether their confidence is then low.

    scenes       synthetic pairs of every kind of `caransac_lab.synthetic.hard_scenes`, without wrong matches and with
                 as many wrong as right ones: `caransac.estimate` gets the cameras, the image sizes, or nothing
    unrelated    pairs of images of different places: confidences
    focal        real pairs with focal lengths of twice and half the true value, passed as exact
    calibration  real pairs with true cameras, with focal lengths that are wrong by the stated four per cent, or with
                 only the image sizes: expected calibration error of the confidence. Also long lenses and zooms: both
                 images, or only the second, are cropped to half their size, and only the sizes are given

DIR has scenes in the layout of the RANSAC Tutorial 2020 (docs/formats.md). An answer is wrong if its pose is off by
more than five degrees; a fundamental matrix counts by the pose that it implies with the true cameras. A camera that
only rotated has no translation, so every pose of it is wrong. A pair without an answer counts as wrong, with a
confidence of 0. One thread. With free focal lengths, one model explains nine matches in ten of a repeated facade,
including those of the next window. There is no rival, but the plane and its shifted copy halve the confidence.
All rows are ours; `--only` runs some parts.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, get_args

import numpy as np

import caransac
from caransac import Camera
from caransac.geometry import pose_error_deg
from caransac.results import FundamentalResult, GeometryKind, GeometryResult, RelativePoseResult
from caransac_lab.bench.protocol import pose_of_fundamental
from caransac_lab.bench.publication import Content, data_name, percent, table
from caransac_lab.bench.row_labels import label as in_words
from caransac_lab.datasets import Pair, read_ransac_tutorial
from caransac_lab.metrics import FAILURE_DEG, expected_calibration_error
from caransac_lab.synthetic.hard_scenes import CAMERA, HARD_KINDS, HardPair, make_hard_pair

NAME = "hard_scenes"
PAIRS, QUICK_PAIRS = 200, 5
OUTLIER_RATIOS = (0.0, 0.5)
RIGHT_DEG, WRONG_DEG = 5.0, 90.0  # thresholds of right answers, and the error that is assumed without truth
FACTORS = (2.0, 0.5)
EXIF = 0.04
FEWEST = 50  # minimum number of matches of a crop
SIZES_OF_SCENES = {
    **dict.fromkeys(("entry_p10", "herz_jesus_p25"), (1024, 683)),  # their principal points are not the image centre
    "kitti_1": (1024, 309),
    "kitti_2": (1024, 310),
}
SIZES = {"image_size1": (CAMERA.width, CAMERA.height), "image_size2": (CAMERA.width, CAMERA.height)}
TOLD = {"cameras": "poses", "sizes": "poses, cameras unknown", "nothing": "fundamental matrices"}
GEOMETRIES = get_args(GeometryKind)
DEGENERACIES = ("planar", "rotation", None)


@dataclass(frozen=True)
class Assessed:
    """An answer with its error and its confidence; None if the weights have no confidence."""

    error_deg: float
    confidence: float | None

    @property
    def right(self) -> bool:
        """Whether the answer is right."""
        return self.error_deg <= RIGHT_DEG

    def above(self, limit: float) -> bool:
        """Return True if the confidence is above a limit."""
        return self.confidence is not None and self.confidence > limit


def figures(answers: list[Assessed]) -> dict[str, Any]:
    """Return the counts of a row, and its calibration if there are confidences."""
    wrong, right = ([a for a in answers if a.right == wanted] for wanted in (False, True))
    known = [a for a in answers if a.confidence is not None]
    said, true = [a.confidence for a in known], [a.right for a in known]
    return {
        "pairs": len(answers),
        "without_answer": sum(a.error_deg == FAILURE_DEG for a in answers),
        "wrong": len(wrong),
        "wrong_above_0.9": sum(a.above(0.9) for a in wrong),
        "wrong_above_0.5": sum(a.above(0.5) for a in wrong),
        "right_above_0.9": sum(a.above(0.9) for a in right),
        "mean_confidence": float(np.mean(said)) if known else None,
        "calibration_error": expected_calibration_error(said, true) if known else None,
    }


def assess(found: RelativePoseResult | FundamentalResult, pair: Pair) -> Assessed:
    """Compare an answer with the truth of a pair, whose cameras are the true ones. Without truth, it is wrong."""
    if not found.success:
        return Assessed(FAILURE_DEG, found.confidence)
    if pair.R is None or pair.t is None:
        return Assessed(WRONG_DEG, found.confidence)
    pose = pose_of_fundamental(found.F, pair) if isinstance(found, FundamentalResult) else (found.R, found.t)
    return Assessed(pose_error_deg(*pose, pair.R, pair.t), found.confidence)


def estimate_hard(pair: HardPair, told: str) -> tuple[GeometryResult, RelativePoseResult | FundamentalResult]:
    """Return the answer of the one call, and the pose or (without any information) fundamental matrix behind it."""
    known: dict[str, Any] = {"camera1": pair.camera, "camera2": pair.camera} if told == "cameras" else {}
    known |= SIZES if told == "sizes" else {}
    result = caransac.estimate(pair.points1, pair.points2, **known)
    if not known or isinstance(result.epipolar, RelativePoseResult):
        return result, result.epipolar
    return result, caransac.estimate_relative_pose(pair.points1, pair.points2, **known)


def scenes(num_pairs: int) -> dict[str, Any]:
    """Measure hard scenes: the calibration of each estimate, and the kinds of answers of the one call."""
    rows: dict[str, Any] = {told: {} for told in TOLD}
    for number, kind in enumerate(HARD_KINDS):
        for ratio in OUTLIER_RATIOS:
            seeds = ([number, round(100 * ratio), index] for index in range(num_pairs))
            pairs = [make_hard_pair(kind, np.random.default_rng(seed), ratio) for seed in seeds]
            for told in TOLD:
                found = [estimate_hard(pair, told) for pair in pairs]
                answers = [assess(each, with_truth(pair)) for (_, each), pair in zip(found, pairs, strict=True)]
                said = {
                    "kinds": Counter(result.kind for result, _ in found),
                    "degeneracies": Counter(str(result.degeneracy) for result, _ in found),
                    "told_wrong": sum(is_wrong(result, pair) for (result, _), pair in zip(found, pairs, strict=True)),
                }
                rows[told][f"{kind}, {ratio:.0%} outliers"] = figures(answers) | said
            print(f"{kind}, {ratio:.0%} outliers", flush=True)
    return rows


def is_wrong(result: GeometryResult, pair: HardPair) -> bool:
    """Return True if the one call answers with a wrong pose or fundamental matrix; not for planes and rotations."""
    epipolar = result.kind in ("pose", "pose_and_focals", "fundamental")
    return epipolar and not assess(result.epipolar, with_truth(pair)).right


def with_truth(pair: HardPair) -> Pair:
    """Return a hard pair with its true cameras, for assessing answers."""
    return Pair("", "", pair.points1, pair.points2, None, CAMERA, CAMERA, pair.R, pair.t)


def estimates(pair: Pair, factor: float = 1.0) -> dict[str, RelativePoseResult | FundamentalResult]:
    """Return pose and fundamental matrix of a real pair; the pose with focal lengths wrong by a factor."""
    given = {"scores": pair.scores, "score_kind": pair.score_kind}
    cameras = (camera.adjusted(factor, (0, 0), 0.0) for camera in (pair.camera1, pair.camera2))
    posed = caransac.estimate_relative_pose(pair.points1, pair.points2, *cameras, **given)
    if factor != 1:
        return {"poses": posed}
    found = {"poses": posed}
    for label, told in uncertain(pair).items():
        found[label] = caransac.estimate_relative_pose(pair.points1, pair.points2, **told, **given)
    return found | {"fundamental matrices": caransac.estimate_fundamental(pair.points1, pair.points2, **given)}


def uncertain(pair: Pair) -> dict[str, dict[str, Any]]:
    """Return variants of what is known about the cameras of a pair."""
    sizes = [size_of(pair.scene, camera) for camera in (pair.camera1, pair.camera2)]
    sign = 1 if sum(map(ord, pair.name)) % 2 else -1
    off = [
        Camera("SIMPLE_PINHOLE", (camera.fx * np.exp(sign * EXIF), (w - 1) / 2, (h - 1) / 2), w, h, EXIF)
        for camera, (w, h) in zip((pair.camera1, pair.camera2), sizes, strict=True)
    ]
    return {
        "poses, focal lengths off by 4 %": {"camera1": off[0], "camera2": off[1]},
        "poses, cameras unknown": {"image_size1": sizes[0], "image_size2": sizes[1]},
    }


def size_of(scene: str, camera: Camera) -> tuple[int, int]:
    """Return the image size of a camera."""
    if camera.width:
        return camera.width, camera.height
    known = SIZES_OF_SCENES.get(scene.rpartition("/")[2])
    return known or (round(2 * camera.K[0, 2] + 1), round(2 * camera.K[1, 2] + 1))


def crop(pair: Pair, side1: float, side2: float) -> Pair | None:
    """Crop the images of a pair to a share of their sides. Return None if too few matches remain."""
    points, cameras = [], []
    for pixels, camera, side in ((pair.points1, pair.camera1, side1), (pair.points2, pair.camera2, side2)):
        width, height = size_of(pair.scene, camera)
        size = np.rint(side * np.array([width, height]))
        origin = (np.array([width, height]) - size) / 2
        points.append(pixels - origin)
        moved = camera.adjusted(1.0, (-origin[0], -origin[1]), 0.0)
        cameras.append(replace(moved, width=int(size[0]), height=int(size[1])))
    kept = np.all(
        [((p >= 0) & (p <= (c.width - 1, c.height - 1))).all(axis=1) for p, c in zip(points, cameras, strict=True)],
        axis=0,
    )
    if kept.sum() < FEWEST:
        return None
    return replace(pair, points1=points[0], points2=points[1], camera1=cameras[0], camera2=cameras[1]).take(kept)


def crops(name: str, pairs: list[Pair]) -> dict[str, Any]:
    """Measure long lenses and zooms with only the image sizes."""
    rows = {}
    for label, sides in (("long lenses", (0.5, 0.5)), ("second image zoomed", (1.0, 0.5))):
        cropped = [each for each in (crop(pair, *sides) for pair in pairs) if each is not None]
        told = "poses, cameras unknown"
        answers = [
            assess(
                caransac.estimate_relative_pose(
                    each.points1, each.points2, scores=each.scores, score_kind=each.score_kind, **uncertain(each)[told]
                ),
                each,
            )
            for each in cropped
        ]
        rows[f"{name}, {label}, cameras unknown"] = figures(answers)
    return rows


def read(folder: Path, max_pairs: int | None) -> tuple[str, list[Pair]]:
    """Return name and pairs of a data set."""
    return data_name(folder), list(read_ransac_tutorial(folder, max_pairs=max_pairs))


def real(folders: list[Path], max_pairs: int | None) -> dict[str, Any]:
    """Measure real pairs without changes. Without truth, every answer is wrong."""
    rows = {}
    for name, pairs in (read(folder, max_pairs) for folder in folders):
        found = [estimates(pair) for pair in pairs]
        for problem in found[0]:
            answers = [assess(each[problem], pair) for each, pair in zip(found, pairs, strict=True)]
            rows[f"{name}, {problem}"] = figures(answers)
        if all(pair.R is not None for pair in pairs):
            rows |= crops(name, pairs)
        print(name, flush=True)
    return rows


def focal(folders: list[Path], max_pairs: int | None) -> dict[str, Any]:
    """Measure real pairs with wrong focal lengths."""
    rows = {}
    for (name, pairs), factor in product([read(folder, max_pairs) for folder in folders], FACTORS):
        answers = [assess(estimates(pair, factor)["poses"], pair) for pair in pairs]
        rows[f"{name}, focal length x {factor:g}"] = figures(answers)
        print(f"{name}, focal length x {factor:g}", flush=True)
    return rows


HEADER = (
    "",
    "pairs",
    "no answer, %",
    "wrong, %",
    "wrong above 0.9, % of all",
    "of the wrong",
    "wrong above 0.5, % of all",
    "of the wrong",
    "right above 0.9, % of the right",
    "calibration error",
)


def lines_of(rows: dict[str, Any]) -> list[list[str]]:
    """Format rows of figures."""
    lines = []
    for label, row in rows.items():
        pairs, wrong = row["pairs"], row["wrong"]
        texts = [str(pairs), percent(row["without_answer"], pairs), percent(wrong, pairs)]
        known = row["calibration_error"] is not None
        for limit in ("0.9", "0.5"):
            count = row[f"wrong_above_{limit}"]
            texts += [percent(count, pairs), percent(count, wrong)] if known else ["", ""]
        texts += [percent(row["right_above_0.9"], pairs - wrong), f"{row['calibration_error']:.3f}"] if known else [""]
        lines.append([label, *texts])
    return lines


def confusion(rows: dict[str, Any]) -> str:
    """Format the table of scenes against answers of the one call."""
    header = ["", *GEOMETRIES, "wrong pose or F", *(f"degeneracy {each}" for each in DEGENERACIES)]
    return table(
        header,
        (
            [
                label,
                *(percent(row["kinds"].get(kind, 0), row["pairs"]) for kind in GEOMETRIES),
                percent(row["told_wrong"], row["pairs"]),
                *(percent(row["degeneracies"].get(str(each), 0), row["pairs"]) for each in DEGENERACIES),
            ]
            for label, row in rows.items()
        ),
    )


TITLES = {
    "unrelated": "Unrelated images",
    "focal": "Real pairs, wrong focal lengths",
    "calibration": "Real pairs, calibration of the confidence",
}


def as_markdown(content: dict[str, Any]) -> str:
    """Format the tables."""
    parts = content["parts"]
    text = "# Hard scenes\n\n`caransac-lab study hard_scenes --help` explains the rows.\n"
    for told, rows in parts.get("scenes", {}).items():
        text += f"\n## Synthetic scenes, {TOLD[told]}\n\n{table(HEADER, lines_of(rows))}"
    for told, rows in parts.get("scenes", {}).items():
        text += f"\n## What `caransac.estimate` answers, {in_words('any_scene', told)}; %\n\n{confusion(rows)}"
    for part, title in TITLES.items():
        if part in parts:
            text += f"\n## {title}\n\n{table(HEADER, lines_of(parts[part]))}"
    return text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--val", nargs="+", type=Path, default=[], metavar="DIR", help="real pairs")
    parser.add_argument("--unrelated", nargs="+", type=Path, default=[], metavar="DIR", help="unrelated images")
    parser.add_argument(
        "--pairs",
        type=int,
        default=PAIRS,
        metavar="N",
        help="synthetic pairs per kind (default: %(default)s)",
    )
    parser.add_argument("--max-pairs", type=int, metavar="N", help="real pairs per scene (default: all)")
    parser.add_argument("--only", nargs="+", choices=("scenes", *TITLES), metavar="PART", help="run only these parts")


def study(arguments: argparse.Namespace) -> Content:
    """Measure all tables."""
    max_pairs = QUICK_PAIRS if arguments.quick else arguments.max_pairs
    runs = {
        "scenes": partial(scenes, QUICK_PAIRS if arguments.quick else arguments.pairs),
        "unrelated": partial(real, arguments.unrelated, max_pairs),
        "focal": partial(focal, arguments.val, max_pairs),
        "calibration": partial(real, arguments.val, max_pairs),
    }
    return {"parts": {part: found for part in arguments.only or runs if (found := runs[part]())}}
