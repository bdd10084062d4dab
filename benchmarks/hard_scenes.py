"""Scenes that leave a pose undetermined or doubtful: how often answers are wrong, and whether the confidence knows.

    export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    .venv/bin/python benchmarks/hard_scenes.py --val DIR ... --unrelated DIR ... [--only PART ...] [--out FILE]

    scenes       synthetic pairs of every kind of `caransac.synthetic.hard_scenes`, 200 each, without and with as many
                 wrong matches as right ones: `caransac.estimate` told the cameras, the image sizes, or nothing
    unrelated    pairs of images of different places: confidences
    focal        real pairs told focal lengths of twice and half their size, as if exact
    calibration  real pairs told the truth: expected calibration error of the confidence

DIR holds scenes in the layout of the RANSAC Tutorial 2020 (docs/formats.md). An answer is wrong if its pose is off by
more than five degrees; a fundamental matrix counts by the pose it implies with the true cameras. A camera that only
turned has no translation, so every pose of it is wrong. No answer counts as wrong, with a confidence of 0. One thread.
All rows are ours; `--only` runs some parts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, get_args

import numpy as np
from published import data_name, destination, make_parser, origin, percent, publish, table

import caransac
from caransac.bench.protocol import pose_of_fundamental
from caransac.datasets import Pair, read_ransac_tutorial
from caransac.geometry import pose_error_deg
from caransac.metrics import FAILURE_DEG, expected_calibration_error
from caransac.results import FundamentalResult, GeometryKind, GeometryResult, RelativePoseResult
from caransac.synthetic.hard_scenes import CAMERA, HARD_KINDS, HardPair, make_hard_pair

NAME = "hard_scenes"
PAIRS, QUICK_PAIRS = 200, 5
OUTLIER_RATIOS = (0.0, 0.5)
RIGHT_DEG, WRONG_DEG = 5.0, 90.0  # the latter where there is no truth to be near to
FACTORS = (2.0, 0.5)
SIZES = {"image_size1": (CAMERA.width, CAMERA.height), "image_size2": (CAMERA.width, CAMERA.height)}
TOLD = {"cameras": "poses", "sizes": "poses, cameras unknown", "nothing": "fundamental matrices"}
GEOMETRIES = get_args(GeometryKind)
DEGENERACIES = ("planar", "rotation", None)


@dataclass(frozen=True)
class Assessed:
    """An answer: its error, and what it said of itself; no confidence if the weights cannot tell."""

    error_deg: float
    confidence: float | None

    @property
    def right(self) -> bool:
        """Whether it is."""
        return self.error_deg <= RIGHT_DEG

    def above(self, limit: float) -> bool:
        """Whether it is more confident."""
        return self.confidence is not None and self.confidence > limit


def figures(answers: list[Assessed]) -> dict[str, Any]:
    """Counts of a row; calibration where there are confidences."""
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
    """An answer next to the truth of a pair, whose cameras are the true ones; without a truth, it is wrong."""
    if not found.success:
        return Assessed(FAILURE_DEG, found.confidence)
    if pair.R is None or pair.t is None:
        return Assessed(WRONG_DEG, found.confidence)
    pose = pose_of_fundamental(found.F, pair) if isinstance(found, FundamentalResult) else (found.R, found.t)
    return Assessed(pose_error_deg(*pose, pair.R, pair.t), found.confidence)


def estimate_hard(pair: HardPair, told: str) -> tuple[GeometryResult, RelativePoseResult | FundamentalResult]:
    """What the one call says; and the pose, or the fundamental matrix for those told nothing, that it starts from."""
    known: dict[str, Any] = {"camera1": pair.camera, "camera2": pair.camera} if told == "cameras" else {}
    known |= SIZES if told == "sizes" else {}
    result = caransac.estimate(pair.points1, pair.points2, **known)
    if not known or isinstance(result.epipolar, RelativePoseResult):
        return result, result.epipolar
    return result, caransac.estimate_relative_pose(pair.points1, pair.points2, **known)


def scenes(num_pairs: int) -> dict[str, Any]:
    """Hard scenes: what each of the estimates knows of itself, and the kinds that the one call tells."""
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
    """Whether the one call tells a pose or a fundamental matrix that is wrong; planes and rotations are none."""
    epipolar = result.kind in ("pose", "pose_and_focals", "fundamental")
    return epipolar and not assess(result.epipolar, with_truth(pair)).right


def with_truth(pair: HardPair) -> Pair:
    """A hard pair with its true cameras, to assess answers by."""
    return Pair("", "", pair.points1, pair.points2, None, CAMERA, CAMERA, pair.R, pair.t)


def estimates(pair: Pair, factor: float = 1.0) -> dict[str, RelativePoseResult | FundamentalResult]:
    """Pose and fundamental matrix of a real pair; the pose with focal lengths off by a factor."""
    given = {"scores": pair.scores, "score_kind": pair.score_kind}
    cameras = (camera.adjusted(factor, (0, 0), 0.0) for camera in (pair.camera1, pair.camera2))
    posed = caransac.estimate_relative_pose(pair.points1, pair.points2, *cameras, **given)
    if factor != 1:
        return {"poses": posed}
    return {"poses": posed, "fundamental matrices": caransac.estimate_fundamental(pair.points1, pair.points2, **given)}


def read(folder: Path, max_pairs: int | None) -> tuple[str, list[Pair]]:
    """Name and pairs of a data set."""
    return data_name(folder), list(read_ransac_tutorial(folder, max_pairs=max_pairs))


def real(folders: list[Path], max_pairs: int | None) -> dict[str, Any]:
    """Real pairs as they are; of those without a truth, every answer is wrong."""
    rows = {}
    for name, pairs in (read(folder, max_pairs) for folder in folders):
        found = [estimates(pair) for pair in pairs]
        for problem in found[0]:
            answers = [assess(each[problem], pair) for each, pair in zip(found, pairs, strict=True)]
            rows[f"{name}, {problem}"] = figures(answers)
        print(name, flush=True)
    return rows


def focal(folders: list[Path], max_pairs: int | None) -> dict[str, Any]:
    """Real pairs with focal lengths that are wrong."""
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
    """Rows of figures for readers."""
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
    """Scene against what the one call said."""
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
    """The tables for readers."""
    parts = content["parts"]
    text = "# Hard scenes\n\n`benchmarks/hard_scenes.py` says what the rows mean.\n"
    for told, rows in parts.get("scenes", {}).items():
        text += f"\n## Synthetic scenes, {TOLD[told]}\n\n{table(HEADER, lines_of(rows))}"
    for told, rows in parts.get("scenes", {}).items():
        text += f"\n## What `caransac.estimate` says, told {told}; %\n\n{confusion(rows)}"
    for part, title in TITLES.items():
        if part in parts:
            text += f"\n## {title}\n\n{table(HEADER, lines_of(parts[part]))}"
    return text


def main() -> None:
    """Measure, print, and write the tables."""
    parser = make_parser(__doc__, NAME)
    parser.add_argument("--val", nargs="+", type=Path, default=[], metavar="DIR", help="real pairs")
    parser.add_argument("--unrelated", nargs="+", type=Path, default=[], metavar="DIR", help="unrelated images")
    parser.add_argument("--only", nargs="+", choices=("scenes", *TITLES), metavar="PART", help="some parts")
    arguments = parser.parse_args()
    made, max_pairs = origin(), QUICK_PAIRS if arguments.quick else None
    runs = {
        "scenes": partial(scenes, max_pairs or PAIRS),
        "unrelated": partial(real, arguments.unrelated, max_pairs),
        "focal": partial(focal, arguments.val, max_pairs),
        "calibration": partial(real, arguments.val, max_pairs),
    }
    parts = {part: found for part in arguments.only or runs if (found := runs[part]())}
    publish(destination(arguments, NAME), {"made": made, "parts": parts}, as_markdown)


if __name__ == "__main__":
    main()
