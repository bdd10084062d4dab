"""Small files in the layouts of data sets, ways to corrupt them, and the expected errors of readers."""

import h5py
import numpy as np
import pytest

from caransac.geometry import pose_error_deg


def write_pair_list(folder, pairs, score_kind=None):
    """Write a list in SuperGlue's format with its file of matches."""
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
    """Write one pair in posebench's layout. posebench's own files store scalars as arrays of one value."""
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
    """Replace the middle value of an array in an h5 file."""
    with h5py.File(path, "r+") as file:
        array = file[key][()]
        array.flat[array.size // 2] = value
        file[key][...] = array


def refused(read, file, pair):
    """Assert that reading raises, and that the message names the file, the pair and the reason."""
    with pytest.raises(ValueError, match=rf"{file}: .*{pair}.* must not contain NaN, infinity"):
        list(read())


not_finite = pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])


def write_scene(folder, rng, num_images=4, num_points=150, wrong=0.2):
    """Write a scene in the RANSAC Tutorial's layout, whose images show the same points. Return poses and points."""
    folder.mkdir(parents=True)
    points = rng.uniform(-1, 1, (num_points, 3)) * (2, 1.5, 1)
    K = np.array([[800.0, 0, 320], [0, 800, 240], [0, 0, 1]])
    poses, pixels = {}, {}
    for number in range(num_images):
        angle = 0.15 * number
        R = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])
        t = np.array([0.0, 0, 6])
        seen = (points @ R.T + t) @ K.T
        poses[f"i{number}"] = R, t
        pixels[f"i{number}"] = np.round(seen[:, :2] / seen[:, 2:] + 0.2 * rng.normal(size=(num_points, 2)), 2)
    files = ("matches", "match_conf", "K1_K2", "R", "T")
    handles = {name: h5py.File(folder / f"{name}.h5", "w") for name in files}
    for name, (R, t) in poses.items():
        handles["R"][name], handles["T"][name] = R, t[:, None]
    names = sorted(poses)
    for a in names:
        for b in names[names.index(a) + 1 :]:
            partner = np.arange(num_points)
            mixed = rng.random(num_points) < wrong
            partner[mixed] = rng.integers(num_points, size=mixed.sum())
            handles["matches"][f"{a}-{b}"] = np.c_[pixels[a], pixels[b][partner]]
            handles["match_conf"][f"{a}-{b}"] = np.where(mixed, rng.uniform(0.8, 1, num_points), 0.5)[:, None]
            handles["K1_K2"][f"{a}-{b}"] = np.stack([K, K])[None]
    for handle in handles.values():
        handle.close()
    return poses, points
