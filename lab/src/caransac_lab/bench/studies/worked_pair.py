"""One estimate from start to end: the trace for a synthetic pair, in numbers.

All four rounds run; by default the estimate stops when it is confident. docs/algorithm.md explains the rows.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import caransac
from caransac.geometry import pose_error_deg
from caransac.results import RelativePoseResult, Round
from caransac.synthetic import SyntheticPair
from caransac_lab.bench.publication import Content, table
from caransac_lab.synthetic import random_pair

NAME = "worked_pair"
ROWS = {
    "matches drawn": "different matches in the samples",
    "right among them": "of these, right ones, %",
    "clean samples": "samples without a wrong match",
    "hypotheses": "hypotheses so far",
    "consensus": "consensus of the models attended to",
    "noise": "noise of the best one, px",
    "threshold": "threshold of the scores, px",
    "likely": "matches with a probability above 0.5",
    "right among likely": "of these, right ones, %",
    "found": "of the right ones, found, %",
    "error": "error of the best model, °",
}


def make_worked_pair() -> SyntheticPair:
    """Create a pair with one right match in seven and several kinds of wrong matches."""
    return random_pair(np.random.default_rng(0), num_points=1500, inlier_ratio=0.15, score_kind="ratio")


def estimate(pair: SyntheticPair) -> RelativePoseResult:
    """Estimate the pair, with the trace of every round."""
    return caransac.estimate_relative_pose(
        pair.points1,
        pair.points2,
        pair.camera1,
        pair.camera2,
        scores=pair.scores,
        score_kind=pair.score_kind,
        options=caransac.Options(keep_trace=True, early_stop=False),
    )


def describe_round(step: Round, pair: SyntheticPair) -> dict[str, Any]:
    """Describe the input and the result of a round, compared with the truth."""
    likely = step.probabilities > 0.5
    row: dict[str, Any] = {
        "likely": int(likely.sum()),
        "right among likely": 100 * float(pair.inliers[likely].mean()) if likely.any() else None,
        "found": 100 * float(likely[pair.inliers].mean()),
    }
    if step.best is None:
        return row
    drawn = np.unique(step.samples)
    return row | {
        "matches drawn": len(drawn),
        "right among them": 100 * float(pair.inliers[drawn].mean()),
        "clean samples": f"{int(pair.inliers[step.samples].all(axis=1).sum())} of {len(step.samples)}",
        "hypotheses": step.num_hypotheses,
        "consensus": ", ".join(f"{scores.sum():.0f}" for scores in step.msac_scores),
        "noise": step.noise,
        "threshold": step.max_error,
        "error": pose_error_deg(step.best[:, :3], step.best[:, 3], pair.R, pair.t),
    }


def describe(pair: SyntheticPair, result: RelativePoseResult) -> dict[str, Any]:
    """Describe the whole result."""
    assert result.trace is not None and result.R is not None and result.t is not None
    return {
        "matches": len(pair.points1),
        "right": int(pair.inliers.sum()),
        "rounds": [describe_round(step, pair) for step in result.trace],
        "answer": {
            "inliers": result.num_inliers,
            "right inliers": int((result.inliers & pair.inliers).sum()),
            "error_deg": pose_error_deg(result.R, result.t, pair.R, pair.t),
            "confidence": result.confidence,
            "max_error_px": result.max_error_px,
            "noise_px": result.noise_px,
            "degeneracy": result.degeneracy,
        },
    }


def as_markdown(content: dict[str, Any]) -> str:
    """Format the table."""
    return f"# One answer from start to end\n\n{worked_table(content)}\n{worked_answer(content)}\n"


def worked_table(content: dict[str, Any]) -> str:
    """Format the rounds side by side."""
    rounds = content["rounds"]
    header = ["", "before any model", *(f"round {number}" for number in range(1, len(rounds)))]
    return table(header, ([label, *(_text(step.get(name)) for step in rounds)] for name, label in ROWS.items()))


def worked_answer(content: dict[str, Any]) -> str:
    """Describe the answer in a sentence."""
    answer = content["answer"]
    return (
        f"The answer of {content['matches']} matches, {content['right']} of them right: {answer['inliers']} inliers "
        f"within {answer['max_error_px']:.2f} px, {answer['right inliers']} of them right; a pose error of "
        f"{answer['error_deg']:.3f}°; a confidence of {answer['confidence']:.2f}; degeneracy: {answer['degeneracy']}."
    )


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def study(_: argparse.Namespace) -> Content:
    """Estimate the pair."""
    pair = make_worked_pair()
    return describe(pair, estimate(pair))
