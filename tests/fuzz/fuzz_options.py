"""Arbitrary options, and a small estimate with those that are accepted."""

import dataclasses

import harness
import numpy as np

with harness.instrument():
    from caransac import Camera, Options, estimate, estimate_fundamental, estimate_homography, estimate_relative_pose

NAMES = tuple(field.name for field in dataclasses.fields(Options))
WORDS = (
    "auto",
    "ca-ransac",
    "lm-lo",
    "lm-lo-u",
    "default",
    "geometric",
    "learned",
    "",
    ".",
    "/",
    "ratio",
    "confidence",
)
CAMERA = Camera("SIMPLE_PINHOLE", (800.0, 320.0, 240.0), 640, 480)
CALLS = (
    estimate_fundamental,
    estimate_homography,
    estimate,
    lambda *points, **given: estimate_relative_pose(*points, CAMERA, CAMERA, **given),
    lambda *points, **given: estimate_relative_pose(*points, *[Camera.of_unknown_focal(640, 480)] * 2, **given),
)


def one_input(data: bytes) -> None:
    decisions = harness.Decisions(data)
    values = (
        decisions.real,
        decisions.text,
        lambda: decisions.choose(WORDS),
        lambda: decisions.number(256),
        lambda: bool(decisions.number(2)),
        lambda: np.int8(decisions.number(100)),
        lambda: np.float32(decisions.number(100) / 8),
        lambda: None,
        decisions.array,
    )
    given = {decisions.choose(NAMES): decisions.choose(values)() for _ in range(decisions.number(5))}
    harness.refusing(lambda: _run(decisions, given))


def _run(decisions: harness.Decisions, given: dict) -> None:
    options = Options(**given)
    cheap = min(options.rounds, 2), min(options.samples_per_round, 32)
    options = dataclasses.replace(options, rounds=cheap[0], samples_per_round=cheap[1])
    count = decisions.choose(harness.LENGTHS)
    points = decisions.sensible_array(count, 2), decisions.sensible_array(count, 2)
    extra = {}
    if decisions.number(2):
        kind = decisions.choose(("ratio", "confidence", "", None))
        extra = {"scores": decisions.sensible_array(count), "score_kind": kind}
    result = decisions.choose(CALLS)(*points, options=options, **extra)
    assert result.inliers.shape == (count,)
    assert result.num_inliers == result.inliers.sum()
    assert result.confidence is None or 0 <= result.confidence <= 1


if __name__ == "__main__":
    harness.fuzz(one_input)
