"""The recipes of docs/localisation.md, on a COLMAP model of rendered images.

hloc's own code runs. It is not part of this repository: HLOC is the path of a checkout. If CI is set, it is fetched.
"""

import importlib
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import h5py
import numpy as np
import pycolmap
import pytest

from caransac.cli import main
from caransac.geometry import pose_error_deg, relative_pose
from caransac.io.descriptors import match_vectors
from caransac.io.images import detect, write_image
from caransac_lab.render import render_views

pytestmark = pytest.mark.slow

GUIDE = (Path(__file__).parent.parent / "docs" / "localisation.md").read_text(encoding="utf-8")
HLOC = "https://github.com/cvg/Hierarchical-Localization"
HLOC_COMMIT = "c13273bd0ecc2917a35910fd843712a1c6243193"  # 1.5, of December 2025
VIEWS, QUERY = 5, 2  # the query is not in the model


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """A folder with sparse/0, database.db, query.jpg and queries/, and the views."""
    folder = tmp_path_factory.mktemp("scene")
    views = render_views(VIEWS, width=640, height=480, arc_deg=28.0)
    for place in ("images", "queries", "sparse"):
        (folder / place).mkdir()
    for number, image in enumerate(views.images):
        write_image(folder / ("queries" if number == QUERY else "images") / f"{number}.png", image)
    write_image(folder / "query.jpg", views.images[QUERY])
    write_image(folder / "queries" / "again.jpg", views.images[QUERY])
    camera, database = views.camera, folder / "database.db"
    params = ",".join(map(str, (camera.fx, camera.params[1] + 0.5, camera.params[2] + 0.5)))
    reader = {"camera_model": "SIMPLE_PINHOLE", "camera_params": params}
    pycolmap.extract_features(
        database,
        folder / "images",
        camera_mode=pycolmap.CameraMode.SINGLE,
        reader_options=reader,
        extraction_options={"sift": {"max_num_features": 4000, "first_octave": 0}},
    )
    pycolmap.match_exhaustive(database)
    options = pycolmap.IncrementalPipelineOptions(random_seed=0, ba_refine_focal_length=False)
    models = pycolmap.incremental_mapping(database, folder / "images", folder / "sparse", options)
    assert models and models[0].num_reg_images() == VIEWS - 1
    return folder, views, models[0]


def error_of(R, t, scene):
    """Return the pose error of the query relative to the first image, because the frame of the model is arbitrary."""
    _, views, model = scene
    first = next(image for image in model.images.values() if image.name == "0.png").cam_from_world().matrix()
    found = relative_pose(first[:, :3], first[:, 3], np.asarray(R), np.asarray(t))
    return pose_error_deg(*found, *views.relative_pose(0, QUERY))


def test_colmap(scene, monkeypatch, capsys):
    folder = scene[0]
    monkeypatch.chdir(folder)
    commands = re.findall(r"^    caransac (localize .*?)(?:\s+#.*)?$", GUIDE, re.MULTILINE)
    assert len(commands) == 4
    for command in commands:
        words = [part for word in shlex.split(command) for part in (sorted(map(str, Path().glob(word))) or [word])]
        assert main(words) == 0
    printed = capsys.readouterr().out
    assert (printed.count("pose of the camera"), printed.count(" matches in the images; noise ")) == (4, 1)
    assert "data:image/jpeg;base64" in Path("query.html").read_text(encoding="utf-8")
    entries = [json.loads(line) for line in Path("poses.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [entry["image"] for entry in entries] == ["queries/again.jpg"]
    assert entries[0]["reliable"] and error_of(entries[0]["R"], entries[0]["t"], scene) < 0.5
    assert main(["localize", "sparse/0", f"queries/{QUERY}.png", "--json"]) == 0
    entry = json.loads(capsys.readouterr().out)
    assert error_of(entry["R"], entry["t"], scene) < 0.5


@pytest.fixture(scope="module")
def hloc_source(tmp_path_factory):
    """A checkout of hloc."""
    if os.environ.get("HLOC"):
        return Path(os.environ["HLOC"])
    if not os.environ.get("CI"):
        pytest.skip("needs hloc's own code: set HLOC to a checkout; with CI set, it is fetched")
    folder = tmp_path_factory.mktemp("hloc")
    for step in (
        ("init", "--quiet"),
        ("fetch", "--quiet", "--depth", "1", HLOC, HLOC_COMMIT),
        ("checkout", HLOC_COMMIT),
    ):
        done = subprocess.run(["git", "-C", str(folder), *step], capture_output=True, text=True, timeout=120)
        if done.returncode:
            pytest.skip(f"hloc cannot be fetched: {done.stderr.strip()}")
    return folder


@pytest.fixture(params=["pycolmap", "caransac"])
def localize_sfm(request, hloc_source, tmp_path, monkeypatch):
    """The module of hloc, unchanged or with the one import that the guide changes."""
    package = tmp_path / "hloc"
    (package / "utils").mkdir(parents=True)
    for name in ("__init__.py", "localize_sfm.py", *(f"utils/{each}.py" for each in ("__init__", "io", "parsers"))):
        (package / name).write_text((hloc_source / "hloc" / name).read_text(encoding="utf-8"), encoding="utf-8")
    if request.param == "caransac":
        (ours,) = re.findall(r"```python\n(from caransac\.integrations import pycolmap)\n```", GUIDE)
        step = package / "localize_sfm.py"
        text = step.read_text(encoding="utf-8")
        assert text.count("\nimport pycolmap\n") == 1
        step.write_text(text.replace("\nimport pycolmap\n", f"\n{ours}\n"), encoding="utf-8")
    for name in [name for name in sys.modules if name.split(".")[0] == "hloc"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path)
    if importlib.util.find_spec("tqdm") is None:  # only for its progress bar
        bar = ModuleType("tqdm")
        bar.tqdm = lambda items, **_: items
        monkeypatch.setitem(sys.modules, "tqdm", bar)
    module = importlib.import_module("hloc.localize_sfm")
    assert module.pycolmap.__name__ == ("pycolmap" if request.param == "pycolmap" else "caransac.integrations.pycolmap")
    yield module
    for name in [name for name in sys.modules if name.split(".")[0] == "hloc"]:
        del sys.modules[name]


@pytest.fixture(scope="module")
def hloc_files(scene, tmp_path_factory):
    """A folder with the output of hloc's earlier steps: features, matches, pairs and the list of queries."""
    folder, views, model = scene
    written = tmp_path_factory.mktemp("files")
    points, vectors = detect(views.images[QUERY])
    with h5py.File(written / "features.h5", "w") as features, h5py.File(written / "matches.h5", "w") as matches:
        features["query.jpg/keypoints"] = points
        for image in model.images.values():
            with pycolmap.Database.open(folder / "database.db") as database:
                features[f"{image.name}/keypoints"] = database.read_keypoints(image.image_id)[:, :2] - 0.5
                theirs = database.read_descriptors(image.image_id)
            theirs = np.asarray(getattr(theirs, "data", theirs), np.float32)
            theirs /= np.linalg.norm(theirs, axis=1, keepdims=True)
            rows, columns, ratios_sq = match_vectors(vectors, theirs)
            good = ratios_sq < 0.8
            partners = np.full(len(points), -1, np.int32)
            partners[rows[good]] = columns[good]
            matches[f"query.jpg/{image.name}/matches0"] = partners
            matches[f"query.jpg/{image.name}/matching_scores0"] = (partners >= 0).astype(np.float32)
    (written / "pairs.txt").write_text("".join(f"query.jpg {image.name}\n" for image in model.images.values()))
    camera = views.camera
    params = f"{camera.fx} {camera.params[1] + 0.5} {camera.params[2] + 0.5}"
    (written / "queries.txt").write_text(f"query.jpg SIMPLE_PINHOLE {camera.width} {camera.height} {params}\n")
    return written


@pytest.mark.parametrize("clustering", [False, True])
def test_hloc(scene, hloc_files, localize_sfm, tmp_path, clustering):
    files = (hloc_files / name for name in ("queries.txt", "pairs.txt", "features.h5", "matches.h5"))
    out = tmp_path / "results.txt"
    localize_sfm.main(scene[0] / "sparse" / "0", *files, out, covisibility_clustering=clustering)
    name, *numbers = out.read_text().split()
    w, x, y, z, *t = map(float, numbers)
    assert name == "query.jpg"
    error_deg = error_of(pycolmap.Rotation3d(np.array([x, y, z, w])).matrix(), t, scene)
    assert error_deg < (3.0 if localize_sfm.pycolmap is pycolmap else 0.5)  # hloc's threshold is 12 px
