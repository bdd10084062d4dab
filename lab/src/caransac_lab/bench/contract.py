"""What an adapter of a foreign library provides, and what it is told."""

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

# A library without a minimum number of iterations is kept from stopping early by asking for near certainty.
NEAR_CERTAINTY = 1 - 1e-12
# With their own stopping, all methods aim at the same certainty within the same limit.
ADAPTIVE_SUCCESS_PROBABILITY, ADAPTIVE_ITERATIONS = 0.9999, 10_000


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """What every method is told.

    Attributes:
        max_error_px: the method's threshold in pixels, in the sense it has for the method; "auto" only for ours.
        iterations: hypotheses to draw, no fewer if the library can be made to; None for the method's own stopping.
        seed: of the random numbers.
        weights: path of weights trained on the data of the benchmark, for the methods that take them.
    """

    max_error_px: MaxError = 1.0
    iterations: int | None = 1024
    seed: int = 0
    weights: str = ""

    @property
    def threshold_px(self) -> float:
        """The threshold of a method that needs a number."""
        assert self.max_error_px != "auto", "a peer is told a number"
        return self.max_error_px

    @property
    def limits(self) -> tuple[int | None, int]:
        """Smallest (None: the library's own) and largest number of iterations."""
        return (None, ADAPTIVE_ITERATIONS) if self.iterations is None else (self.iterations, self.iterations)

    @property
    def success_probability(self) -> float:
        """The probability of success to stop at, for libraries that know no smallest number of iterations."""
        return ADAPTIVE_SUCCESS_PROBABILITY if self.iterations is None else NEAR_CERTAINTY


@dataclass(frozen=True, eq=False, kw_only=True)
class Answer:
    """What a method found: a matrix, or a pose.

    Attributes:
        matrix: (3, 3) essential matrix of normalised coordinates or fundamental matrix of pixels; None with a pose.
        pose: R (3, 3) and t (3,), ``x2 = R x1 + t``; None with a matrix.
        iterations: hypotheses drawn, if the library tells.
        probabilities: (n,) of the matches as given to be right, if the method tells.
        confidence: probability that the pose is right to five degrees, if the method tells.
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
        name: its name in tables and on the command line.
        about: the settings, in a few words.
        module: the module it imports.
        package: what to install for it.
        min_version: the oldest version whose behaviour is known.
        lacks: what else keeps it from running, with the remedy; empty if nothing does.
    """

    name: str
    about: str
    module: str
    package: str
    min_version: str
    lacks: str = ""

    @property
    def missing(self) -> str:
        """What keeps it from running, with the remedy; empty if nothing does."""
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
        problems: what it estimates.
        run: estimates; matches come best first if they have scores. None is a failure.
        refines: whether it ends with a nonlinear refinement on its inliers of its own.
        filtered: whether it gets the matches that pass the filter, best first, or all of them with their scores.
        seeding: "seed": takes one; "shuffle": always draws the same numbers, so matches are shuffled instead (all such
            methods sample uniformly); "none": neither can be had, and its figures vary from run to run.
        max_error_px: the threshold at which it does well by default.
        iterations: hypotheses, whatever the others draw; None for the common number.
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
        run: estimates ``x2 ~ H x1``, (3, 3). None is a failure.
        max_ratio: it gets the matches with a ratio below, best first; None for all of them with their ratios.
        max_error_px: the threshold at which it does about best, by AUC@3 on made planes of other seeds than the
            benchmark's.
    """

    run: Callable[[PlanePair, RunSettings], Array | None]
    max_ratio: float | None = 0.85
    max_error_px: float = 3.0


def installed_version(module: str) -> str:
    """Version of the distribution that provides a module; "0" if nothing says."""
    names = _distributions().get(module, [module])  # pysuperansac's distribution names another module
    try:
        return metadata.version(names[0])
    except metadata.PackageNotFoundError:
        return "0"


@cache
def _distributions() -> dict[str, list[str]]:
    return dict(metadata.packages_distributions())


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: (4, 8, 1) of "4.8.1rc2"."""
    parts = (part for part in version.replace("rc", ".").split("."))
    return tuple(int(part) for part in parts if part.isdigit())
