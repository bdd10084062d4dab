"""Interface of adapters of foreign libraries, and the settings that they receive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from typing import Literal

from caransac.geometry import Array
from caransac.options import MaxError
from caransac.synthetic import PlanePair
from caransac_lab.datasets import Pair

ProblemName = Literal["E", "F"]
Seeding = Literal["seed", "shuffle", "none"]

# Libraries without a minimum number of iterations get this probability, so that they do not stop early.
NEAR_CERTAINTY = 1 - 1e-12
# With their own stopping rule, all methods have the same target probability and the same limit.
ADAPTIVE_SUCCESS_PROBABILITY, ADAPTIVE_ITERATIONS = 0.9999, 10_000


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """Settings of every method.

    Attributes:
        max_error_px: threshold in pixels, in the method's own definition; "auto" only for ours.
        iterations: number of hypotheses, also the minimum if the library has one; None for its own stopping rule.
        seed: seed of the random numbers.
        weights: path of weights trained on the data of the benchmark, for the methods that use them.
    """

    max_error_px: MaxError = 1.0
    iterations: int | None = 1024
    seed: int = 0
    weights: str = ""

    @property
    def threshold_px(self) -> float:
        """Threshold of a method that needs a number."""
        assert self.max_error_px != "auto", "a peer needs a threshold in pixels"
        return self.max_error_px

    @property
    def limits(self) -> tuple[int | None, int]:
        """Minimum (None for the library's own) and maximum number of iterations."""
        return (None, ADAPTIVE_ITERATIONS) if self.iterations is None else (self.iterations, self.iterations)

    @property
    def success_probability(self) -> float:
        """Success probability at which to stop, for libraries without a minimum number of iterations."""
        return ADAPTIVE_SUCCESS_PROBABILITY if self.iterations is None else NEAR_CERTAINTY


@dataclass(frozen=True, eq=False, kw_only=True)
class Answer:
    """Answer of a method: a matrix or a pose.

    Attributes:
        matrix: (3, 3) essential matrix of normalised coordinates or fundamental matrix of pixels; None with a pose.
        pose: R (3, 3) and t (3,), ``x2 = R x1 + t``; None with a matrix.
        iterations: number of hypotheses, if the library reports it.
        probabilities: (n,) inlier probabilities of the given matches, if the method reports them.
        confidence: probability that the pose is right to five degrees, if the method reports it.
    """

    matrix: Array | None = None
    pose: tuple[Array, Array] | None = None
    iterations: int | None = None
    probabilities: Array | None = None
    confidence: float | None = None


@dataclass(frozen=True, kw_only=True)
class LibraryCall:
    """One way to call one library.

    Attributes:
        name: name in tables and on the command line.
        about: settings, in a few words.
        module: module to import.
        package: package to install.
        min_version: oldest version with known behaviour.
        lacks: other reason why it cannot run, with the remedy; empty if there is none.
    """

    name: str
    about: str
    module: str
    package: str
    min_version: str
    lacks: str = ""

    @property
    def missing(self) -> str:
        """Reason why it cannot run, with the remedy; empty if there is none."""
        if find_spec(self.module) is None:
            return f"needs {self.package}>={self.min_version}: pip install {self.package}"
        found = installed_version(self.module)
        if _numbers(found) < _numbers(self.min_version):
            return f"needs {self.package}>={self.min_version}, found {found}: pip install -U {self.package}"
        return self.lacks


@dataclass(frozen=True, kw_only=True)
class Estimator(LibraryCall):
    """An estimator of epipolar geometry.

    Attributes:
        problems: problems that it solves.
        run: function that estimates, or returns None on failure. Matches with scores are sorted, best first.
        refines: whether it ends with its own nonlinear refinement on the inliers.
        filtered: whether it gets the matches that pass the filter, best first. Otherwise it gets all with their scores.
        seeding: "seed" takes a seed. "shuffle" always draws the same numbers, so matches are shuffled instead (all such
            methods sample uniformly). "none" allows neither, and its figures vary from run to run.
        max_error_px: good default threshold.
        iterations: its own number of hypotheses; None for the common number.
        wants_weights: whether it needs `RunSettings.weights`.
    """

    problems: tuple[ProblemName, ...] = ("E", "F")
    run: Callable[[Pair, ProblemName, RunSettings], Answer | None]
    refines: bool = False
    filtered: bool = True
    seeding: Seeding = "seed"
    max_error_px: MaxError = 1.0
    iterations: int | None = None
    wants_weights: bool = False


@dataclass(frozen=True, kw_only=True)
class HomographyEstimator(LibraryCall):
    """An estimator of homographies.

    Attributes:
        run: function that estimates ``x2 ~ H x1``, (3, 3). It returns None on failure.
        max_ratio: maximum ratio of the matches that it gets, best first; None for all matches with their ratios.
        max_error_px: threshold that is about the best by AUC@3 on synthetic planes with other seeds than the
            benchmark's.
    """

    run: Callable[[PlanePair, RunSettings], Array | None]
    max_ratio: float | None = 0.85
    max_error_px: float = 3.0


def installed_version(module: str) -> str:
    """Return the version of the distribution that provides a module, or "0" if it is unknown."""
    names = _distributions().get(module, [module])  # pysuperansac's distribution lists another module
    try:
        return metadata.version(names[0])
    except metadata.PackageNotFoundError:
        return "0"


@cache
def _distributions() -> dict[str, list[str]]:
    return dict(metadata.packages_distributions())


def _numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version: (4, 8, 1) for "4.8.1rc2"."""
    parts = (part for part in version.replace("rc", ".").split("."))
    return tuple(int(part) for part in parts if part.isdigit())
