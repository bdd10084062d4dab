"""COLMAP databases: reading and writing, and geometries compared with the truth in COLMAP's convention."""

from dataclasses import replace

import numpy as np
import pycolmap
import pytest
from databases import (
    execute,
    make_collection,
    make_database,
    pair_id,
    query,
    read_geometries,
    some_pairs,
    verify_database,
)

from caransac import Camera, Options
from caransac.geometry import (
    fundamental_from_essential,
    pose_error_deg,
    quaternion_from_rotation,
    rotation_from_vector,
    sampson_sq,
)
from caransac.synthetic import make_pair
from caransac.verification import ColmapDatabase, Config, VerificationOptions, pair_verification
from caransac.verification.pair_verification import verify_pair

PAIRS = some_pairs(6)  # the pairs in the fixture `database`


def test_colmap_reads_the_true_pose_in_both_orders(database):
    verify_database(database, focal_deviation=0.0)
    with pycolmap.Database.open(database) as opened:
        for index, pair in enumerate(PAIRS):
            first, second = 2 * index + 1, 2 * index + 2
            forth = opened.read_two_view_geometry(first, second)
            back = opened.read_two_view_geometry(second, first)
            assert forth.config == pycolmap.TwoViewGeometryConfiguration.CALIBRATED
            R, t = forth.cam2_from_cam1.rotation.matrix(), forth.cam2_from_cam1.translation
            assert pose_error_deg(R, t, pair.R, pair.t) < 1
            R, t = back.cam2_from_cam1.rotation.matrix(), back.cam2_from_cam1.translation
            assert pose_error_deg(R, t, pair.R.T, -pair.R.T @ pair.t) < 1
            np.testing.assert_allclose(back.E, forth.E.T, atol=1e-12)

            keypoints = [np.asarray(opened.read_keypoints(image))[:, :2] for image in (first, second)]
            inliers = np.asarray(forth.inlier_matches)
            points = [keypoints[side][inliers[:, side]] for side in (0, 1)]
            assert len(inliers) > 0.4 * len(pair.points1)
            assert np.sqrt(sampson_sq(forth.F, *points)).max() < 2.05  # pixels: F and keypoints agree
            rays = [camera.pixels_to_rays(p) for camera, p in zip((pair.camera1, pair.camera2), points, strict=True)]
            assert np.sqrt(sampson_sq(forth.E, *rays)).max() * pair.camera1.mean_focal < 2.05
            np.testing.assert_allclose(
                forth.F / forth.F[2, 2],
                (F := fundamental_from_essential(forth.E, pair.camera1.K, pair.camera2.K)) / F[2, 2],
            )


def test_uncalibrated_pairs_get_a_fundamental_matrix(tmp_path):
    path = make_database(tmp_path / "database.db", PAIRS[:2], prior=False)
    verify_database(path)
    for row in read_geometries(path):
        (_, rows, cols, data, config, F, E, H, qvec, tvec, *_) = row
        assert (cols, config, len(F), len(data)) == (2, Config.UNCALIBRATED, 72, 8 * rows)
        assert E is H is qvec is tvec is None
    for policy, config in (("always", Config.CALIBRATED), ("never", Config.UNCALIBRATED)):
        found = verify_database(path, calibrated=policy, overwrite=True)
        assert {geometry.config for geometry in found} == {config}


@pytest.mark.parametrize(
    ("model", "coefficients"),
    [
        ("OPENCV", (-0.2, 0.05, 0.002, -0.001)),
        ("OPENCV_FISHEYE", (0.02, 0.01, 0, 0)),
        ("FOV", (0.8,)),
        ("DIVISION", (-0.2,)),
        ("EUCM", (0.6, 1.1)),
    ],
)
def test_lens_distortion_is_removed(tmp_path, model, coefficients):
    lens = Camera(model, (*PAIRS[0].camera1.pinhole.params, *coefficients), 1024, 768)
    seen = [
        replace(
            pair,
            points1=lens.rays_to_pixels(pair.camera1.pixels_to_rays(pair.points1)),
            points2=lens.rays_to_pixels(pair.camera2.pixels_to_rays(pair.points2)),
            camera1=lens,
            camera2=lens,
        )
        for pair in PAIRS
    ]
    plain = verify_database(make_database(tmp_path / "plain.db", PAIRS))
    bent = verify_database(make_database(tmp_path / "bent.db", seen))
    for pair, one, other in zip(PAIRS, plain, bent, strict=True):
        assert pose_error_deg(other.R, other.t, pair.R, pair.t) < 1
        assert len({tuple(m) for m in one.matches} ^ {tuple(m) for m in other.matches}) <= 0.02 * len(one.matches)


def test_old_databases_lack_columns(tmp_path):
    path = make_database(tmp_path / "old.db", PAIRS[:1], old=True)
    new = make_database(tmp_path / "new.db", PAIRS[:1])
    verify_database(path)
    verify_database(new)
    assert read_geometries(path)[0] == read_geometries(new)[0][:8]


def test_undefined_geometries_count_as_not_done(database):
    execute(database, "INSERT INTO two_view_geometries (pair_id, rows, cols, config) VALUES (?, 0, 2, 0)", pair_id(0))
    assert len(verify_database(database)) == len(PAIRS)
    assert verify_database(database) == []


def test_rejected_pairs_are_degenerate(database):
    for options in (VerificationOptions(min_inliers=1000), VerificationOptions(min_confidence=1.0)):
        found = verify_database(database, options=options, overwrite=True)
        assert {geometry.config for geometry in found} == {Config.DEGENERATE}
        for row in read_geometries(database):
            assert row[1:5] == (0, 2, b"", Config.DEGENERATE) and not any(row[5:])


def test_quaternions_agree_with_colmap(rng):
    for angle in (0.0, 1e-9, 0.5, 3.0, np.pi):
        axis = rng.normal(size=3)
        R = rotation_from_vector(angle * axis / np.linalg.norm(axis))
        theirs = np.roll(pycolmap.Rotation3d(R).quat, 1)  # COLMAP stores w last
        ours = quaternion_from_rotation(R)
        assert min(np.abs(ours - theirs).max(), np.abs(ours + theirs).max()) < 1e-9


@pytest.mark.slow
def test_ratios_from_descriptors_help(tmp_path, rng):
    pairs = [make_pair(1000, 0.97, seed=seed) for seed in range(6)]
    path = make_database(tmp_path / "database.db", pairs)
    for index, (pair, (blob,)) in enumerate(zip(pairs, query(path, "SELECT data FROM matches"), strict=True)):
        matches = np.frombuffer(blob, np.uint32).reshape(-1, 2)
        first, second = rng.integers(0, 90, (2, 1000, 128), np.uint8)
        right = matches[pair.inliers]
        second[right[:, 1]] = first[right[:, 0]] + rng.integers(0, 30, (len(right), 128), np.uint8)
        for image, descriptors in ((2 * index + 1, first), (2 * index + 2, second)):
            execute(path, "INSERT INTO descriptors VALUES (?, 0, 1000, 128, ?)", image, descriptors)
    anything = VerificationOptions(min_inliers=0)
    with_ratios = verify_database(path, options=anything, ratio_from_descriptors=True)
    without = verify_database(path, options=anything, overwrite=True)
    fitting = np.array([[share_fitting(g, p) for g, p in zip(f, pairs, strict=True)] for f in (with_ratios, without)])
    assert (fitting[0] > 0.8).all() and (fitting[1] < 0.5).sum() >= 3


def test_ratios_are_made_once_for_each_pair(tmp_path, monkeypatch, rng):
    """The focal length, the geometry and the homography of a plane share the same ratios."""
    path, _ = make_collection(tmp_path / "database.db", count=4)
    execute(
        path, "UPDATE keypoints SET data = (SELECT data FROM keypoints WHERE image_id = 1)"
    )  # the cameras do not move
    for image in range(1, 5):
        descriptors = rng.integers(0, 90, (500, 128), np.uint8)
        execute(path, "INSERT INTO descriptors VALUES (?, 0, 500, 128, ?)", image, descriptors)
    made = []
    make = pair_verification.match_ratios
    monkeypatch.setattr(pair_verification, "match_ratios", lambda *given: made.append(len(given[2])) or make(*given))
    source = ColmapDatabase(path, ratio_from_descriptors=True)
    assert source.unpooled and len(source.pending) == 6
    source.close()
    found = verify_database(path, ratio_from_descriptors=True)
    assert any(geometry.H is not None for geometry in found)
    assert made == [500] * 6


def share_fitting(found, pair):
    """Return the share of the right matches within 2 px of the geometry."""
    if found.F is None:
        return 0.0
    return float(np.mean(sampson_sq(found.F, pair.points1[pair.inliers], pair.points2[pair.inliers]) < 4))


def test_a_failing_write_is_undone_completely(database):
    changed = verify_database(database)[0]
    before = read_geometries(database)
    source = ColmapDatabase(database)
    with pytest.raises(AttributeError):
        source.write([replace(changed, matches=changed.matches[1:]), None])
    source.close()
    assert read_geometries(database) == before


def test_overwriting_keeps_each_old_geometry_until_there_is_a_new_one(database):
    verify_database(database)
    before = dict(enumerate(read_geometries(database)))
    ColmapDatabase(database, overwrite=True).close()
    assert dict(enumerate(read_geometries(database))) == before
    options = VerificationOptions(estimation=Options(seed=1, max_error_px=2.0))
    verify_some(database, 2, options, settings="seed 1")
    half = dict(enumerate(read_geometries(database)))
    assert [half[i] == before[i] for i in range(6)] == [False, False, True, True, True, True]

    source = ColmapDatabase(database, settings="seed 1")  # the run resumes with and without --overwrite
    assert list(source.pending) == [pair_id(i) for i in range(2, 6)] and source.kept_settings == {"seed 1": 2}
    source.close()
    verify_some(database, 3, options, settings="seed 1")
    assert len(verify_database(database, options=options, overwrite=True, settings="seed 1")) == 1
    whole = read_geometries(database)
    assert not {*whole} & {*before.values()} and whole[:2] == [half[0], half[1]]
    assert verify_database(database, settings="seed 1") == []
    assert len(verify_database(database, options=options, overwrite=True, settings="seed 1")) == 6


def test_another_setting_starts_an_interrupted_overwrite_anew(database):
    verify_some(database, 2, VerificationOptions(), settings="one")
    source = ColmapDatabase(database, overwrite=True, settings="other")
    assert len(source.pending) == 6
    source.close()


def verify_some(path, count, options, settings):
    """Overwrite `count` pairs, like a killed run."""
    source = ColmapDatabase(path, overwrite=True, settings=settings)
    source.write([verify_pair(source.read(key), options) for key in source.pending[:count]])
    source.close()


def test_the_tool_and_settings_of_each_pair_are_known(database):
    some = [pair_id(i) for i in range(3)]
    source = ColmapDatabase(database, settings="one")
    source.write([verify_pair(source.read(key), VerificationOptions()) for key in some])
    source.close()
    pycolmap.geometric_verification(database)  # verifies the other pairs
    source = ColmapDatabase(database, settings="other")
    assert source.kept_settings == {"one": 3, None: 3} and not source.pending
    source.close()
    # A change by another program.
    execute(database, "UPDATE two_view_geometries SET rows = rows - 1 WHERE pair_id = ?", some[0])
    source = ColmapDatabase(database)
    assert source.kept_settings == {"one": 2, None: 4}
    source.close()


def test_colmap_accepts_our_tables(database, tmp_path):
    verify_database(database)
    assert ("caransac_geometries",) in query(database, "SELECT name FROM sqlite_master")
    with pycolmap.Database.open(database) as opened, pycolmap.Database.open(tmp_path / "merged.db") as merged:
        assert opened.num_verified_image_pairs() == 6
        pycolmap.Database.merge(opened, opened.__class__.open(tmp_path / "empty.db"), merged)
        assert merged.num_verified_image_pairs() == 6
        opened.clear_two_view_geometries()
    assert len(verify_database(database)) == 6


def test_a_database_verified_by_other_tools_is_not_changed(database):
    pycolmap.geometric_verification(database)
    before = database.read_bytes()
    assert verify_database(database) == []
    assert database.read_bytes() == before
