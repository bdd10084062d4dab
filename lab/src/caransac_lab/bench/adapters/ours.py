"""CA-RANSAC and the preset of the paper, with ablations and budgets; LM-LO; filters without sampling."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import caransac
from caransac._support.arrays import take_usable
from caransac.geometry import Array
from caransac.learned.state_network import load_network
from caransac.learned.weights_file import weights_path
from caransac.options import SAMPLES_PER_ROUND, MaxError, Options, in_rounds
from caransac.robust.problems import Essential
from caransac.robust.records import MatchInfo
from caransac.synthetic import PlanePair
from caransac_lab.bench.contract import (
    ADAPTIVE_SUCCESS_PROBABILITY,
    Answer,
    Estimator,
    HomographyEstimator,
    ProblemName,
    RunSettings,
)
from caransac_lab.bench.paper import PRESET
from caransac_lab.datasets import Pair
from caransac_lab.networks.eight_point import eight_point
from caransac_lab.networks.match_filter import load_filter
from caransac_lab.networks.oversampling import estimate_fundamental, estimate_pose, oversample
from caransac_lab.networks.weights import find_weights

EIGHT_POINT, MIN_LINEAR = "eight-point", 8

# Weights of a filter, by the weights of the state network that was trained with it.
FILTERS = {"with-filter": "filter", "paper-with-filter": "filter-128"}
PAPER_WEIGHTS: dict[ProblemName, str] = {"E": "paper", "F": "paper-f"}  # by the problem that they were trained for


def run(
    pair: Pair,
    problem: ProblemName,
    settings: RunSettings,
    *,
    preset: Callable[..., Options] = Options,
    oversampled: tuple[int, str] | None = None,
    **given: Any,
) -> Answer | None:
    """Run one of our methods through the public call. `oversampled` are the arguments of `oversample`."""
    options = preset(
        **{
            "max_error_px": settings.max_error_px,
            "early_stop": settings.iterations is None,
            "success_probability": ADAPTIVE_SUCCESS_PROBABILITY,
            "seed": settings.seed,
            **in_rounds(settings.iterations or SAMPLES_PER_ROUND * (40 if "method" in given else 4)),
            **given,
        }
    )
    if oversampled is not None:
        return run_oversampled(pair, problem, options, *oversampled)
    scores: dict[str, Any] = {"scores": pair.scores, "score_kind": pair.score_kind}
    if (name := Path(options.weights).stem) in FILTERS:
        judgement = load_filter(FILTERS[name]).judge(pair.points1, pair.points2, **scores)
        lifted = load_network(options.weights).layout.lifted
        scores["features"] = (
            judgement.as_paper_features(pair.points1, pair.points2) if lifted else judgement.as_features
        )
    elif pair.features is not None and reads_features(options):
        scores["features"] = pair.features
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


def run_oversampled(
    pair: Pair, problem: ProblemName, options: Options, oversampling: int, quality: str
) -> Answer | None:
    """Run one of our methods that solves only the most promising samples."""
    draw, info = oversample(oversampling, quality), MatchInfo(pair.scores, pair.score_kind)
    matrix: Array | None = None
    pose: tuple[Array, Array] | None = None
    if problem == "F":
        matrix, fields = estimate_fundamental(pair.points1, pair.points2, info, options, draw)
    else:
        pose, fields = estimate_pose(pair.points1, pair.points2, pair.camera1, pair.camera2, info, options, draw)
    if matrix is None and pose is None:
        return None
    return Answer(
        matrix=matrix,
        pose=pose,
        iterations=fields["num_hypotheses"],
        probabilities=fields["probabilities"],
        confidence=fields["confidence"],
    )


def reads_features(options: Options) -> bool:
    """Return True if the weights of the options read features of the data."""
    if options.method != "ca-ransac":
        return False
    network = load_network(options.weights)
    return network.num_features > network.layout.num_inputs()


def run_paper(pair: Pair, problem: ProblemName, settings: RunSettings, **given: Any) -> Answer | None:
    """Run the preset of the paper, with the weights of the problem unless others are given."""
    weights = {"weights": settings.weights or PAPER_WEIGHTS[problem]}
    return run(pair, problem, settings, preset=Options.paper, **{**weights, **given})


def run_eight_point(
    pair: Pair,
    problem: ProblemName,
    settings: RunSettings,  # noqa: ARG001  # the signature of all runs: there is nothing to set here
) -> Answer | None:
    """Fit the weighted eight-point model to the matches of a filter with its probabilities, without sampling."""
    if len(pair.points1) < MIN_LINEAR:
        return None
    weights = np.ones(len(pair.points1))
    if pair.scores is not None and pair.score_kind == "confidence":
        weights = np.maximum(pair.scores, 0.0)
    if problem == "F":
        return Answer(matrix=eight_point(pair.points1, pair.points2, weights))
    rays = Essential.from_pixels(pair.points1, pair.points2, pair.camera1, pair.camera2)
    return Answer(matrix=eight_point(rays.points1, rays.points2, take_usable(weights, rays.usable)))


def run_homography(pair: PlanePair, settings: RunSettings, **given: Any) -> Array | None:
    """Estimate a homography through the public call, with its default threshold."""
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
    wants_weights: bool = False,
    problems: tuple[ProblemName, ...] = ("E", "F"),
    call: Callable[..., Answer | None] = run,
    **given: Any,
) -> Estimator:
    return Estimator(
        name=name,
        about=about,
        module="caransac",
        package="caransac",
        min_version="0.1",
        problems=problems,
        wants_weights=wants_weights,
        run=partial(call, **given),
        refines=True,
        filtered=filtered,
        iterations=iterations,
        lacks=lacks,
        max_error_px=max_error_px,
    )


def _lacks(*weights: str, remedy: str) -> str:
    """Return the reason why a method with weights from the package cannot run; empty if there is none."""
    missing = [name for name in weights if not weights_path(find_weights(name)).is_file()]
    return f"needs the weights {missing[0]!r}: caransac-lab train {remedy}" if missing else ""


def _with_filter() -> Estimator:
    return _estimator(
        "CA-RANSAC with filter features",
        "the match filter's features and log-odds as side information, all matches with their scores",
        lacks=_lacks("filter", "with-filter", remedy="--with-filter"),
        weights=find_weights("with-filter"),
    )


def _paper(name: str, about: str, **given: Any) -> Estimator:
    return _estimator(f"{PRESET}{name}", about, max_error_px=1.0, call=run_paper, **given)


def _paper_rows() -> list[Estimator]:
    """Return the preset of the paper, its ablations, generalisations, side information and numbers of iterations."""
    fine_tuned = _lacks("paper", "paper-f", remedy="--paper --fundamental-share 1 --start paper")
    return [
        _paper("", "Options.paper, for F by weights fine-tuned for it", lacks=fine_tuned),
        _paper(
            " -C",
            "no state update, with weights that were trained without it",
            lacks=_lacks("paper-c", remedy="--paper --no-update"),
            weights="paper-c",
            state_update=False,
        ),
        _paper(" -S", "uniform samples of matches with a ratio below 0.8", adaptive_sampling=False),
        _paper(" -R", "equal weights in the refinement", adaptive_refinement=False),
        _paper(" (PT)", "by weights that were trained on other data", problems=("E",), weights="paper"),
        _paper(" (E)", "F by weights that were trained for E", problems=("F",), weights="paper"),
        _paper(" tuned", "by weights trained on data like these, and the features of the data", wants_weights=True),
        _paper(
            " with filter features",
            "a filter's 128 features and the residuals of its model as side information",
            lacks=_lacks("filter-128", "paper-with-filter", remedy="--paper --with-filter"),
            weights=find_weights("paper-with-filter"),
        ),
        *_batches(_paper, " "),
        _paper(
            " 4x256(x8)",
            "the best of every 8 samples, by a network",
            iterations=1024,
            lacks=_lacks("sample-quality", remedy="--sample-quality"),
            oversampled=(8, "sample-quality"),
        ),
    ]


def _batches(make: Callable[..., Estimator], name: str) -> list[Estimator]:
    """Return estimators with several rounds and numbers of hypotheses per round, which are in their names."""
    return [
        make(
            f"{name}{rounds}x{samples}",
            f"{rounds} {'round' if rounds == 1 else 'rounds'} of {samples} hypotheses",
            iterations=rounds * samples,
            rounds=rounds,
            samples_per_round=samples,
        )
        for samples, counts in ((256, (1, 2, 4, 8)), (128, (1, 2, 4, 8, 16)))
        for rounds in counts
    ]


def _oversampled(rounds: int, samples: int, oversampling: int, quality: str) -> Estimator:
    learned = quality != "geometric"
    return _estimator(
        f"CA-RANSAC {rounds}x{samples}(x{oversampling}){' learned' if learned else ''}",
        f"the best of every {oversampling} samples, by {'a network' if learned else 'their spread in both images'}",
        iterations=rounds * samples,
        lacks=_lacks(quality, remedy="--sample-quality") if learned else "",
        rounds=rounds,
        samples_per_round=samples,
        oversampled=(oversampling, quality),
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
    *_batches(_estimator, "CA-RANSAC "),
    _oversampled(4, 256, 8, "geometric"),
    _oversampled(4, 256, 8, "sample-quality"),
    _with_filter(),
    *_paper_rows(),
    _estimator(
        EIGHT_POINT,
        "no sampling: the weighted eight-point model of the matches; behind a filter, only the filter's matches",
        filtered=True,
        max_error_px=1.0,
        call=run_eight_point,
    ),
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
