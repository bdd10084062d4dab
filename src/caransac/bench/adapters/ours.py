"""CA-RANSAC, its ablations and budgets, and its classical counterpart LM-LO."""

from __future__ import annotations

from functools import partial
from typing import Any

import caransac
from caransac.bench.contract import (
    ADAPTIVE_SUCCESS_PROBABILITY,
    Answer,
    Estimator,
    HomographyEstimator,
    ProblemName,
    RunSettings,
)
from caransac.datasets import Pair
from caransac.geometry import Array
from caransac.learned.match_filter import load_filter
from caransac.learned.weights_file import weights_path
from caransac.options import SAMPLES_PER_ROUND, MaxError, Options, in_rounds
from caransac.synthetic import PlanePair

FILTER, WITH_FILTER = "filter", "with-filter"  # weights in the package: of the match filter, and trained with it


def run(pair: Pair, problem: ProblemName, settings: RunSettings, **given: Any) -> Answer | None:
    """One of our methods through the public call."""
    options = Options(
        **{
            "max_error_px": settings.max_error_px,
            "early_stop": settings.iterations is None,
            "success_probability": ADAPTIVE_SUCCESS_PROBABILITY,
            "seed": settings.seed,
            **in_rounds(settings.iterations or SAMPLES_PER_ROUND * (40 if "method" in given else 4)),
            **given,
        }
    )
    scores: dict[str, Any] = {"scores": pair.scores, "score_kind": pair.score_kind}
    if options.weights == WITH_FILTER:
        scores["features"] = load_filter(FILTER).judge(pair.points1, pair.points2, **scores).as_features
    if problem == "F":
        found = caransac.estimate_fundamental(pair.points1, pair.points2, **scores, options=options)
        if found.F is None:
            return None
        return Answer(
            matrix=found.F,
            iterations=found.num_hypotheses,
            probabilities=found.probabilities,
            confidence=found.confidence,
        )
    posed = caransac.estimate_relative_pose(
        pair.points1, pair.points2, pair.camera1, pair.camera2, **scores, options=options
    )
    if posed.R is None or posed.t is None:
        return None
    return Answer(
        pose=(posed.R, posed.t),
        iterations=posed.num_hypotheses,
        probabilities=posed.probabilities,
        confidence=posed.confidence,
    )


def run_homography(pair: PlanePair, settings: RunSettings, **given: Any) -> Array | None:
    """Our homography through the public call, with the threshold it has by default."""
    options = Options(**{"early_stop": False, "seed": settings.seed, **in_rounds(settings.limits[1]), **given})
    return caransac.estimate_homography(
        pair.points1, pair.points2, scores=pair.scores, score_kind="ratio", options=options
    ).H


def _estimator(
    name: str,
    about: str,
    *,
    filtered: bool = False,
    iterations: int | None = None,
    lacks: str = "",
    max_error_px: MaxError = "auto",
    **given: Any,
) -> Estimator:
    return Estimator(
        name=name,
        about=about,
        module="caransac",
        package="caransac",
        min_version="0.1",
        run=partial(run, **given),
        refines=True,
        filtered=filtered,
        iterations=iterations,
        lacks=lacks,
        max_error_px=max_error_px,
    )


def _with_filter() -> Estimator:
    trained = all(weights_path(name).is_file() for name in (FILTER, WITH_FILTER))
    return _estimator(
        "CA-RANSAC with filter features",
        "the match filter's features and log-odds as side information, all matches with their scores",
        lacks="" if trained else f"needs the weights {WITH_FILTER!r}: caransac train --with-filter",
        weights=WITH_FILTER,
    )


def _batches(rounds: int, samples: int) -> Estimator:
    return _estimator(
        f"CA-RANSAC {rounds}x{samples}",
        f"{rounds} rounds of {samples} hypotheses",
        iterations=rounds * samples,
        rounds=rounds,
        samples_per_round=samples,
    )


def _oversampled(rounds: int, samples: int, oversampling: int, quality: str) -> Estimator:
    learned = quality != "geometric"
    trained = not learned or weights_path(quality).is_file()
    return _estimator(
        f"CA-RANSAC {rounds}x{samples}(x{oversampling}){' learned' if learned else ''}",
        f"the best of every {oversampling} samples, by {'a network' if learned else 'their spread in both images'}",
        iterations=rounds * samples,
        lacks="" if trained else f"needs the weights {quality!r}: caransac train --sample-quality",
        rounds=rounds,
        samples_per_round=samples,
        oversampling=oversampling,
        sample_quality=quality,
    )


def _lm_lo(name: str, iterations: int | None = None) -> Estimator:
    sampling = "uniform sampling" if name.startswith("LM-LO-U") else "PROSAC"
    method = "lm-lo-u" if name.startswith("LM-LO-U") else "lm-lo"
    about = f"LO-RANSAC with LM inside and at the end, {sampling}"
    return _estimator(name, about, filtered=True, iterations=iterations, max_error_px=1.0, method=method)


ESTIMATORS = (
    _estimator("CA-RANSAC", "default weights, rounds of 256 hypotheses, all matches with their scores"),
    _estimator("CA-RANSAC -C", "no state update", state_update=False),
    _estimator("CA-RANSAC -S", "uniform samples of matches with a ratio below 0.8", adaptive_sampling=False),
    _estimator("CA-RANSAC -R", "equal weights in the refinement", adaptive_refinement=False),
    *(_batches(rounds, 256) for rounds in (1, 2, 4, 8)),
    *(_batches(rounds, 128) for rounds in (1, 2, 4, 8, 16)),
    _oversampled(4, 256, 8, "geometric"),
    _oversampled(4, 256, 8, "sample-quality"),
    _with_filter(),
    *(
        _lm_lo(f"{name} {label}".strip(), iterations)
        for name in ("LM-LO", "LM-LO-U")
        for label, iterations in (
            ("", None),
            ("256", 256),
            ("512", 512),
            ("2048", 2048),
            ("10k", 10_240),
            ("100k", 102_400),
        )
    ),
)
HOMOGRAPHY_ESTIMATORS = tuple(
    HomographyEstimator(
        name=name,
        about=about,
        module="caransac",
        package="caransac",
        min_version="0.1",
        run=partial(run_homography, **given),
        max_ratio=None,
    )
    for name, about, given in (
        ("CA-RANSAC", "all matches with their scores", {}),
        ("CA-RANSAC, early stop", "the default options", {"early_stop": True}),
        ("LM-LO", "LO-RANSAC with LM inside and at the end, PROSAC", {"method": "lm-lo"}),
    )
)
