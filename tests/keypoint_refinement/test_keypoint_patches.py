"""Alignment of the patches of a pair, and the photographs that a worker keeps."""

import pickle

import cv2
import numpy as np
import pytest
from photographed import SIZE, WRONG, transform

from caransac.io.images import read_grey
from caransac.keypoint_refinement import keypoint_patches
from caransac.keypoint_refinement.keypoint_patches import PhotographCache, PhotographedPair, PhotographFile, align_pair
from caransac.keypoint_refinement.photograph_files import check_folder, photograph_path


def pair_of(plane, photos, **changes):
    matches = plane.matches[0, 1]
    values = {
        "key": 3,
        "image1": "0.png",
        "image2": "1.png",
        "files": tuple(PhotographFile(str(photos / f"{number}.png"), SIZE, False) for number in (0, 1)),
        "matches": matches,
        "points1": plane.keypoints[0][matches[:, 0]].astype(np.float32),
        "points2": plane.keypoints[1][matches[:, 1]].astype(np.float32),
    }
    return PhotographedPair(**values | changes)


def test_offsets_lead_to_the_true_point(plane, photos):
    found = align_pair(pair_of(plane, photos), PhotographCache())
    aligned, right = found.aligned, ~plane.wrong[0, 1][found.aligned["match"]]
    first, second = aligned["keypoints"].astype(int).T
    true = transform(plane.H[1] @ np.linalg.inv(plane.H[0]), plane.keypoints[0][first])
    errors = np.linalg.norm(plane.keypoints[1][second] + aligned["offset"] - true, axis=1)
    assert np.median(errors[right]) < 0.1
    assert np.mean(~right) < WRONG / 3  # patches of wrong matches are rarely similar
    assert len(aligned) > 0.75 * found.num_matches


def test_a_missing_photograph_is_named(plane, photos):
    (photos / "1.png").unlink()
    found = align_pair(pair_of(plane, photos), PhotographCache())
    assert list(found.problems) == ["1.png"]
    assert "no such image" in found.problems["1.png"]
    assert not len(found.aligned)


def test_photographs_are_read_once(plane, photos, monkeypatch):
    read = []
    monkeypatch.setattr(keypoint_patches, "read_grey", lambda *a, **k: read.append(a[0]) or read_grey(*a, **k))
    cache = PhotographCache()
    for _ in range(3):
        align_pair(pair_of(plane, photos), cache)
    assert len(read) == 2


def test_the_cache_has_a_limit(photos, monkeypatch):
    monkeypatch.setattr(keypoint_patches, "CACHED_BYTES", 3 * SIZE[0] * SIZE[1])
    cache = PhotographCache()
    for number in (0, 1, 2, 3, 4, 0):
        cache.read(PhotographFile(str(photos / f"{number}.png"), SIZE, False))
    assert len(cache._kept) == 3
    assert not pickle.loads(pickle.dumps(cache))._kept  # workers get an empty one


@pytest.mark.parametrize("upright", [True, False])
def test_the_orientation_that_has_the_size_of_the_camera_is_used(tmp_path, upright):
    from PIL import Image

    path, exif = tmp_path / "turned.jpg", Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(np.zeros((40, 60), np.uint8)).save(path, exif=exif)
    assert read_grey(path, upright=upright).shape == ((60, 40) if upright else (40, 60))
    assert read_grey(path, (60, 40), upright=upright).shape == (40, 60)
    assert read_grey(path, (40, 60), upright=upright).shape == (60, 40)
    with pytest.raises(ValueError, match="not 50 x 40"):
        read_grey(path, (50, 40), upright=upright)


@pytest.mark.parametrize("suffix", ["tiff", "bmp", "webp", "png"])
def test_other_formats_are_read(tmp_path, suffix):
    cv2.imwrite(str(tmp_path / f"image.{suffix}"), np.full((40, 60), 90, np.uint8))
    assert abs(int(read_grey(tmp_path / f"image.{suffix}")[5, 5]) - 90) < 3


def test_names_that_leave_the_folder_are_not_followed(tmp_path):
    folder = check_folder(tmp_path)
    assert photograph_path(folder, "day/1.jpg") == str(tmp_path / "day" / "1.jpg")
    for name in ("../1.jpg", "/etc/1.jpg", "day/../../1.jpg"):
        assert photograph_path(folder, name) == str(tmp_path / "1.jpg")
    with pytest.raises(NotADirectoryError, match="--images"):
        check_folder(tmp_path / "missing")
