"""The recipe of docs/hloc.md on rendered images, with replacements for hloc that make the same calls of pycolmap."""

import itertools
import re
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

GUIDE = Path(__file__).parent.parent / "docs" / "hloc.md"
VIEWS = 5


def write_files(folder, views):
    """Write images, and features and matches in hloc's layout, in our pixel convention."""
    (folder / "images").mkdir()
    names, found = [], []
    with h5py.File(folder / "feats.h5", "w") as features:
        for number, image in enumerate(views.images):
            names.append(f"{number:03d}.png")
            write_image(folder / "images" / names[-1], image)
            found.append(detect(image))
            features[f"{names[-1]}/keypoints"] = found[-1][0].astype(np.float16)
            features[f"{names[-1]}/image_size"] = np.array(image.shape[1::-1])
    pairs = list(itertools.combinations(range(len(names)), 2))
    with h5py.File(folder / "matches.h5", "w") as matches:
        for first, second in pairs:
            rows, columns, ratios = match_vectors(found[first][1], found[second][1])
            good = ratios < 0.85
            partners = np.full(len(found[first][0]), -1, np.int16)
            partners[rows[good]] = columns[good]
            group = matches.create_group(f"{names[first]}/{names[second]}")
            group["matches0"] = partners
            group["matching_scores0"] = (partners >= 0).astype(np.float16)
    (folder / "pairs.txt").write_text("".join(f"{names[i]} {names[j]}\n" for i, j in pairs))


def read_keypoints(path, name):
    with h5py.File(path) as file:
        return file[name]["keypoints"][()].astype(np.float32) + 0.5  # the corner of the first pixel is COLMAP's origin


def import_matches(image_ids, db, pairs, matches, skip_geometric_verification=False):
    with h5py.File(matches) as file:
        for line in pairs.read_text().splitlines():
            first, second = line.split()
            partners = file[first][second]["matches0"][()]
            rows = np.flatnonzero(partners >= 0)
            indices = np.stack([rows, partners[rows]], axis=1).astype(np.uint32)
            db.write_matches(image_ids[first], image_ids[second], indices)
            if skip_geometric_verification:
                undefined = pycolmap.TwoViewGeometry(inlier_matches=indices)
                db.write_two_view_geometry(image_ids[first], image_ids[second], undefined)


def get_image_ids(database):
    with pycolmap.Database.open(database) as db:
        return {image.name: image.image_id for image in db.read_all_images()}


def run_reconstruction(sfm, database, images):
    (sfm / "models").mkdir()
    models = pycolmap.incremental_mapping(database, images, sfm / "models")
    return max(models.values(), key=lambda model: model.num_reg_images()) if models else None


@pytest.fixture
def hloc(monkeypatch):
    """A module `hloc` with the functions that the recipe calls."""
    package, reconstruction, triangulation = (ModuleType(name) for name in ("hloc", "reconstruction", "triangulation"))
    package.reconstruction, package.triangulation = reconstruction, triangulation
    reconstruction.create_empty_db = lambda database: pycolmap.Database.open(database).close()
    reconstruction.import_images = lambda images, database, mode: pycolmap.import_images(database, images, mode)
    reconstruction.get_image_ids = get_image_ids
    reconstruction.run_reconstruction = run_reconstruction
    triangulation.import_features = lambda image_ids, db, features: [
        db.write_keypoints(image_id, read_keypoints(features, name)) for name, image_id in image_ids.items()
    ]
    triangulation.import_matches = import_matches
    monkeypatch.setitem(sys.modules, "hloc", package)
    return package


@pytest.fixture(scope="module")
def views():
    return render_views(VIEWS, width=480, height=360, seed=0)


def worst_error_deg(model, views):
    poses = {int(Path(image.name).stem): image.cam_from_world().matrix() for image in model.images.values()}
    assert len(poses) == model.num_reg_images() == VIEWS
    return max(
        pose_error_deg(
            *relative_pose(poses[i][:, :3], poses[i][:, 3], poses[j][:, :3], poses[j][:, 3]),
            *views.relative_pose(i, j),
        )
        for i, j in itertools.combinations(poses, 2)
    )


@pytest.mark.usefixtures("hloc")
@pytest.mark.parametrize("by_files", [False, True])
def test_the_recipe_ends_with_a_reconstruction(tmp_path, views, monkeypatch, by_files):
    before, after = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    (command,) = re.findall(r"^    caransac (verify sfm/.*)$", GUIDE.read_text(), re.MULTILINE)
    write_files(tmp_path, views)
    monkeypatch.chdir(tmp_path)
    if by_files:
        named = ("--features", "feats.h5", "--matches", "matches.h5", "--pairs", "pairs.txt", "--out", "verified.h5")
        assert main(["verify", *named]) == 0
        before = before.replace("matches.h5", "verified.h5")
    names = {}
    exec(before, names)
    assert main(command.split()) == 0
    exec(after, names)
    assert worst_error_deg(names["model"], views) < 1


def test_databases_of_undefined_geometries_are_repaired(tmp_path, views, monkeypatch, hloc):
    before, after = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    write_files(tmp_path, views)
    monkeypatch.chdir(tmp_path)
    names = {}
    hloc.triangulation.import_matches = lambda *given: import_matches(*given, skip_geometric_verification=True)
    exec(before, names)
    assert main(["verify", "sfm/database.db"]) == 0
    exec(after, names)
    assert worst_error_deg(names["model"], views) < 1
