"""Two-view geometries: the same calls of pycolmap and of our drop-in."""

import sqlite3
from contextlib import closing

import numpy as np
import pycolmap
import pytest
from databases import execute, make_database, pair_id, some_pairs

from caransac import Options
from caransac.geometry import homogeneous, pose_error_deg, rotation_from_vector, sampson_sq
from caransac.integrations import pycolmap as ours
from caransac.synthetic import make_pair, make_plane, transfer

PAIR = make_pair(400, outlier_ratio=0.5, noise_px=0.4, seed=6)
DICT = {"model": "SIMPLE_PINHOLE", "width": 1024, "height": 768, "params": list(PAIR.camera1.params)}
KNOWN, UNKNOWN = (pycolmap.Camera(**DICT, has_prior_focal_length=prior) for prior in (True, False))
ROWS = np.repeat(np.arange(400, dtype=np.uint32)[:, None], 2, axis=1)
Config = pycolmap.TwoViewGeometryConfiguration
POSE = pycolmap.TwoViewGeometryOptions(compute_relative_pose=True)
both = pytest.mark.parametrize("module", [pycolmap, ours], ids=["pycolmap", "ours"])
calls = pytest.mark.parametrize("name", ["estimate_two_view_geometry", "estimate_calibrated_two_view_geometry"])


def true_matches(geometry, rows=ROWS):
    """Return the share of matches that a geometry classifies correctly."""
    found = {tuple(match) for match in geometry.inlier_matches}
    return np.mean([(tuple(match) in found) == right for match, right in zip(rows, PAIR.inliers, strict=True)])


def parallax(pair):
    """Return the median angle in radians between the true rays of right matches."""
    rays1, rays2 = (
        homogeneous(pair.camera1.pixels_to_rays(points[pair.inliers])) for points in (pair.points1, pair.points2)
    )
    cosines = np.sum(rays1 @ pair.R.T * rays2, axis=1) / np.linalg.norm(rays1, axis=1) / np.linalg.norm(rays2, axis=1)
    return np.median(np.arccos(cosines))


@both
@calls
def test_known_cameras(module, name):
    geometry = getattr(module, name)(KNOWN, PAIR.points1, KNOWN, PAIR.points2, ROWS, POSE)
    assert type(geometry) is pycolmap.TwoViewGeometry
    assert geometry.config == Config.CALIBRATED.value
    assert geometry.inlier_matches.dtype == np.uint32 and geometry.inlier_matches.shape[1] == 2
    assert true_matches(geometry) > 0.95
    pose = geometry.cam2_from_cam1
    assert pose_error_deg(pose.rotation.matrix(), pose.translation, PAIR.R, PAIR.t) < 2
    assert np.linalg.norm(geometry.E) == pytest.approx(2**0.5)
    right = PAIR.points1[PAIR.inliers], PAIR.points2[PAIR.inliers]
    assert np.sqrt(np.median(sampson_sq(geometry.F, *right))) < 0.6
    assert geometry.tri_angle == pytest.approx(parallax(PAIR), rel=0.05)
    assert geometry.camera1 is None and geometry.camera2 is None


@both
def test_unknown_cameras(module):
    geometry = module.estimate_two_view_geometry(UNKNOWN, PAIR.points1, UNKNOWN, PAIR.points2, ROWS, POSE)
    assert geometry.config == Config.UNCALIBRATED.value
    assert true_matches(geometry) > 0.95
    pose = geometry.cam2_from_cam1
    assert pose_error_deg(pose.rotation.matrix(), pose.translation, PAIR.R, PAIR.t) < 3
    for camera in (geometry.camera1, geometry.camera2):
        assert type(camera) is pycolmap.Camera
        assert (camera.model_name, camera.width, camera.height) == ("SIMPLE_PINHOLE", 1024, 768)
        assert camera.mean_focal_length() == pytest.approx(PAIR.camera1.fx, rel=0.03)
    assert geometry.E is not None and geometry.F is not None


def test_an_unknown_camera_is_not_trusted_and_may_lack_a_size():
    wrong = pycolmap.Camera(**DICT | {"params": [500.0, *DICT["params"][1:]]})
    geometry = ours.estimate_two_view_geometry(wrong, PAIR.points1, KNOWN, PAIR.points2, ROWS)
    assert geometry.config == Config.UNCALIBRATED.value
    assert geometry.camera1.mean_focal_length() == pytest.approx(PAIR.camera1.fx, rel=0.03)
    bare = ours.estimate_two_view_geometry(PAIR.camera1.K, PAIR.points1, KNOWN, PAIR.points2, ROWS)
    assert bare.config == Config.UNCALIBRATED.value and bare.E is None and bare.cam2_from_cam1 is None
    assert np.sqrt(np.median(sampson_sq(bare.F, PAIR.points1[PAIR.inliers], PAIR.points2[PAIR.inliers]))) < 0.6


@both
def test_matches_are_indices_of_keypoints(module, rng):
    order1, order2 = rng.permutation(450), rng.permutation(500)
    points1, points2 = np.empty((450, 2)), np.empty((500, 2))
    points1[order1[:400]], points2[order2[:400]] = PAIR.points1, PAIR.points2
    points1[order1[400:]], points2[order2[400:]] = 5, 7
    matches = np.stack([order1[:400], order2[:400]], axis=1).astype(np.uint32)
    geometry = module.estimate_two_view_geometry(KNOWN, points1, KNOWN, points2, matches)
    assert true_matches(geometry, matches) > 0.95


@both
@pytest.mark.parametrize("kind", ["plane", "rotation"])
def test_planes_and_rotations(module, kind, rng):
    K = KNOWN.calibration_matrix()
    points1 = rng.uniform((0, 0), (1024, 768), (300, 2))
    rays, R, t = homogeneous(points1) @ np.linalg.inv(K).T, rotation_from_vector([0.05, 0.1, 0.02]), [1, 0, 0.2]
    X = rays if kind == "rotation" else rays * (6 / (rays @ [0.2, 0.1, 1]))[:, None]
    Y = X @ R.T if kind == "rotation" else X @ R.T + t
    points2 = (Y @ K.T)[:, :2] / Y[:, 2:] + rng.normal(0, 0.4, (300, 2))
    geometry = module.estimate_two_view_geometry(KNOWN, points1, KNOWN, points2, ROWS[:300], POSE)
    assert geometry.config == (Config.PANORAMIC if kind == "rotation" else Config.PLANAR).value
    moved = homogeneous(points1) @ geometry.H.T
    assert np.median(np.linalg.norm(moved[:, :2] / moved[:, 2:] - points2, axis=1)) < 1
    pose = geometry.cam2_from_cam1
    assert np.rad2deg(np.linalg.norm(pose.rotation.matrix() - R)) < 1
    assert (np.linalg.norm(pose.translation) < 1e-9) == (kind == "rotation")
    assert geometry.tri_angle == pytest.approx(0 if kind == "rotation" else 0.14, abs=0.01)


@both
@calls
def test_hopeless_pairs_are_degenerate(module, name):
    for points1, points2 in ((PAIR.points1[:5], PAIR.points2[:5]), (PAIR.points1[:0], PAIR.points2[:0])):
        geometry = getattr(module, name)(KNOWN, points1, KNOWN, points2, ROWS[: len(points1)])
        assert geometry.config == Config.DEGENERATE.value
        assert geometry.inlier_matches.shape == (0, 2)
        assert geometry.E is None and geometry.F is None and geometry.H is None and geometry.cam2_from_cam1 is None


@both
@pytest.mark.parametrize(("setting", "value"), [("min_num_inliers", 390), ("min_inlier_ratio", 0.9)])
def test_the_limit_of_degenerate_geometries_can_be_set(module, setting, value):
    options = pycolmap.TwoViewGeometryOptions(**{setting: value})
    for settings in (options, {setting: value}):
        geometry = module.estimate_two_view_geometry(KNOWN, PAIR.points1, KNOWN, PAIR.points2, ROWS, settings)
        assert geometry.config == Config.DEGENERATE.value
        assert len(geometry.inlier_matches) == 0 or (module, setting) == (pycolmap, "min_inlier_ratio")


def test_settings_reach_the_estimator():
    def estimate(options, **scores):
        return ours.estimate_two_view_geometry(KNOWN, PAIR.points1, KNOWN, PAIR.points2, ROWS, options, **scores)

    ransac = pycolmap.RANSACOptions(max_error=1.0, random_seed=5, max_num_trials=512, min_num_trials=512)
    stated = estimate(pycolmap.TwoViewGeometryOptions(ransac=ransac))
    expected = estimate(
        Options(max_error_px=1.0, seed=5, rounds=2, early_stop=False, success_probability=ransac.confidence)
    )
    assert np.array_equal(stated.E, expected.E)
    plain = estimate(None)
    assert not np.array_equal(stated.E, plain.E)
    assert np.array_equal(plain.E, estimate({}).E)
    assert np.array_equal(plain.E, ours.estimate_two_view_geometry(KNOWN, PAIR.points1, KNOWN, PAIR.points2).E)
    default = pycolmap.TwoViewGeometryOptions()
    own = Options(max_error_px=4.0, success_probability=default.ransac.confidence)
    assert np.array_equal(estimate(default).E, estimate(own).E)
    assert not np.array_equal(plain.E, estimate(None, scores=PAIR.scores, score_kind="ratio").E)


def geometry_of(module, points1, points2, camera=KNOWN, **settings):
    """Return the configuration and the inlier matches if row i of both images matches."""
    options = pycolmap.TwoViewGeometryOptions()
    options.ransac.random_seed = 0
    for name, value in settings.items():
        setattr(options, name, value)
    rows = np.repeat(np.arange(len(points1), dtype=np.uint32)[:, None], 2, axis=1)
    found = module.estimate_two_view_geometry(camera, points1, camera, points2, rows, options)
    return Config(found.config), np.sort(found.inlier_matches[:, 0])


SECOND = make_pair(200, outlier_ratio=0.1, seed=2)
BORDER = np.random.default_rng(5).uniform((50, 680), (900, 720), (200, 2))  # position of a watermark
UNMARKED = Config.PLANAR, Config.PANORAMIC, Config.PLANAR_OR_PANORAMIC, Config.CALIBRATED
SHAKEN = BORDER + np.random.default_rng(6).normal(0, 0.3, BORDER.shape)


@both
def test_several_models_explain_the_matches_one_after_the_other(module):
    first = make_pair(300, outlier_ratio=0.1, seed=1)
    points = np.concatenate([first.points1, SECOND.points1]), np.concatenate([first.points2, SECOND.points2])
    right = np.concatenate([first.inliers, SECOND.inliers])
    config, found = geometry_of(module, *points, multiple_models=True)
    assert config == Config.MULTIPLE and len(set(found)) == len(found)
    assert np.isin(np.flatnonzero(right), found).mean() > 0.98
    config, found = geometry_of(module, *points)
    assert config == Config.CALIBRATED and len(found) < 300


def test_random_models_do_not_count_as_several_models():
    """pycolmap continues until four or more models explain nearly all matches."""
    for pair in (PAIR, make_pair(800, outlier_ratio=0.7, seed=3)):
        one, several = (
            geometry_of(ours, pair.points1, pair.points2, multiple_models=several) for several in (False, True)
        )
        assert one[0] == several[0] == Config.CALIBRATED and np.array_equal(one[1], several[1])


@both
def test_stationary_matches_are_left_out(module):
    moved = BORDER + np.array([3.0, 2.0])
    points1, points2 = np.concatenate([SECOND.points1, BORDER]), np.concatenate([SECOND.points2, moved])
    for max_error, kept in ((4.0, False), (3.0, True)):
        settings = {"filter_stationary_matches": True, "stationary_matches_max_error": max_error}
        config, found = geometry_of(module, points1, points2, **settings, detect_watermark=False)
        assert np.any(found >= 200) == kept
        assert config == Config.CALIBRATED or kept


@both
@pytest.mark.parametrize("move", [(0.0, 0.0), (30.0, -12.0)])
def test_watermarks_are_detected(module, move):
    config, found = geometry_of(module, BORDER, SHAKEN + move)
    assert config == Config.WATERMARK and len(found) > 195
    middle = (0.0, -300.0)
    for points, settings in (
        ((BORDER, SHAKEN + move), {"detect_watermark": False}),
        ((BORDER + middle, SHAKEN + move + middle), {}),
        ((BORDER, SHAKEN + move), {"watermark_border_size": 0.01}),
        ((BORDER, SHAKEN + move), {"watermark_detection_max_error": 0.1}),
    ):
        assert geometry_of(module, *points, **settings)[0] in UNMARKED


@both
def test_watermarks_do_not_count_as_models_by_default(module):
    points1, points2 = np.concatenate([SECOND.points1, BORDER]), np.concatenate([SECOND.points2, SHAKEN])
    config, found = geometry_of(module, points1, points2, multiple_models=True)
    assert config == Config.CALIBRATED and found.max() < 200
    config, found = geometry_of(module, points1, points2, multiple_models=True, multiple_ignore_watermark=False)
    assert config == Config.MULTIPLE and found.max() >= 200


@both
def test_a_homography_can_be_forced(module):
    plane = make_plane(400, outlier_ratio=0.4, seed=1)
    config, found = geometry_of(module, plane.points1, plane.points2, force_H_use=True)
    assert config == Config.PLANAR_OR_PANORAMIC
    right = np.linalg.norm(transfer(plane.H, plane.points1) - plane.points2, axis=1) < 3
    assert np.isin(np.flatnonzero(right), found).mean() > 0.98
    options = {"force_H_use": True}
    result = module.estimate_two_view_geometry(KNOWN, plane.points1, KNOWN, plane.points2, ROWS, options)
    assert plane.corner_error_px(result.H) < 2 and result.E is None
    assert geometry_of(module, PAIR.points1[:12], PAIR.points2[:12], force_H_use=True)[0] == Config.DEGENERATE
    config, found = geometry_of(module, PAIR.points1, PAIR.points2, force_H_use=True, min_inlier_ratio=0.0)
    # The points have depth, so a homography explains few.
    assert config == Config.PLANAR_OR_PANORAMIC and len(found) < 100


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"options": {"min_inliers": 3}}, "unknown setting of options 'min_inliers'"),
        ({"options": {"ransac": {"max_eror": 1}}}, "unknown setting of ransac 'max_eror'; did you mean 'max_error'"),
        ({"options": {"min_num_inliers": -1}}, "min_num_inliers must be a whole number of at least 0"),
        ({"options": {"force_H_use": np.ones(2)}}, "force_H_use must be True or False"),
        ({"options": {"watermark_border_size": 2}}, "watermark_border_size must be a number from 0 to 1"),
        ({"options": 3}, "options must be a pycolmap.TwoViewGeometryOptions, not a int"),
        ({"camera2": np.eye(4)}, "camera2: K must be 3x3"),
        ({"points1": PAIR.points1[:, :1]}, "points1 must have shape"),
        ({"matches": np.array([[0, 400]])}, "matches must be indices of the 400 and 400 keypoints"),
        ({"matches": np.array([[-1, 3]])}, "matches must be indices"),
        ({"matches": np.array([[0.0, 3.0]])}, "matches must be whole numbers"),
        (
            {"points2": PAIR.points2[:9], "matches": None},
            "points1 and points2 must have the same length, unless matches are given",
        ),
        ({"scores": PAIR.scores[:9], "score_kind": "ratio"}, r"scores must have shape \(400,\)"),
    ],
)
def test_mistakes_raise(changes, message):
    arguments = {"camera1": KNOWN, "points1": PAIR.points1, "camera2": KNOWN, "points2": PAIR.points2, "matches": ROWS}
    with pytest.raises(ValueError, match=message):
        ours.estimate_two_view_geometry(**arguments | changes)


def test_fisheye_cameras_and_distorted_ones():
    rays = [PAIR.camera1.pixels_to_rays(points) for points in (PAIR.points1, PAIR.points2)]
    lens1 = pycolmap.Camera(model="OPENCV_FISHEYE", width=1024, height=768, params=[800, 800, 512, 384, 0.02, 0, 0, 0])
    lens2 = pycolmap.Camera(model="RADIAL", width=1024, height=768, params=[800, 512, 384, -0.15, 0.04])
    points = [lens.img_from_cam(homogeneous(seen)) for lens, seen in zip((lens1, lens2), rays, strict=True)]
    geometry = ours.estimate_calibrated_two_view_geometry(lens1, points[0], lens2, points[1], ROWS)
    pose = geometry.cam2_from_cam1
    assert pose_error_deg(pose.rotation.matrix(), pose.translation, PAIR.R, PAIR.t) < 2


@pytest.fixture
def database(tmp_path):
    return make_database(tmp_path / "database.db", some_pairs(3))


def geometry_rows(database):
    with closing(sqlite3.connect(database)) as connection:
        return dict(connection.execute("SELECT pair_id, config FROM two_view_geometries WHERE rows > 0"))


@both
def test_verify_matches_verifies_the_listed_pairs(module, database, tmp_path):
    listed = tmp_path / "pairs.txt"
    listed.write_text("scene/001.png scene/002.png\nscene/006.png scene/005.png\n\nscene/001.png scene/004.png\n")
    assert module.verify_matches(database, listed) is None
    assert geometry_rows(database) == {pair_id(0): Config.CALIBRATED.value, pair_id(2): Config.CALIBRATED.value}
    first = geometry_rows(database)
    module.verify_matches(str(database), str(listed), pycolmap.TwoViewGeometryOptions(min_num_inliers=1000))
    assert geometry_rows(database) == first, "existing geometries are kept"


def test_verify_matches_leaves_out_unknown_images_with_a_warning(database, tmp_path):
    listed = tmp_path / "pairs.txt"
    listed.write_text("scene/001.png nowhere.png\nscene/003.png scene/004.png\n")
    with pytest.warns(UserWarning, match=r"1 images are not in .*database.db, for example nowhere.png"):
        ours.verify_matches(database, listed)
    assert geometry_rows(database) == {pair_id(1): Config.CALIBRATED.value}


def test_names_with_invalid_utf_8_are_accepted(database, tmp_path):
    (tmp_path / "pairs.txt").write_text("scene/003.png scene/004.png\n")
    execute(database, "UPDATE images SET name = CAST(x'636166e92e6a7067' AS TEXT) WHERE image_id = 1")
    ours.verify_matches(database, tmp_path / "pairs.txt")
    assert geometry_rows(database) == {pair_id(1): Config.CALIBRATED.value}


def test_verify_matches_stops_when_cancelled(tmp_path):
    database = make_database(tmp_path / "database.db", some_pairs(40, num_points=60))
    (tmp_path / "pairs.txt").write_text(
        "".join(f"scene/{2 * i + 1:03}.png scene/{2 * i + 2:03}.png\n" for i in range(40))
    )
    token = pycolmap.CancellationToken()
    token.cancel()
    ours.verify_matches(database, tmp_path / "pairs.txt", None, token)
    assert 0 < len(geometry_rows(database)) < 40, "a started batch is written"
    ours.verify_matches(database, tmp_path / "pairs.txt", None, pycolmap.CancellationToken())
    assert len(geometry_rows(database)) == 40


def test_verify_matches_refuses_unsupported_arguments(database, tmp_path):
    (tmp_path / "pairs.txt").write_text("scene/001.png scene/002.png\n")
    for name in ("min_inlier_ratio", "force_H_use", "multiple_models", "filter_stationary_matches"):
        with pytest.raises(ValueError, match=f"options: {name} must be off"):
            ours.verify_matches(database, tmp_path / "pairs.txt", {name: 1})
    with pytest.raises(OSError, match=r"nothing\.txt"):
        ours.verify_matches(database, tmp_path / "nothing.txt")
    with pytest.raises(FileNotFoundError, match=r"nothing\.db"):
        ours.verify_matches(tmp_path / "nothing.db", tmp_path / "pairs.txt")
