"""Tiny files of the layouts of data sets, what spoils them, and what is expected of readers then."""

import h5py
import numpy as np
import pytest

from caransac.geometry import pose_error_deg


def write_pair_list(folder, pairs, score_kind=None):
    """A list in SuperGlue's form with its cache of matches."""
    lines = []
    with h5py.File(folder / "list.h5", "w") as cache:
        if score_kind:
            cache.attrs["score_kind"] = score_kind
        for number, pair in enumerate(pairs):
            T = np.eye(4)
            T[:3, :3], T[:3, 3] = pair.R, 2.5 * pair.t
            numbers = [*pair.camera1.K.ravel(), *pair.camera2.K.ravel(), *T.ravel()]
            lines.append(f"scene/a{number}.jpg scene/b{number}.jpg 0 3 " + " ".join(map(repr, map(float, numbers))))
            group = cache.create_group(f"scene-a{number}.jpg/scene-b{number}.jpg")
            group["x1"], group["x2"], group["scores"] = pair.points1, pair.points2, pair.scores
    (folder / "list.txt").write_text("\n".join(lines) + "\n")
    return folder / "list.txt"


def assert_same(read, truth):
    assert np.array_equal(read.points1, truth.points1)
    assert np.array_equal(read.points2, truth.points2)
    assert pose_error_deg(read.R, read.t, truth.R, truth.t) < 1e-5
    assert np.isclose(np.linalg.norm(read.t), 1)
    assert np.allclose(read.camera1.K, truth.camera1.K)


def write_posebench(path, pair, as_arrays=False):
    """A file of one pair in posebench's layout; its own files have arrays of one value."""
    shape = [1] if as_arrays else []
    with h5py.File(path, "w") as file:
        group = file.create_group("pair")
        group["x1"], group["x2"], group["R"], group["t"] = pair.points1, pair.points2, pair.R, 3 * pair.t
        for name in ("camera1", "camera2"):
            camera = group.create_group(name)
            camera.create_dataset(
                "model", shape, h5py.string_dtype(), [pair.camera1.model] if as_arrays else pair.camera1.model
            )
            camera["params"] = pair.camera1.params
            for side in ("width", "height"):
                camera[side] = np.full(shape, getattr(pair.camera1, side), np.int64)


def spoil(path, key, value):
    """Put a value into the middle of an array of an h5 file."""
    with h5py.File(path, "r+") as file:
        array = file[key][()]
        array.flat[array.size // 2] = value
        file[key][...] = array


def refused(read, file, pair):
    """Assert that reading raises, and that the message names the file, the pair and the reason."""
    with pytest.raises(ValueError, match=rf"{file}: .*{pair}.* must not contain NaN, infinity"):
        list(read())


not_finite = pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
