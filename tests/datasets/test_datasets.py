"""The readers, on tiny files of their layouts."""

from dataclasses import replace

import h5py
import numpy as np
import pytest

import caransac
from caransac.cli import main
from caransac.datasets import (
    Pair,
    make_synthetic,
    match_pair_list,
    open_dataset,
    read_npz,
    read_pair_list,
    read_posebench,
    read_ransac_tutorial,
    write_npz,
)
from caransac.geometry import depths, essential_from_pose, fundamental_from_essential, pose_error_deg, sampson_sq
from caransac.images import write_image
from caransac.render import render_pair
from caransac.synthetic import make_pair


@pytest.fixture
def folder(tmp_path):
    """Two scenes of three pairs each, the second scene without truth."""
    motion, world = make_pair(50, seed=0), make_pair(50, seed=9)
    poses = {
        "a": (world.R, world.t),
        "b": (motion.R @ world.R, motion.R @ world.t + motion.t),  # so that a-b is the motion
        "c": (np.eye(3), np.zeros(3)),
    }
    for scene in ("alley", "unrelated"):
        (tmp_path / scene).mkdir()

        def write(name, values, scene=scene):
            with h5py.File(tmp_path / scene / f"{name}.h5", "w") as file:
                for key, value in values.items():
                    file[key] = value

        pairs = {key: make_pair(50, seed=seed) for seed, key in enumerate(["a-b", "a-c", "b-c"])}
        write("matches", {key: np.c_[pair.points1, pair.points2] for key, pair in pairs.items()})
        write("match_conf", {key: pair.scores for key, pair in pairs.items()})
        write("K1_K2", {key: np.stack([pair.camera1.K, pair.camera2.K])[None] for key, pair in pairs.items()})
        if scene == "alley":
            write("R", {image: R for image, (R, _) in poses.items()})
            write("T", {image: t[:, None] for image, (_, t) in poses.items()})
    return tmp_path


def test_pairs_come_with_their_truth(folder):
    pairs = {pair.name: pair for pair in read_ransac_tutorial(folder, scenes=["alley"])}
    assert set(pairs) == {"a-b", "a-c", "b-c"}
    truth = make_pair(50, seed=0)
    pair = pairs["a-b"]
    assert np.array_equal(pair.points2, truth.points2)
    assert np.array_equal(pair.scores, truth.scores)
    assert pose_error_deg(pair.R, pair.t, truth.R, truth.t) < 1e-6
    assert np.allclose(pair.camera1.K, truth.camera1.K)


def test_scenes_without_truth_have_none(folder):
    assert all(pair.R is None and pair.t is None for pair in read_ransac_tutorial(folder, scenes=["unrelated"]))


def test_a_limit_takes_the_first_of_a_fixed_shuffle(folder):
    names = [pair.name for pair in read_ransac_tutorial(folder)]
    assert len(names) == 6
    limited = [pair.name for pair in read_ransac_tutorial(folder, max_pairs=2)]
    assert limited == names[:2] + names[3:5]


def test_missing_files_are_named(folder, tmp_path):
    with pytest.raises(ValueError, match="no such folder"):
        next(read_ransac_tutorial(tmp_path / "nowhere"))
    (folder / "alley" / "match_conf.h5").unlink()
    with pytest.raises(ValueError, match=r"alley.*match_conf\.h5"):
        next(read_ransac_tutorial(folder, scenes=["alley"]))


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


def test_pair_lists_come_with_cached_matches(tmp_path):
    truth = [make_pair(30, seed=seed) for seed in range(3)]
    path = write_pair_list(tmp_path, truth)
    read = list(read_pair_list(path))
    assert len(read) == 3
    for pair, made in zip(read, truth, strict=True):
        assert_same(pair, made)
        assert np.array_equal(pair.scores, made.scores)
        assert pair.score_kind == "confidence"
        assert pair.scene == "list"
    write_pair_list(tmp_path, truth, "ratio")
    assert next(read_pair_list(path)).score_kind == "ratio"
    assert len(list(read_pair_list(path, max_pairs=2))) == 2


def test_pair_lists_of_images_are_matched_once_and_go_on_where_they_were(tmp_path, capsys):
    made = render_pair(seed=4, width=320, height=240)
    for name, image in (("a0", made.image1), ("b0", made.image2), ("a1", made.image1), ("b1", made.image2)):
        write_image(tmp_path / "scene" / f"{name}.jpg", image)  # the list says .jpg, whatever the quality
    truth = make_pair(30)
    posed = replace(truth, camera1=made.camera, camera2=made.camera, R=made.R, t=made.t)
    path = write_pair_list(tmp_path, [posed, posed])
    path.with_suffix(".h5").unlink()

    def stop(done, _):
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        match_pair_list(path, tmp_path, progress=stop)
    assert not path.with_suffix(".h5").exists()
    (tmp_path / "scene" / "a0.jpg").unlink()  # the first pair is not read again
    command = ["bench", str(path), "--images", str(tmp_path), "--methods", "CA-RANSAC", "--timing-pairs", "0"]
    assert main([*command, "--workers", "1", "--out", str(tmp_path / "out")]) == 0
    assert "(2 pairs, 1 scenes)" in capsys.readouterr().out
    for pair in read_pair_list(path):
        assert pair.score_kind == "ratio"
        result = caransac.estimate_relative_pose(
            pair.points1, pair.points2, pair.camera1, pair.camera2, scores=pair.scores, score_kind=pair.score_kind
        )
        assert pose_error_deg(result.R, result.t, pair.R, pair.t) < 1
    assert match_pair_list(path, tmp_path) == path.with_suffix(".h5")
    with pytest.raises(ValueError, match=r"list\.h5 has matches by rootsift, not by orb: move it away"):
        match_pair_list(path, tmp_path, features="orb")
    assert main(["bench", str(path), "--images", str(tmp_path / "none"), "--out", str(tmp_path / "other")]) == 2
    assert "--images: no such folder" in capsys.readouterr().err


def test_broken_pair_lists_say_where(tmp_path):
    path = write_pair_list(tmp_path, [make_pair(30)])
    path.write_text(path.read_text().replace("scene/a0.jpg", "scene/c0.jpg"))
    with pytest.raises(ValueError, match=r"no matches of scene-c0\.jpg/scene-b0\.jpg"):
        list(read_pair_list(path))
    path.write_text("a b 0 0 1 2 3\n")
    with pytest.raises(ValueError, match=r"line 1 has 7 words"):
        list(read_pair_list(path))
    path.with_suffix(".h5").unlink()
    with pytest.raises(FileNotFoundError, match=r"no such file.*list\.h5"):
        list(read_pair_list(path))


def write_posebench(path, pair):
    """A file of one pair in posebench's layout."""
    with h5py.File(path, "w") as file:
        group = file.create_group("pair")
        group["x1"], group["x2"], group["R"], group["t"] = pair.points1, pair.points2, pair.R, 3 * pair.t
        for name in ("camera1", "camera2"):
            camera = group.create_group(name)
            camera["model"], camera["params"] = pair.camera1.model, pair.camera1.params
            camera["width"], camera["height"] = pair.camera1.width, pair.camera1.height


def test_posebench_files_have_cameras(tmp_path):
    made = make_pair(30)
    write_posebench(tmp_path / "some.h5", made)
    (pair,) = read_posebench(tmp_path / "some.h5")
    assert_same(pair, made)
    assert pair.camera1 == made.camera1
    assert pair.scores is None
    assert open_dataset(tmp_path / "some.h5").num_pairs == 1


def test_other_h5_files_are_refused_by_name(tmp_path):
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file.create_group("pair")["x1"] = np.zeros((3, 2))
    with pytest.raises(ValueError, match=r"other.h5: .*'t' doesn't exist"):
        next(read_posebench(tmp_path / "other.h5"))
    scene = tmp_path / "scene"
    scene.mkdir()
    (scene / "pair.npz").write_bytes(b"no archive")
    with pytest.raises(ValueError, match=r"pair.npz is not an npz archive"):
        next(read_npz(tmp_path))


@pytest.mark.parametrize("scored", [True, False])
def test_npz_files_come_back_as_they_were(tmp_path, scored):
    made = make_pair(30)
    scores = made.scores if scored else None
    features = np.ones((30, 2)) if scored else None
    cameras = made.camera1, made.camera2
    truth = Pair("x", "a/b", made.points1, made.points2, scores, *cameras, made.R, made.t, "confidence", features)
    write_npz(tmp_path, truth)
    (pair,) = read_npz(tmp_path)
    assert_same(pair, truth)
    assert (pair.scene, pair.name) == ("x", "a-b")
    assert pair.camera2 == truth.camera2
    if scored:
        assert pair.score_kind == "confidence"
        assert np.array_equal(pair.scores, scores)
        assert np.array_equal(pair.features, features)


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


@not_finite
@pytest.mark.parametrize(
    ("file", "key"),
    [("matches", "a-c"), ("match_conf", "a-c"), ("K1_K2", "a-c"), ("match_features", "a-c"), ("R", "c"), ("T", "c")],
)
def test_numbers_of_the_tutorial_must_be_finite(folder, file, key, value):
    with h5py.File(folder / "alley" / "match_features.h5", "w") as features:
        features["a-c"] = np.ones((50, 2))
    assert len(list(read_ransac_tutorial(folder))) == 6
    spoil(folder / "alley" / f"{file}.h5", key, value)
    refused(lambda: read_ransac_tutorial(folder), f"alley/{file}.h5", key)


@not_finite
@pytest.mark.parametrize("name", ["x1", "x2", "scores"])
def test_numbers_of_pair_lists_must_be_finite(tmp_path, name, value):
    path, key = write_pair_list(tmp_path, [make_pair(30), make_pair(30)]), "scene-a1.jpg/scene-b1.jpg"
    spoil(path.with_suffix(".h5"), f"{key}/{name}", value)
    refused(lambda: read_pair_list(path), "list.h5", key)


@not_finite
def test_poses_of_pair_lists_must_be_finite(tmp_path, value):
    path = write_pair_list(tmp_path, [make_pair(30)])
    path.write_text(path.read_text().replace(" 1.0\n", f" {value}\n"))
    refused(lambda: read_pair_list(path), "list.txt", "scene-a0.jpg/scene-b0.jpg")


@not_finite
@pytest.mark.parametrize("name", ["x1", "x2", "R", "t"])
def test_numbers_of_posebench_must_be_finite(tmp_path, name, value):
    write_posebench(tmp_path / "some.h5", make_pair(30))
    spoil(tmp_path / "some.h5", f"pair/{name}", value)
    refused(lambda: read_posebench(tmp_path / "some.h5"), "some.h5", "pair")


@not_finite
@pytest.mark.parametrize("name", ["points1", "points2", "scores", "R", "t", "features"])
def test_numbers_of_archives_must_be_finite(tmp_path, name, value):
    path = write_npz(tmp_path, replace(Pair.from_synthetic(make_pair(30), "a-b"), features=np.ones((30, 2))))
    with np.load(path) as archive:
        arrays = dict(archive)
    arrays[name].flat[-1] = value
    np.savez(path, **arrays)
    refused(lambda: read_npz(tmp_path), "a-b.npz", "a-b")


@pytest.mark.parametrize(
    ("file", "values", "reason"),
    [
        ("matches", np.zeros((50, 3)), r"want an array \(N, 4\) of x1 y1 x2 y2, got \(50, 3\)"),
        ("match_conf", np.zeros(49), r"scores must have shape \(50,\)"),
        ("match_features", np.zeros(50), r"features must have shape \(50, d\)"),
    ],
)
def test_arrays_that_do_not_fit_together_are_refused(folder, file, values, reason):
    with h5py.File(folder / "alley" / f"{file}.h5", "a") as h5:
        h5.pop("a-c", None)
        h5["a-c"] = values
    with pytest.raises(ValueError, match=rf"alley.*: pair a-c: {reason}"):
        list(read_ransac_tutorial(folder))


def test_right_matches_are_near_the_true_geometry_and_in_front_of_both_cameras():
    pair = Pair.from_synthetic(make_pair(2000, outlier_ratio=0.8, noise_px=0.7))
    K1, K2 = pair.camera1.K, pair.camera2.K
    F = fundamental_from_essential(essential_from_pose(pair.R, pair.t), K1, K2)
    near = sampson_sq(F, pair.points1, pair.points2) < 1
    rays = pair.camera1.pixels_to_rays(pair.points1), pair.camera2.pixels_to_rays(pair.points2)
    ahead = np.all(depths(pair.R, pair.t, *rays) > 0, axis=1)
    assert np.array_equal(pair.right_matches(), near & ahead)
    assert np.any(near & ~ahead), "some are near by chance"
    assert not replace(pair, R=None, t=None).right_matches().any()


def test_synthetic_pairs_depend_on_their_number_alone():
    few, many = list(make_synthetic(2)), list(make_synthetic(3))
    assert np.array_equal(few[1].points2, many[1].points2)
    assert next(make_synthetic(1, first=1)).name == few[1].name
    assert not np.array_equal(many[1].R, many[2].R)


def test_layouts_are_seen_from_the_files(folder, tmp_path):
    assert open_dataset(folder).num_pairs == 6
    assert open_dataset(folder, max_pairs=2).num_pairs == len(list(open_dataset(folder, max_pairs=2).read())) == 4
    lists = tmp_path / "lists"
    lists.mkdir()
    dataset = open_dataset(write_pair_list(lists, [make_pair(30)]))
    assert (dataset.name, dataset.num_pairs) == ("lists/list", 1)
    assert len(list(dataset.read())) == len(list(dataset.read())) == 1
    pair = next(make_synthetic(1))
    write_npz(tmp_path / "archives", pair)
    assert open_dataset(tmp_path / "archives").num_pairs == 1
    assert open_dataset("synthetic:3").num_pairs == len(list(open_dataset("synthetic:3").read())) == 3
    with pytest.raises(ValueError, match="nowhere"):
        open_dataset(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="synthetic:N"):
        open_dataset("synthetic:many")
