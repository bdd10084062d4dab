"""Scripts of other projects, as they are and with their import changed to ours: the same figures of both.

    python benchmarks/third_party.py --projects DIR --pairs realpairs/rootsift/val --photos photos/drone
        --homographies homographies/rootsift/val [--out FILE]

DIR holds copies of projects that you fetched, in folders of their names: posebench, glue-factory, pyslam, OpenSfM,
vismatch and opencv (of it only samples/python). Those that are missing are left out. Each script runs twice, in
processes of their own: as it is, and from a copy in which ``import cv2`` is ``from caransac.integrations import opencv
as cv2``, and ``import poselib`` likewise; nothing else is changed. Compiled parts of the projects and packages that the
scripts do not need for their estimates have stand-ins, and two names that OpenCV and numpy have dropped are put back
for both. Needs the extra 'bench', and torch and omegaconf for the projects that import them.
"""

from __future__ import annotations

import argparse
import contextlib
import enum
import io
import itertools
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import h5py
import numpy as np
from published import LEFT_OUT, destination, make_parser, origin, publish, table

from caransac import pose_from_fundamental
from caransac.datasets import Pair, read_ransac_tutorial
from caransac.geometry import Array, pose_error_deg
from caransac.metrics import FAILURE_DEG, auc

NAME = "third_party"
BUILDINGS = ("herz_jesus_p25", "entry_p10", "llff_fern", "llff_flower")
DRIVE, FIELDS = ("kitti_2",), ("policko",)
PLANES = ("bark", "bikes", "wall")
PAIRS, QUICK_PAIRS, MAX_RATIO = 20, 2, 0.85  # of each scene
FEW = 12  # pairs of 0 to 11 matches
PHOTO_SIZE = 1024, 576  # pixels, to which photographs are reduced
IMPORT = re.compile(r"^([ \t]*)import (cv2|poselib)(?: as (\w+))?[ \t]*$", re.MULTILINE)
OURS = {"cv2": "opencv", "poselib": "poselib"}
AUC, INLIERS = "AUC@5", "inliers"

Row = dict[str, Any]


@dataclass(frozen=True)
class Data:
    """Where the data lie, and how many pairs of a scene to take."""

    pairs: Path | None
    homographies: Path | None
    photos: Path | None
    count: int

    def read_pairs(self, scenes: tuple[str, ...], count: int | None = None) -> list[Pair]:
        """Pairs of scenes: their matches with a good ratio."""
        if self.pairs is None:
            raise LookupError("no --pairs")
        found = []
        for scene in scenes:
            for pair in read_ransac_tutorial(self.pairs, scenes=[scene], max_pairs=count or self.count):
                found.append(take(pair, pair.scores < MAX_RATIO))
        return found

    def read_planes(self) -> Iterator[tuple[Array, Array, Array, tuple[float, float]]]:
        """Points of both images, the homography between them and the size of the first, of every planar pair."""
        if self.homographies is None:
            raise LookupError("no --homographies")
        for scene in PLANES:
            names = ("matches", "match_conf", "H", "sizes")
            with contextlib.ExitStack() as stack:
                file = {
                    name: stack.enter_context(h5py.File(self.homographies / scene / f"{name}.h5")) for name in names
                }
                for key in sorted(file["matches"])[: self.count]:
                    good = file["match_conf"][key][:].ravel() < MAX_RATIO
                    matches = file["matches"][key][:][good].astype(np.float32)
                    width, height = np.ravel(file["sizes"][key][:])[:2]
                    yield matches[:, :2], matches[:, 2:4], file["H"][key][:], (float(width), float(height))

    def read_photos(self) -> list[Array]:
        """Photographs, reduced."""
        if self.photos is None:
            raise LookupError("no --photos")
        import cv2

        paths = sorted(self.photos.glob("*.JPG"))[: self.count + 1]
        return [cv2.resize(cv2.imread(str(path)), PHOTO_SIZE, interpolation=cv2.INTER_AREA) for path in paths]


def take(pair: Pair, rows: Any) -> Pair:
    """A pair with some of its matches."""
    return replace(pair, points1=pair.points1[rows], points2=pair.points2[rows], scores=pair.scores[rows])


def pose_row(script: str, library: str, on: str, errors: list[float]) -> Row:
    """A row of pose errors in degrees."""
    return {
        "script": script,
        "library": library,
        "on": on,
        "pairs": len(errors),
        "figure": AUC,
        "value": auc(errors, 5),
    }


def pose_error(pair: Pair, R: Array, t: Array) -> float:
    """The error of a pose in degrees; an identity without translation is a failure."""
    t = np.ravel(t)
    return pose_error_deg(R, t, pair.R, pair.t) if np.any(t) else FAILURE_DEG


def corner_error(H: Array | None, truth: Array, size: tuple[float, float]) -> float:
    """Mean error in pixels of the corners of the first image."""
    if H is None:
        return FAILURE_DEG
    width, height = size
    corners = np.array([[0, 0, 1], [width, 0, 1], [width, height, 1], [0, height, 1.0]])
    mapped = [each[:, :2] / each[:, 2:] for each in (corners @ truth.T, corners @ np.asarray(H, float).T)]
    return float(np.linalg.norm(mapped[0] - mapped[1], axis=1).mean())


def stand_in(*names: str) -> None:
    """Let modules that are not needed for an estimate be imported."""
    for name in names:
        try:
            import_module(name)
        except ImportError:
            sys.modules[name] = MagicMock()


def open_package(name: str, folder: Path, **members: object) -> ModuleType:
    """A package without what its own first file would import."""
    module = ModuleType(name)
    module.__path__ = [str(folder)]
    vars(module).update(members)
    sys.modules[name] = module
    return module


def write_posebench(path: Path, pairs: list[Pair]) -> None:
    """Pairs in the layout that posebench reads."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        for number, pair in enumerate(pairs):
            group = file.create_group(f"{number:04d}")
            group["x1"], group["x2"], group["R"], group["t"] = pair.points1, pair.points2, pair.R, pair.t
            for name, camera in (("camera1", pair.camera1), ("camera2", pair.camera2)):
                of = group.create_group(name)
                of.create_dataset("model", data=["PINHOLE"], dtype=h5py.string_dtype())
                of["width"], of["height"] = ([int(2 * c)] for c in camera.K[:2, 2])
                of["params"] = np.array(camera.intrinsics)


def run_posebench(folder: Path, data: Data) -> Iterator[Row]:
    """Its relative_pose.py and homography.py, PoseLib's rows."""
    sys.path.insert(0, str(folder))
    os.chdir(folder)
    sys.modules["tqdm"] = MagicMock(tqdm=lambda each, **_: each)
    sys.modules["absolute_pose"] = MagicMock()
    vars(np)["trapz"] = np.trapezoid  # the name that numpy 2.4 has no more
    buildings, fields = data.read_pairs(BUILDINGS), data.read_pairs(FIELDS, 2 * data.count)
    few = [take(pair, slice(number)) for number, pair in enumerate(buildings[:FEW])]
    relative, plane = "megadepth1500_sift", "barath_Alamo"  # two of its data sets by whose names it finds ours
    cases = (
        ("relative_pose", relative, buildings, "E (poselib", "buildings"),
        ("relative_pose", relative, buildings, "F (poselib", "buildings"),
        ("relative_pose", relative, few, "E (poselib", "0 to 11 matches"),
        ("homography", plane, fields, "poselib", "fields from above"),
    )
    for module, name, pairs, method, on in cases:
        write_posebench(folder / "data" / module.split("_")[0] / f"{name}.h5", pairs)
        metrics, _ = import_module(module).main(dataset_filter=[name], method_filter=[method])
        ((label, figures),) = metrics[name].items()
        value = 100 * float(figures["AUC5"])
        row = {"script": f"posebench `{module}.py`, {label[0]}", "library": "PoseLib", "on": on, "pairs": len(pairs)}
        yield row | {"figure": AUC, "value": value}


def run_glue_factory(folder: Path, data: Data) -> Iterator[Row]:
    """Its robust estimators of relative poses and homographies."""
    import torch

    inner = folder / "gluefactory"
    for part in ("", ".geometry", ".robust_estimators", ".utils"):
        package = open_package(f"gluefactory{part}", inner / part[1:])
        if part == ".robust_estimators":
            exec((inner / "robust_estimators" / "__init__.py").read_text(), vars(package))
    load = vars(sys.modules["gluefactory.robust_estimators"])["load_estimator"]
    camera_class = import_module("gluefactory.geometry.wrappers").Camera

    def tensor(points: Array) -> Any:
        return torch.tensor(points, dtype=torch.float32)

    for name, library in (("opencv", "OpenCV"), ("poselib", "PoseLib")):
        estimator, errors = load("relative_pose", name)({"name": name, "ransac_th": 1.0}), []
        for pair in data.read_pairs(BUILDINGS):
            given = {"m_kpts0": tensor(pair.points1), "m_kpts1": tensor(pair.points2)}
            for number, camera in enumerate((pair.camera1, pair.camera2)):
                width, height = (int(2 * c) for c in camera.K[:2, 2])
                described = {"model": "PINHOLE", "width": width, "height": height, "params": list(camera.intrinsics)}
                given[f"camera{number}"] = camera_class.from_colmap(described).float()
            pose = estimator(given)["M_0to1"]
            errors.append(pose_error(pair, pose.R.double().numpy(), pose.t.double().numpy()))
        yield pose_row(f"glue-factory `relative_pose/{name}`", library, "buildings", errors)
    for name, library in (("opencv", "OpenCV"), ("poselib", "PoseLib")):
        estimator, errors = load("homography", name)({"name": name, "ransac_th": 3.0}), []
        for points1, points2, H, size in data.read_planes():
            found = estimator({"m_kpts0": tensor(points1), "m_kpts1": tensor(points2)})["M_0to1"]
            errors.append(corner_error(found.double().numpy(), H, size))
        yield pose_row(f"glue-factory `homography/{name}`", library, "planes, pixels", errors)


def run_pyslam(folder: Path, data: Data) -> Iterator[Row]:
    """Its two-view parts in Python."""
    inner = folder / "pyslam"
    open_package("pyslam", inner)
    open_package("pyslam.slam", inner / "slam", CameraUtils=None)
    open_package("pyslam.utilities", inner / "utilities")
    open_package("pyslam.utilities.serialization", inner, SerializableEnum=enum.Enum)
    sys.modules["numba"] = MagicMock(njit=lambda *given, **_: given[0] if given else lambda call: call)
    stand_in("open3d", "sim3solver", "pnpsolver", "scipy.spatial.transform")
    stand_in("pyslam.utilities.logging", "pyslam.utilities.geom_lie")
    module = import_module("pyslam.slam.pose_estimator")
    for scenes, on in ((BUILDINGS, "buildings"), (DRIVE, "a drive forward")):
        errors = []
        for pair in data.read_pairs(scenes):
            estimator = module.EssentialMatrixPoseEstimator2d2d(pair.camera1.K, pair.camera2.K)
            R, t, inliers = estimator.estimate({"kpts1": pair.points1, "kpts2": pair.points2})
            errors.append(pose_error(pair, R, t) if inliers else FAILURE_DEG)
        yield pose_row("pySLAM `EssentialMatrixPoseEstimator2d2d`", "OpenCV", on, errors)
    estimate, errors = import_module("pyslam.utilities.geom_2views").estimate_pose_ess_mat, []
    for pair in data.read_pairs(DRIVE):
        points = (pair.points1, pair.camera1), (pair.points2, pair.camera2)
        normalised = [(each - camera.K[:2, 2]) / camera.K[[0, 1], [0, 1]] for each, camera in points]
        pose = np.linalg.inv(estimate(*normalised)[0])
        errors.append(pose_error(pair, pose[:3, :3], pose[:3, 3]))
    yield pose_row("pySLAM `estimate_pose_ess_mat`", "OpenCV", "a drive forward", errors)


def run_opensfm(folder: Path, data: Data) -> Iterator[Row]:
    """Its robust matching; its relative pose is compiled code."""
    stand_in("joblib")
    package = open_package("opensfm", folder / "opensfm")
    for name in ("feature_loader", "log", "multiview", "pairs_selection", "pyfeatures", "pygeometry", "dataset_base"):
        stand_in_for = MagicMock()
        sys.modules[f"opensfm.{name}"] = stand_in_for
        setattr(package, name, stand_in_for)
    match = import_module("opensfm.matching").robust_match_fundamental
    errors = []
    for pair in data.read_pairs(BUILDINGS):
        rows = np.repeat(np.arange(len(pair.points1))[:, None], 2, axis=1)
        F, inliers = match(pair.points1, pair.points2, rows, {"robust_matching_threshold": 1.5})
        if F is None or len(inliers) < 5:
            errors.append(FAILURE_DEG)
            continue
        points = pair.points1[inliers[:, 0]], pair.points2[inliers[:, 1]]
        errors.append(pose_error(pair, *pose_from_fundamental(F, *points, pair.camera1, pair.camera2)))
    yield pose_row("OpenSfM `robust_match_fundamental`", "OpenCV", "buildings", errors)


def run_vismatch(folder: Path, data: Data) -> Iterator[Row]:
    """Its verification by a homography, and its matcher of SIFT."""
    stand_in("torchvision", "torchvision.transforms", "yacs", "yacs.config", "huggingface_hub", "huggingface_hub.utils")
    sys.path.insert(0, str(folder))
    import torch

    base = import_module("vismatch.base_matcher")
    matcher, errors = base.BaseMatcher(), []
    for points1, points2, H, size in data.read_planes():
        errors.append(corner_error(matcher.compute_ransac(points1, points2)[0], H, size))
    yield pose_row("vismatch `BaseMatcher.compute_ransac`", "OpenCV", "planes, pixels", errors)
    base.to_tensor_image = lambda image: torch.tensor(np.float32(image).transpose(2, 0, 1) / 255)
    sift = import_module("vismatch.im_models.handcrafted").SiftNNMatcher()
    photos = [image[..., ::-1].copy() for image in data.read_photos()]
    found = [int(sift(one, other)["num_inliers"]) for one, other in itertools.pairwise(photos)]
    row = {"script": "vismatch `sift-nn`", "library": "OpenCV", "on": "photographs from above", "pairs": len(found)}
    yield row | {"figure": INLIERS, "value": sum(found)}


def run_opencv(folder: Path, data: Data) -> Iterator[Row]:
    """OpenCV's find_obj.py, without its windows."""
    import cv2

    for name in ("imshow", "setMouseCallback", "waitKey", "destroyAllWindows", "namedWindow"):
        setattr(cv2, name, lambda *_, **__: 0)
    if not hasattr(cv2, "xfeatures2d"):
        cv2.xfeatures2d = MagicMock(SIFT_create=cv2.SIFT_create)
    script = folder / "samples" / "python" / "find_obj.py"
    sys.path.insert(0, str(script.parent))
    paths = []
    for number, photo in enumerate(data.read_photos()):
        paths.append(str(folder / f"{number}.png"))
        cv2.imwrite(paths[-1], photo)
    for feature in ("sift", "orb"):
        counts = []
        for one, other in itertools.pairwise(paths):
            sys.argv, said = ["find_obj.py", f"--feature={feature}", one, other], io.StringIO()
            with contextlib.redirect_stdout(said):
                runpy.run_path(str(script), run_name="__main__")
            counts += [int(count) for count in re.findall(r"(\d+) / \d+ +inl", said.getvalue())]
        row = {"script": f"OpenCV `find_obj.py --feature={feature}`", "library": "OpenCV"}
        yield row | {"on": "photographs from above", "pairs": len(paths) - 1, "figure": INLIERS, "value": sum(counts)}


@dataclass(frozen=True)
class Project:
    """A project whose scripts are run.

    Attributes:
        run: runs its scripts from its folder; a row for each.
        needs: a file that must be there.
    """

    run: Callable[[Path, Data], Iterator[Row]]
    needs: str


PROJECTS = {
    "posebench": Project(run_posebench, "relative_pose.py"),
    "glue-factory": Project(run_glue_factory, "gluefactory/robust_estimators/__init__.py"),
    "pyslam": Project(run_pyslam, "pyslam/slam/pose_estimator.py"),
    "OpenSfM": Project(run_opensfm, "opensfm/matching.py"),
    "vismatch": Project(run_vismatch, "vismatch/base_matcher.py"),
    "opencv": Project(run_opencv, "samples/python/find_obj.py"),
}


def copy_project(folder: Path, place: Path, ours: bool) -> None:
    """Copy the Python files of a project; with our import in the place of the original's, if wanted."""
    for path in folder.rglob("*.py"):
        target = place / path.relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not ours:
            shutil.copyfile(path, target)
            continue
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
        target.write_text(with_our_import(text), encoding="utf-8", errors="surrogateescape")


def with_our_import(text: str) -> str:
    """A script with its imports of OpenCV and PoseLib changed, as docs/migration.md says."""
    return IMPORT.sub(
        lambda found: f"{found[1]}from caransac.integrations import {OURS[found[2]]} as {found[3] or found[2]}", text
    )


def run_copy(name: str, ours: bool, arguments: argparse.Namespace) -> list[Row]:
    """The rows of a project in a process of its own."""
    with tempfile.TemporaryDirectory() as scratch:
        copy_project(arguments.projects / name, Path(scratch) / name, ours)
        rows = Path(scratch) / "rows.json"
        words = [__file__, "--projects", scratch, "--worker", name, "--out", str(rows)]
        for option in ("pairs", "homographies", "photos"):
            if getattr(arguments, option) is not None:
                words += [f"--{option}", str(getattr(arguments, option).resolve())]
        command = [sys.executable, *words, *(["--quick"] if arguments.quick else [])]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{name}, {'ours' if ours else 'original'}: {done.stderr}")
        return list(json.loads(rows.read_text()))


def measure(arguments: argparse.Namespace) -> tuple[list[Row], list[str]]:
    """Rows of all projects that are there, and the names of the others."""
    rows, missing = [], []
    for name, project in PROJECTS.items():
        if not (arguments.projects / name / project.needs).is_file():
            missing.append(name)
            continue
        original, ours = (run_copy(name, which, arguments) for which in (False, True))
        for before, after in zip(original, ours, strict=True):
            rows.append({**before, "original": before.pop("value"), "ours": after["value"]})
            rows[-1].pop("value", None)
            print(rows[-1], flush=True)
    return rows, missing


def as_markdown(content: dict[str, Any]) -> str:
    """The table for readers."""
    head = "# Scripts of other projects with our import\n\n`benchmarks/third_party.py` says how they ran.\n\n"
    missing = f"\nNot there: {', '.join(content['missing'])}.\n" if content["missing"] else ""
    return head + rows_table(content["rows"]) + missing


def rows_table(rows: list[Row]) -> str:
    """Every script with both figures."""
    header = ["script", "library", "on", "pairs", "figure", "original", "here"]
    return table(
        header,
        [[*(str(row[key]) for key in header[:5]), *map(_figure, (row["original"], row["ours"]))] for row in rows],
    )


def _figure(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.1f}"


def main() -> int:
    """Run all scripts of the projects that are there."""
    parser = make_parser(__doc__, NAME)
    parser.add_argument("--projects", type=Path, required=True, metavar="DIR", help="folder of the projects")
    parser.add_argument("--pairs", type=Path, metavar="DIR", help="pairs of images with true poses (docs/formats.md)")
    parser.add_argument("--homographies", type=Path, metavar="DIR", help="planar pairs with true homographies")
    parser.add_argument("--photos", type=Path, metavar="DIR", help="photographs")
    parser.add_argument("--worker", choices=PROJECTS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        count = QUICK_PAIRS if arguments.quick else PAIRS
        data = Data(arguments.pairs, arguments.homographies, arguments.photos, count)
        rows = list(PROJECTS[arguments.worker].run(arguments.projects / arguments.worker, data))
        arguments.out.write_text(json.dumps(rows))
        return 0
    made = origin()
    rows, missing = measure(arguments)
    if not rows:
        print(f"no project in {arguments.projects}")
        return LEFT_OUT
    publish(destination(arguments, NAME), {"made": made, "rows": rows, "missing": missing}, as_markdown)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
