"""Absolute poses from 2D-3D matches of real pairs: accuracy, time, and calibration of the confidence.

DIR has scenes in the layout of the RANSAC Tutorial 2020 (docs/formats.md). A query image is matched with one or three
other images. A keypoint of these images has a 3D point if another pair, without the query, triangulates it with the
true poses, within 1 px of the epipolar geometry and with rays more than 1.5 degrees apart. Wrong matches are those of
the matcher. The error is the larger of the rotation error and the position error, which is the angle of the
displacement seen from the median depth.

    tables       ours and the peers. "focal 5 %" rows get a focal length with this error, "k1 -0.05" rows get pixels
                 through a lens with that k1; "stated" rows also get a deviation of 0.05. Peers get the matches with a
                 ratio below 0.9, best first, a threshold of 2 px and 1024 hypotheses. caransac gets all matches and
                 finds its threshold. A query without an answer has an error of 180 degrees. Figures are means over
                 scenes, and for our methods also over seeds
    calibration  mean confidence and share of right answers (five degrees), and their expected calibration error; the
                 same for the probabilities of the matches (right within 2 px)
    hard         the queries with their right matches moved onto a plane, or far away; with only 6 to 30 matches; with
                 focal lengths passed as exact but wrong by 15 to 100 %; and matches of unrelated images
    covariance   share of the right answers inside the ellipsoids of their covariances

All measurements use one thread.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np

import caransac
from caransac import AbsolutePoseResult, Camera, Options
from caransac.geometry import Array, vector_from_rotation
from caransac_lab.bench.adapters.absolute_poses import PEERS
from caransac_lab.bench.publication import Content, LeftOutError, data_name, percent, table
from caransac_lab.bench.row_labels import label as in_words
from caransac_lab.datasets import Query, read_queries, read_ransac_tutorial
from caransac_lab.metrics import FAILURE_DEG, auc, expected_calibration_error
from caransac_lab.training.hard_queries import HardQuery, harden, in_space

NAME = "absolute"
REFERENCES, FOCAL_OFF, K1, HYPOTHESES = (1, 3), 0.05, -0.05, 1024
RIGHT_DEG, WRONG_DEG = 5.0, 90.0  # thresholds of right answers, and the error that is assumed without truth
# Quantiles by degrees of freedom.
CHI_SQ = {6: {50: 5.348, 68: 6.987, 95: 12.592}, 7: {50: 6.346, 68: 8.121, 95: 14.067}}
CALIBRATED = ("CA-RANSAC", "CA-RANSAC, focal 5 % stated", "CA-RANSAC, unknown")
COVERED = CALIBRATED[:2]


@dataclass(frozen=True, eq=False)
class Answer:
    """Answer of a method for a query: error and time, and for ours the complete result."""

    query: Query
    error_deg: float
    seconds: float
    result: AbsolutePoseResult | None = None

    @property
    def is_right(self) -> bool:
        """Whether the answer is right."""
        return self.error_deg < RIGHT_DEG

    @property
    def confidence(self) -> float:
        """Confidence of the answer; 0 if there is none."""
        return 0.0 if self.result is None or self.result.confidence is None else self.result.confidence


Run = Callable[[Query, int], Answer]


def sized(query: Query, factor: float = 1.0, deviation: float = 0.0, lens: float = 0.0) -> Camera:
    """Return the camera of a query with its size from the principal point, and errors as requested."""
    K = query.camera.K
    width, height = (round(2 * c + 1) for c in K[:2, 2])
    K[[0, 1], [0, 1]] *= factor
    return Camera.from_matrix(K, width=width, height=height, focal_deviation=deviation, distortion_deviation=lens)


def off_by(query: Query) -> float:
    """Return the factor of a wrong focal length; the image name decides its direction."""
    return float(np.exp(FOCAL_OFF * (1 if sum(map(ord, query.name)) % 2 else -1)))


def bent(query: Query) -> Query:
    """Return the query as seen through a lens."""
    lens = Camera("OPENCV", (*query.camera.intrinsics, K1, 0.0, 0.0, 0.0))
    return replace(query, points2d=lens.rays_to_pixels(query.camera.pixels_to_rays(query.points2d)))


def judge(query: Query, R: Array | None, t: Array | None) -> float:
    """Return the error of a pose. Without truth, every pose is wrong."""
    if R is None or t is None:
        return FAILURE_DEG
    if query.R is None:
        return WRONG_DEG
    error = query.error_deg(R, t)
    return error if np.isfinite(error) else FAILURE_DEG


def estimate(query: Query, seed: int, camera: Camera | None = None, **options: Any) -> Answer:
    """Run our estimator, by default with the camera of the query."""
    kind = None if query.scores is None else query.score_kind
    known, chosen = camera or query.camera, Options(seed=seed, **({"early_stop": False} | options))
    started = time.process_time()
    found = caransac.estimate_absolute_pose(
        query.points2d, query.points3d, known, scores=query.scores, score_kind=kind, options=chosen
    )
    seconds = time.process_time() - started
    return Answer(query, judge(query, found.R, found.t), seconds, found)


def by_peer(name: str, query: Query, seed: int) -> Answer:
    """Run a peer."""
    started = time.process_time()
    pose = PEERS[name](query, HYPOTHESES, seed)
    seconds = time.process_time() - started
    return Answer(query, judge(query, *(pose or (None, None))), seconds)


def rows() -> dict[str, Run]:
    """Return all rows of the tables."""
    unknown = Camera.of_unknown_focal

    def size(query: Query) -> tuple[int, int]:
        camera = sized(query)
        return camera.width, camera.height

    return {
        "CA-RANSAC": estimate,
        "CA-RANSAC, early stop": partial(estimate, early_stop=True),
        "LM-LO": partial(estimate, method="lm-lo"),
        **{name: partial(by_peer, name) for name in PEERS},
        "CA-RANSAC, focal 5 % stated": lambda q, s: estimate(q, s, sized(q, off_by(q), FOCAL_OFF)),
        "CA-RANSAC, focal 5 % as if exact": lambda q, s: estimate(q, s, sized(q, off_by(q))),
        "PoseLib, focal 5 %": lambda q, s: by_peer("PoseLib", replace(q, camera=sized(q, off_by(q))), s),
        "CA-RANSAC, unknown": lambda q, s: estimate(q, s, unknown(*size(q))),
        "CA-RANSAC, k1 -0.05 stated": lambda q, s: estimate(bent(q), s, sized(q, lens=abs(K1))),
        "CA-RANSAC, k1 -0.05 as if none": lambda q, s: estimate(bent(q), s, sized(q)),
    }


def figures(answers: list[Answer], seeds: int) -> dict[str, Any]:
    """Return the figures of a row from its answers, ordered by seed."""
    errors = defaultdict[str, list[float]](list)
    for answer in answers:
        errors[answer.query.scene].append(answer.error_deg)
    told = answers[0].result is not None and answers[0].result.confidence is not None
    said, right = [each.confidence for each in answers], [each.is_right for each in answers]
    return {
        "AUC5": float(np.mean([auc(each, 5.0) for each in errors.values()])),
        "AUC1": float(np.mean([auc(each, 1.0) for each in errors.values()])),
        "no_answer": sum(each.error_deg == FAILURE_DEG for each in answers) / seeds,
        "ms": 1e3 * float(np.median([each.seconds for each in answers])),
        "calibration_error": expected_calibration_error(said, right) if told else None,
    }


def calibration(answers: list[Answer]) -> dict[str, Any]:
    """Compare confidences, and probabilities of matches, with the truth."""
    said, right = [each.confidence for each in answers], [each.is_right for each in answers]
    probabilities, labels = [], []
    for each in answers:
        if each.result is not None and each.result.probabilities is not None:
            probabilities.append(each.result.probabilities)
            labels.append(each.query.right_matches() > 0)
    of_matches, of_labels = np.concatenate(probabilities), np.concatenate(labels)
    return {
        "answers": len(answers),
        "mean_confidence": float(np.mean(said)),
        "share_right": float(np.mean(right)),
        "calibration_error": expected_calibration_error(said, right),
        "right_above_0.9": sum(each.is_right and each.confidence > 0.9 for each in answers),
        "wrong_above_0.9": sum(not each.is_right and each.confidence > 0.9 for each in answers),
        "matches": len(of_matches),
        "calibration_error_of_matches": expected_calibration_error(of_matches, of_labels),
    }


def hard_figures(answers: list[Answer]) -> dict[str, Any]:
    """Count the answers for a kind of hard queries."""
    wrong, right = ([each for each in answers if each.is_right == wanted] for wanted in (False, True))
    return {
        "queries": len(answers),
        "without_answer": sum(each.error_deg == FAILURE_DEG for each in answers),
        "wrong": len(wrong),
        "wrong_above_0.9": sum(each.confidence > 0.9 for each in wrong),
        "wrong_above_0.5": sum(each.confidence > 0.5 for each in wrong),
        "right_above_0.9": sum(each.confidence > 0.9 for each in right),
    }


def coverage(answers: list[Answer]) -> dict[str, Any]:
    """Return the share of right answers inside the ellipsoids of their covariances, including focal lengths."""
    distances_sq, shares = [], {}
    for each in answers:
        result, query = each.result, each.query
        if not each.is_right or result is None or result.R is None or query.R is None or result.camera is None:
            continue
        assert result.t is not None and result.covariance is not None and query.t is not None
        off = [*vector_from_rotation(query.R @ result.R.T), *(query.t - result.t)]
        off += [np.log(query.camera.mean_focal / result.camera.mean_focal)] * (len(result.covariance) == 7)
        distances_sq.append(float(np.array(off) @ np.linalg.pinv(result.covariance, hermitian=True) @ np.array(off)))
        shares = CHI_SQ[len(off)]
    within = {str(share): sum(each <= limit for each in distances_sq) for share, limit in shares.items()}
    return {"answers": len(distances_sq), "within": within}


def measure(queries: list[Query], seeds: int) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return the rows of one table, of the calibration and of the covariance."""
    found, calibrations, coverages = {}, {}, {}
    for label, run in rows().items():
        number = seeds if label in ("CA-RANSAC", "CA-RANSAC, early stop", "LM-LO") else 1
        answers = [run(query, seed) for seed in range(number) for query in queries]
        found[label] = figures(answers, number)
        first = answers[: len(queries)]
        if label in CALIBRATED:
            calibrations[label] = calibration(first)
        if label in COVERED:
            coverages[label] = coverage(first)
    return found, calibrations, coverages


def measure_hard(queries: list[Query], unrelated: list[Query]) -> dict[str, Any]:
    """Return the rows of hard queries."""
    found = {}
    for number, kind in enumerate(get_args(HardQuery)):
        rng = np.random.default_rng(number)
        found[kind] = hard_figures([estimate(harden(query, kind, rng), 0, early_stop=True) for query in queries])
    if unrelated:
        found["unrelated"] = hard_figures([estimate(query, 0, early_stop=True) for query in unrelated])
    return found


def as_markdown(content: dict[str, Any]) -> str:
    """Format the tables."""
    text = "# Absolute poses\n\n`caransac-lab study absolute --help` explains the rows.\n"
    for name, found in content["tables"].items():
        lines = [
            [
                in_words(NAME, label),
                *(f"{row[figure]:.1f}" for figure in ("AUC5", "AUC1")),
                f"{row['no_answer']:.3g}",
                f"{row['ms']:.1f}",
                "" if row["calibration_error"] is None else f"{row['calibration_error']:.3f}",
            ]
            for label, row in found["rows"].items()
        ]
        header = ["", "AUC@5", "AUC@1", "no answer", "ms", "calibration error"]
        text += f"\n## {name}, {found['queries']} queries\n\n{table(header, lines)}"
    lines = [
        [
            f"{name}: {in_words(NAME, label)}",
            str(row["answers"]),
            f"{row['mean_confidence']:.3f}",
            f"{row['share_right']:.3f}",
            f"{row['calibration_error']:.3f}",
            *(percent(row[key], row["answers"]) for key in ("right_above_0.9", "wrong_above_0.9")),
            f"{row['calibration_error_of_matches']:.3f}",
        ]
        for name, labels in content["calibration"].items()
        for label, row in labels.items()
    ]
    header = ["", "answers", "mean confidence", "share right", "calibration error"]
    header += ["right above 0.9, %", "wrong above 0.9, %", "calibration error of the matches"]
    text += f"\n## Calibration\n\n{table(header, lines)}"
    lines = [
        [
            f"{name}: {in_words(NAME, kind)}",
            str(row["queries"]),
            *(
                percent(row[key], row["queries"])
                for key in ("without_answer", "wrong", "wrong_above_0.9", "wrong_above_0.5")
            ),
            percent(row["right_above_0.9"], row["queries"] - row["wrong"]),
        ]
        for name, kinds in content["hard"].items()
        for kind, row in kinds.items()
    ]
    header = ["", "queries", "no answer, %", "wrong, %", "wrong above 0.9, % of all", "wrong above 0.5, % of all"]
    text += f"\n## Hard queries\n\n{table([*header, 'right above 0.9, % of the right'], lines)}"
    shares = ("50", "68", "95")
    lines = [
        [
            f"{name}: {in_words(NAME, label)}",
            str(row["answers"]),
            *(percent(row["within"].get(s, 0), row["answers"]) for s in shares),
        ]
        for name, labels in content["covariance"].items()
        for label, row in labels.items()
    ]
    header = ["", "right answers", *(f"in the {share} % ellipsoid, %" for share in shares)]
    return text + f"\n## Covariance\n\n{table(header, lines)}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR")

    parser.add_argument(
        "--unrelated", nargs="+", type=Path, default=[], metavar="DIR", help="pairs of unrelated images"
    )
    parser.add_argument(
        "--max-queries", type=int, default=30, metavar="N", help="queries per scene (default: %(default)s)"
    )
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="seeds of our methods (default: %(default)s)")


def study(arguments: argparse.Namespace) -> Content:
    """Measure all tables."""
    most, seeds = (1, 1) if arguments.quick else (arguments.max_queries, arguments.seeds)
    content: Content = {"tables": {}, "calibration": {}, "hard": {}, "covariance": {}}
    rng = np.random.default_rng(0)
    pairs = [pair for folder in arguments.unrelated for pair in read_ransac_tutorial(folder)]
    unrelated = [in_space(pair, rng) for pair in pairs[: 5 if arguments.quick else None]]
    for folder in arguments.folders:
        for references in REFERENCES:
            queries = read_queries(folder, references=references, max_queries=most)
            if not queries:
                continue
            name = f"{data_name(folder)}, {references} reference{'s' * (references > 1)}"
            found, content["calibration"][name], content["covariance"][name] = measure(queries, seeds)
            content["tables"][name] = {"queries": len(queries), "rows": found}
            if references == 1:
                content["hard"][name] = measure_hard(queries, unrelated)
                unrelated = []  # unrelated images are used only once
            print(name, flush=True)
    if not content["tables"]:
        raise LeftOutError("no image shares enough points with others")
    return content
