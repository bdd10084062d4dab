"""Options of an estimation: a frozen record with checked fields."""

from __future__ import annotations

import inspect
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from caransac._support.arrays import check_whole, is_integer, is_real, shorten
from caransac.tuning import DEFAULT_TUNING, PAPER_TUNING, Tuning

MethodName = Literal["ca-ransac", "lm-lo", "lm-lo-u"]
ScoreKind = Literal["ratio", "confidence"]
MaxError = float | Literal["auto"]

SAMPLES_PER_ROUND = 256  # as in training
# Names that other libraries use for our options.
OTHER_NAMES = {
    **dict.fromkeys(("threshold", "max_error", "max_epipolar_error", "ransacReprojThreshold"), "max_error_px"),
    **dict.fromkeys(("confidence", "success_prob", "prob"), "success_probability"),
    **dict.fromkeys(("iterations", "max_iterations", "maxIters", "max_num_trials"), "rounds"),
}
IN_LAB = ("oversampling", "sample_quality")  # options of 0.2; the message about them is removed in 0.4
DEFAULT_WEIGHTS = "default"  # the weights in the package that were trained for the problem


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """Options of an estimation. Unknown or misspelt names, and values out of range, raise a ValueError.

    Every method uses ``method``, ``rounds``, ``samples_per_round``, ``max_error_px``, ``top_models``, ``early_stop``,
    ``success_probability``, ``max_seconds`` and ``seed``. The descriptions of the other options name the methods that
    use them.

    Attributes:
        method: "ca-ransac", "lm-lo" or "lm-lo-u". "ca-ransac" is Consensus-Adaptive RANSAC, which updates the inlier
            probabilities after every round. "lm-lo" is classical LO-RANSAC with Levenberg-Marquardt refinement inside
            the loop and at its end; it samples the matches with the best scores first (PROSAC). "lm-lo-u" is the same
            with uniform sampling.
        weights: trained weights, for "ca-ransac" only: a name in the package, or the path of an npz file. "default"
            chooses the weights that were trained for the problem.
        rounds: maximum number of rounds, each a batch of samples: 1 to 1,000,000. Four suffice for most pairs; hard
            pairs gain from more.
        samples_per_round: number of minimal samples in a round, 1 to 10,000. Ctrl-C takes effect between rounds.
        max_error_px: maximum error in pixels of a match that supports a model: the Sampson distance; for a homography,
            the symmetric transfer error; for an absolute pose, the reprojection error. "auto" derives it from the noise
            of the matches; the result reports both.
        top_models: number of models with the largest consensus in a round, 1 to 1000. "ca-ransac" attends to them.
            "lm-lo" and "lm-lo-u" refine them before they choose the best one.
        local_models: number of models that "ca-ransac" refines in a round, 1 to 1000. It chooses the ``top_models``
            among them.
        state_update: ablation of "ca-ransac": False keeps the prior probabilities of the matches in all rounds.
        adaptive_sampling: ablation of "ca-ransac": False draws uniformly from the matches with a ratio below 0.8.
        adaptive_refinement: ablation of "ca-ransac": False refines the best model with equal weights on the matches
            within ``max_error_px``.
        max_ratio: limit of the ratio (``score_kind="ratio"``), for "lm-lo" and "lm-lo-u" only. Matches with this ratio
            or a larger one take no part in the estimation, unless fewer than 15 matches remain. They can still be
            ``inliers``. A limit above all ratios, such as 2, keeps every match.
        early_stop: whether to stop as soon as ``success_probability`` is reached. The first rounds of "ca-ransac" then
            draw fewer samples if most matches are probably right. False runs exactly ``rounds * samples_per_round``
            hypotheses.
        success_probability: probability of having drawn a sample without outliers at which the loop may stop. It is
            computed for uniform sampling; with progressive sampling (PROSAC), the true probability is usually higher.
        max_seconds: time limit in seconds, or None. No round begins after it. At least one round runs, and the
            assessment of the answer takes additional time. With a limit, the answer depends on the speed of the
            machine.
        keep_trace: whether "ca-ransac" keeps a record of every round, as ``result.trace``.
        seed: seed of the random samples. The same input and seed give the same answer, to the last bit on the same kind
            of CPU, unless ``max_seconds`` ends the loop.
        tuning: numbers that were chosen by measuring, for ablations; see `Tuning`.
    """

    method: MethodName = "ca-ransac"
    weights: str | Path = DEFAULT_WEIGHTS
    rounds: int = 4
    samples_per_round: int = SAMPLES_PER_ROUND
    max_error_px: MaxError = "auto"
    top_models: int = 4
    local_models: int = 24
    state_update: bool = True
    adaptive_sampling: bool = True
    adaptive_refinement: bool = True
    max_ratio: float = 0.85
    early_stop: bool = True
    success_probability: float = 0.9999
    max_seconds: float | None = None
    keep_trace: bool = False
    seed: int = 0
    tuning: Tuning = DEFAULT_TUNING

    def __new__(cls, **given: object) -> Options:
        """Raise a ValueError for an unknown name, and suggest the nearest known one."""
        for name in given:
            if name in IN_LAB:
                raise ValueError(f"the option {name!r} is in caransac-lab now: caransac_lab.networks.oversampling")
        refuse_unknown(given, [field.name for field in fields(cls)], "option")
        return object.__new__(cls)

    @classmethod
    def paper(cls, **given: Any) -> Options:
        """Return the options of the algorithm as published in the paper, with weights that were trained for it.

        They are four rounds of 256 samples, four models by total consensus, thresholds of one pixel, and no early stop.
        `docs/paper.md` compares them with the defaults. Options given by keyword replace these.
        """
        fixed = {"weights": "paper", "max_error_px": 1.0, "local_models": 4, "early_stop": False}
        return cls(**{**fixed, "tuning": PAPER_TUNING, **given})

    def left_since(self, started: float) -> Options:
        """Return the options with the rest of `max_seconds`, counted from `started` by ``time.perf_counter()``."""
        if self.max_seconds is None:
            return self
        return replace(self, max_seconds=max(self.max_seconds - (time.perf_counter() - started), 0.0))

    def __post_init__(self) -> None:
        methods, method = get_args(MethodName), self.method
        _require(isinstance(method, str) and method in methods, "method", f"one of {', '.join(methods)}", method)
        # A round cannot be interrupted: with these limits it takes less than a second.
        most = {"rounds": 10**6, "samples_per_round": 10**4, "top_models": 1000, "local_models": 1000}
        for name, limit in most.items():
            check_whole(getattr(self, name), name, 1, limit)
            object.__setattr__(self, name, int(getattr(self, name)))  # numpy integers would overflow
        for name, others in (("max_error_px", ("auto",)), ("max_ratio", ())):
            value = getattr(self, name)
            expected = " or ".join([f'"{other}"' for other in others] + ["a number from 1e-6 to 1e6"])
            named = isinstance(value, str) and value in others
            _require(named or (is_real(value) and 1e-6 <= value <= 1e6), name, expected, value)
            object.__setattr__(self, name, value if named else float(value))
        value = self.weights
        _require(isinstance(value, str | Path) and str(value) not in ("", "."), "weights", "a name or a path", value)
        for name in ("early_stop", "state_update", "adaptive_sampling", "adaptive_refinement", "keep_trace"):
            value = getattr(self, name)
            _require(isinstance(value, bool | np.bool_), name, "True or False", value)
            object.__setattr__(self, name, bool(value))
        value = self.success_probability
        _require(is_real(value) and 0 < value < 1, "success_probability", "between 0 and 1", value)
        object.__setattr__(self, "success_probability", float(value))
        if (value := self.max_seconds) is not None:
            _require(is_real(value) and 0 <= value <= 1e9, "max_seconds", "a number from 0 to 1e9, or None", value)
            object.__setattr__(self, "max_seconds", float(value))
        _require(isinstance(self.tuning, Tuning), "tuning", "a caransac.tuning.Tuning", self.tuning)
        _require(is_integer(self.seed) and 0 <= self.seed < 2**64, "seed", "an integer from 0 to 2**64 - 1", self.seed)
        object.__setattr__(self, "seed", int(self.seed))


# The signature lists the fields; otherwise `inspect` and editors would show the signature of `__new__`.
Options.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [each for each in inspect.signature(Options.__init__).parameters.values() if each.name != "self"]
)


def refuse_unknown(given: Iterable[str], known: Collection[str], what: str) -> None:
    """Raise a ValueError for the first name that is not known, and suggest the nearest known one."""
    for name in given:
        if name not in known:
            from difflib import get_close_matches

            near = [OTHER_NAMES[name]] if OTHER_NAMES.get(name) in known else get_close_matches(str(name), known, n=1)
            hint = "".join(f"; did you mean {match!r}?" for match in near)
            raise ValueError(f"unknown {what} {name!r}{hint}")


def check_score_kind(scores: object, score_kind: ScoreKind | None) -> ScoreKind:
    """Return the kind of the scores. Raise a ValueError if it is unknown, or missing although there are scores."""
    kinds = '"ratio" (lower is better) or "confidence" (higher is better)'
    if score_kind is None and scores is not None:
        raise ValueError(f"score_kind must be given with scores: {kinds}")
    if score_kind is not None and (not isinstance(score_kind, str) or score_kind not in get_args(ScoreKind)):
        raise ValueError(f"score_kind must be {kinds}, not {shorten(score_kind)}")
    return score_kind or "ratio"


def in_rounds(hypotheses: int) -> dict[str, int]:
    """Return a number of hypotheses as options: rounds of equal size, up to 256. Multiples of 256 are exact."""
    rounds = max(-(-hypotheses // SAMPLES_PER_ROUND), 1)
    return {"rounds": rounds, "samples_per_round": -(-hypotheses // rounds)}


def _require(condition: bool, name: str, expected: str, value: object) -> None:
    if not condition:
        raise ValueError(f"{name} must be {expected}, not {shorten(value)}")
