"""Other projects whose scripts run unchanged and with our import: one module for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from caransac_lab.bench.studies.other_projects.glue_factory import run_glue_factory
from caransac_lab.bench.studies.other_projects.opencv_samples import run_opencv
from caransac_lab.bench.studies.other_projects.opensfm import run_opensfm
from caransac_lab.bench.studies.other_projects.posebench import run_posebench
from caransac_lab.bench.studies.other_projects.project_data import Data, Row
from caransac_lab.bench.studies.other_projects.pyslam import run_pyslam
from caransac_lab.bench.studies.other_projects.vismatch import run_vismatch


@dataclass(frozen=True)
class Project:
    """A project whose scripts are run.

    Attributes:
        run: function that runs its scripts from its folder and yields a row for each.
        needs: file that must exist.
        imports: pip names of packages that it imports and that the extra 'bench' lacks.
    """

    run: Callable[[Path, Data], Iterator[Row]]
    needs: str
    imports: tuple[str, ...] = ()


PROJECTS = {
    "posebench": Project(run_posebench, "relative_pose.py"),
    "glue-factory": Project(run_glue_factory, "gluefactory/robust_estimators/__init__.py", ("torch", "omegaconf")),
    "pyslam": Project(run_pyslam, "pyslam/slam/pose_estimator.py"),
    "OpenSfM": Project(run_opensfm, "opensfm/matching.py"),
    "vismatch": Project(run_vismatch, "vismatch/base_matcher.py", ("torch",)),
    "opencv": Project(run_opencv, "samples/python/find_obj.py"),
}
