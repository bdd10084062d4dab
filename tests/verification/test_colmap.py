"""Verification of COLMAP databases: the geometry against the truth, as COLMAP reads it, and runs that are cut off."""

import csv
import shutil
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pycolmap
import pytest
from calls import Deadly
from databases import execute, make_database, pair_id, read_geometries, some_pairs

from caransac import Options
from caransac.camera import Camera
from caransac.cli import main
from caransac.geometry import (
    fundamental_from_essential,
    homogeneous,
    pose_error_deg,
    quaternion_from_rotation,
    rotation_angle_deg,
    rotation_from_vector,
    sampson_sq,
)
from caransac.synthetic import make_pair
from caransac.verification import ColmapDatabase, Config, PairMatches, VerificationOptions, open_executor, verify
from caransac.verification.estimation import pair_seed, verify_pair

PAIRS = some_pairs(6)


def run(path, workers=2, options=VerificationOptions(), **given):  # noqa: B008  # frozen
    source, found = ColmapDatabase(path, **given), []
    with ThreadPoolExecutor(workers) as executor:
        verify(source, executor, options, on_batch=found.extend)
    source.close()
    return sorted(found, key=lambda geometry: geometry.key)


@pytest.fixture(scope="module")
def matched(tmp_path_factory):
    return make_database(tmp_path_factory.mktemp("colmap") / "matched.db", PAIRS)


@pytest.fixture
def database(matched, tmp_path):
    return shutil.copyfile(matched, tmp_path / "database.db")


def as_matches(pair, cameras=True):
    """A pair as a source reads it."""
    points1, points2 = (points.astype(np.float32) for points in (pair.points1, pair.points2))
    if cameras:
        points1 = pair.camera1.undistort_pixels(points1.astype(float))
        points2 = pair.camera2.undistort_pixels(points2.astype(float))
    return PairMatches(
        key=0,
        image1="a",
        image2="b",
        matches=np.stack([np.arange(len(pair.points1))] * 2, axis=1).astype(np.uint32),
        points1=points1,
        points2=points2,
        cameras=(pair.camera1.pinhole, pair.camera2.pinhole) if cameras else None,
    )


# The geometry


def test_colmap_reads_the_true_pose_in_both_orders(database):
    run(database)
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
    run(path)
    for row in read_geometries(path):
        (_, rows, cols, data, config, F, E, H, qvec, tvec, *_) = row
        assert (cols, config, len(F), len(data)) == (2, Config.UNCALIBRATED, 72, 8 * rows)
        assert E is H is qvec is tvec is None
    assert {found.config for found in run(path, calibrated="always", overwrite=True)} == {Config.CALIBRATED}
    assert {found.config for found in run(path, calibrated="never", overwrite=True)} == {Config.UNCALIBRATED}


def test_old_databases_lack_columns(tmp_path):
    path = make_database(tmp_path / "old.db", PAIRS[:1], old=True)
    new = make_database(tmp_path / "new.db", PAIRS[:1])
    run(path)
    run(new)
    assert read_geometries(path)[0] == read_geometries(new)[0][:8]


def test_undefined_geometries_count_as_not_done(database):
    execute(database, "INSERT INTO two_view_geometries (pair_id, rows, cols, config) VALUES (?, 0, 2, 0)", pair_id(0))
    assert len(run(database)) == len(PAIRS)
    assert run(database) == []


@pytest.mark.parametrize("distorted", [False, True])
def test_planes_are_told_apart(rng, distorted):
    camera = Camera("RADIAL", (900, 512, 384, -0.1, 0.02), 1024, 768) if distorted else PAIRS[0].camera1
    rays1 = camera.pixels_to_rays(rng.uniform((50, 50), (970, 710), (300, 2)))
    R, t = rotation_from_vector([0.05, -0.1, 0.02]), np.array([0.4, 0.1, 0.05])
    normal = np.array([0.2, -0.1, 1.0]) / 4  # of the plane, over its distance
    moved = homogeneous(rays1) @ (R + np.outer(t, normal)).T
    points1, points2 = camera.rays_to_pixels(rays1), camera.rays_to_pixels(moved[:, :2] / moved[:, 2:])
    points1, points2 = (points + rng.normal(size=points.shape) * 0.3 for points in (points1, points2))
    plane = replace(PAIRS[0], points1=points1, points2=points2, camera1=camera, camera2=camera)
    found = verify_pair(as_matches(plane), VerificationOptions())
    assert found.config == Config.PLANAR
    assert pose_error_deg(found.R, found.t, R, t) < 10  # from noisy matches of one plane no better
    expected = camera.K @ (R + np.outer(t, normal)) @ np.linalg.inv(camera.K)
    np.testing.assert_allclose(found.H / found.H[2, 2], expected / expected[2, 2], rtol=0.05, atol=2)
    if not distorted:
        assert verify_pair(as_matches(plane, cameras=False), VerificationOptions()).config == Config.PLANAR_OR_PANORAMIC


def test_rotations_are_told_apart(rng):
    camera = PAIRS[0].camera1
    points1 = rng.uniform((100, 100), (900, 650), (300, 2))
    R = rotation_from_vector([0.02, 0.1, -0.05])
    moved = homogeneous(camera.pixels_to_rays(points1)) @ R.T
    points2 = camera.rays_to_pixels(moved[:, :2] / moved[:, 2:]) + rng.normal(size=points1.shape) * 0.3
    wrong = rng.random(300) < 0.3
    points2[wrong] = rng.uniform((0, 0), (1024, 768), (wrong.sum(), 2))
    found = verify_pair(as_matches(replace(PAIRS[0], points1=points1, points2=points2)), VerificationOptions())
    assert found.config == Config.PANORAMIC
    assert found.E is None and found.F is None
    np.testing.assert_array_equal(found.t, 0)
    assert rotation_angle_deg(found.R @ R.T) < 0.05
    expected = camera.K @ R @ np.linalg.inv(camera.K)
    np.testing.assert_allclose(found.H / found.H[2, 2], expected / expected[2, 2], rtol=1e-2, atol=1)


def test_rejected_pairs_are_degenerate(database):
    for options in (VerificationOptions(min_inliers=1000), VerificationOptions(min_confidence=1.0)):
        found = run(database, options=options, overwrite=True)
        assert {geometry.config for geometry in found} == {Config.DEGENERATE}
        for row in read_geometries(database):
            assert row[1:5] == (0, 2, b"", Config.DEGENERATE) and not any(row[5:])


@pytest.mark.parametrize("count", [0, 1, 4, 6])
def test_hopeless_pairs_are_degenerate(count):
    pair = make_pair(max(count, 1), 0.0)
    pair = replace(pair, points1=pair.points1[:count], points2=pair.points2[:count])
    for cameras in (True, False):
        assert verify_pair(as_matches(pair, cameras), VerificationOptions(min_inliers=0)).config in (
            (Config.DEGENERATE,) if count < 6 else tuple(Config)
        )
    same = replace(pair, points1=np.full((30, 2), 5.0), points2=np.full((30, 2), 7.0))
    assert verify_pair(as_matches(same), VerificationOptions()).config == Config.DEGENERATE


def test_quaternions_agree_with_colmap(rng):
    for angle in (0.0, 1e-9, 0.5, 3.0, np.pi):
        axis = rng.normal(size=3)
        R = rotation_from_vector(angle * axis / np.linalg.norm(axis))
        theirs = np.roll(pycolmap.Rotation3d(R).quat, 1)  # w comes last there
        ours = quaternion_from_rotation(R)
        assert min(np.abs(ours - theirs).max(), np.abs(ours + theirs).max()) < 1e-9


def test_ratios_from_descriptors_help(tmp_path, rng):
    pairs = [make_pair(1000, 0.97, seed=seed) for seed in range(6)]
    path = make_database(tmp_path / "database.db", pairs)
    for index, (pair, (blob,)) in enumerate(zip(pairs, execute_all(path, "SELECT data FROM matches"), strict=True)):
        matches = np.frombuffer(blob, np.uint32).reshape(-1, 2)
        first, second = rng.integers(0, 90, (2, 1000, 128), np.uint8)
        right = matches[pair.inliers]
        second[right[:, 1]] = first[right[:, 0]] + rng.integers(0, 30, (len(right), 128), np.uint8)
        for image, descriptors in ((2 * index + 1, first), (2 * index + 2, second)):
            execute(path, "INSERT INTO descriptors VALUES (?, 0, 1000, 128, ?)", image, descriptors)
    anything = VerificationOptions(min_inliers=0)
    with_ratios = run(path, options=anything, ratio_from_descriptors=True)
    without = run(path, options=anything, overwrite=True)
    fitting = np.array([[share_fitting(g, p) for g, p in zip(f, pairs, strict=True)] for f in (with_ratios, without)])
    assert (fitting[0] > 0.8).all() and (fitting[1] < 0.5).sum() >= 3


def share_fitting(found, pair):
    """Share of the right matches within 2 px of the geometry."""
    if found.F is None:
        return 0.0
    return float(np.mean(sampson_sq(found.F, pair.points1[pair.inliers], pair.points2[pair.inliers]) < 4))


def execute_all(path, command):
    connection = sqlite3.connect(path)
    try:
        return connection.execute(command).fetchall()
    finally:
        connection.close()


# The run


def test_workers_batches_and_order_change_nothing(database, tmp_path):
    expected = run(database, workers=1)
    rows = read_geometries(database)
    other = shutil.copyfile(database, tmp_path / "other.db")
    execute(other, "DELETE FROM two_view_geometries WHERE pair_id % 2 = 0")
    source = ColmapDatabase(other)
    source.batch_size, source.pending = 1, list(source.pending)[::-1]
    with ThreadPoolExecutor(4) as executor:
        verify(source, executor, VerificationOptions())
    source.close()
    assert read_geometries(other) == rows
    assert [g.num_matches for g in expected] == [200] * len(PAIRS)


def test_seeds_depend_on_the_run_and_on_both_names():
    seeds = {pair_seed(seed, *names) for seed in (0, 1) for names in (("a", "b"), ("b", "a"), ("a", "c"))}
    assert len(seeds) == 6 and all(0 <= seed < 2**64 for seed in seeds)


def test_an_error_keeps_what_is_done(database):
    execute(database, "UPDATE keypoints SET rows = 0, data = x'' WHERE image_id = ?", 2 * len(PAIRS))
    source = ColmapDatabase(database)
    source.batch_size = 1
    with ThreadPoolExecutor(1) as executor, pytest.raises(ValueError, match="match again"):
        verify(source, executor, VerificationOptions(), in_flight=1)
    source.close()
    assert len(read_geometries(database)) == len(PAIRS) - 1


def test_a_failing_write_is_undone_whole(database):
    changed = run(database)[0]
    before = read_geometries(database)
    source = ColmapDatabase(database)
    with pytest.raises(AttributeError):
        source.write([replace(changed, matches=changed.matches[1:]), None])
    source.close()
    assert read_geometries(database) == before


def test_overwriting_removes_the_old_only_with_the_first_new(database):
    run(database)
    before = read_geometries(database)
    ColmapDatabase(database, overwrite=True).close()
    assert read_geometries(database) == before
    changed = run(database, options=VerificationOptions(estimation=Options(seed=1, max_error_px=2.0)), overwrite=True)
    assert len(changed) == len(PAIRS) and read_geometries(database) != before


KILLED = """
import os, signal, sys
from caransac.cli import main
from caransac.verification import ColmapDatabase

write, batches = ColmapDatabase.write, []

def write_once(self, found):
    batches.append(found)
    if len(batches) > 1:
        os.kill(os.getpid(), int(sys.argv[1]))
    write(self, found)

if __name__ == "__main__":
    ColmapDatabase.write = write_once
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background jobs ignore
    sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_run_continues_to_the_same_database(tmp_path, kill):
    whole = make_database(tmp_path / "whole.db", some_pairs(112, num_points=150))
    cut = shutil.copyfile(whole, tmp_path / "cut.db")
    run(whole)
    (tmp_path / "killed.py").write_text(KILLED)
    command = [sys.executable, tmp_path / "killed.py", str(int(kill)), "verify", str(cut), "--workers", "2"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    errors = process.communicate(timeout=120)[1]  # returns when the workers are gone too: they hold the pipes
    assert execute_all(cut, "PRAGMA integrity_check") == [("ok",)]
    done = len(read_geometries(cut))
    assert 0 < done < 112
    if kill == signal.SIGINT:
        assert process.returncode == 130 and f"{done} of 112 pairs done" in errors
    assert len(run(cut)) == 112 - done
    assert read_geometries(cut) == read_geometries(whole)


def test_a_worker_that_dies_is_an_error(database):
    source = ColmapDatabase(database)
    source.read = lambda _: Deadly()
    with (
        pytest.raises(OSError, match="a worker died"),
        open_executor(2) as (executor, in_flight),
    ):
        verify(source, executor, VerificationOptions(), in_flight=in_flight)
    source.close()


# The report


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_report_covers_earlier_runs(database, tmp_path, ending, capsys):
    report = tmp_path / f"report.{ending}"
    assert main(["verify", str(database), "--report", str(report)]) == 0
    assert "6 calibrated" in capsys.readouterr().out
    first = read_report(report)
    assert [line["image1"] for line in first] == [f"scene/{2 * i + 1:03d}.png" for i in range(len(PAIRS))]
    for line, row in zip(first, read_geometries(database), strict=True):
        assert (int(line["matches"]), int(line["inliers"]), line["config"]) == (200, row[1], "calibrated")
        assert float(line["ratio"]) == pytest.approx(row[1] / 200)
        assert 0 < float(line["confidence"]) <= 1 and float(line["ms"]) > 0

    execute(database, "DELETE FROM two_view_geometries WHERE pair_id = ?", pair_id(2))
    assert main(["verify", str(database), "--report", str(report)]) == 0
    assert "kept 5 from before" in capsys.readouterr().out
    second = read_report(report)
    assert [line for i, line in enumerate(second) if i != 2] == [line for i, line in enumerate(first) if i != 2]
    assert second[2] | {"ms": 0} == first[2] | {"ms": 0}

    report.unlink()  # all that is left is the database
    assert main(["verify", str(database), "--report", str(report)]) == 0
    third = read_report(report)
    assert [line["inliers"] for line in third] == [line["inliers"] for line in first]
    assert all(line["confidence"] in ("", None) and line["ms"] in ("", None) for line in third)


def read_report(path):
    if path.suffix == ".csv":
        with path.open(newline="") as file:
            return list(csv.DictReader(file))
    import pyarrow.parquet

    return pyarrow.parquet.read_table(path).to_pylist()
