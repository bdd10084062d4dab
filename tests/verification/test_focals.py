"""Focal lengths of the cameras in a database: pooled over pairs, used with a deviation, reported and written."""

import csv
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from databases import execute, make_collection, make_database, query, read_geometries, some_pairs, verify_database

from caransac import Camera, Options, estimate_fundamental
from caransac.cli import main
from caransac.geometry import pose_error_deg, relative_pose, sampson_sq
from caransac.verification import ColmapDatabase, Config, VerificationOptions, verify
from caransac.verification.colmap import MAX_IMAGES
from caransac.verification.pair_verification import pair_seed

pytestmark = pytest.mark.slow

TRUE = 800.0
PAIRS = 21  # number of pairs of seven images


@pytest.fixture(scope="module")
def around(tmp_path_factory):
    """Images around a scene, without a prior focal length."""
    return make_collection(tmp_path_factory.mktemp("focals") / "around.db")


@pytest.fixture
def database(around, tmp_path):
    return shutil.copyfile(around[0], tmp_path / "database.db")


@pytest.fixture(scope="module")
def ahead(tmp_path_factory):
    """Images along their line of sight, which do not determine the focal length."""
    return make_collection(tmp_path_factory.mktemp("focals") / "ahead.db", "ahead")[0]


def cameras_of(path):
    return query(path, "SELECT params, prior_focal_length FROM cameras")


def pose_errors(found, poses):
    errors = []
    for geometry in found:
        first, second = (poses[image - 1] for image in divmod(geometry.key, MAX_IMAGES))
        errors.append(pose_error_deg(geometry.R, geometry.t, *relative_pose(*first, *second)))
    return errors


def test_without_priors_pairs_are_verified_with_the_pooled_focal_length(around, database):
    before = cameras_of(database)
    found = verify_database(database)
    assert {geometry.config for geometry in found} == {Config.CALIBRATED} and len(found) == PAIRS
    assert np.median(pose_errors(found, around[1])) < 0.5
    assert cameras_of(database) == before, "the user's cameras are not changed"
    keypoints = {
        image: np.frombuffer(blob, np.float32).reshape(-1, 2).astype(float)
        for image, blob in query(database, "SELECT image_id, data FROM keypoints")
    }
    for geometry in found:  # F refers to the pixels and does not depend on the focal length in the database
        first, second = divmod(geometry.key, MAX_IMAGES)
        points1, points2 = keypoints[first][geometry.matches[:, 0]], keypoints[second][geometry.matches[:, 1]]
        assert np.sqrt(sampson_sq(geometry.F, points1, points2)).max() < 3.05


def test_the_guess_in_the_database_does_not_matter(database):
    expected = verify_database(database)
    execute(database, "UPDATE cameras SET params = ?", np.array([333.0, 512, 384]))
    found = verify_database(database, overwrite=True)
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_allclose(one.R, other.R, atol=1e-6)


def test_focal_lengths_are_written_when_asked(database, tmp_path, capsys):
    report = tmp_path / "report.csv"
    assert main(["verify", str(database), "--write-focals", "--workers", "1", "--report", str(report)]) == 0
    output = capsys.readouterr().out
    assert "Camera 1: focal length" in output and f"of {PAIRS} pairs constrain it" in output
    ((blob, prior),) = cameras_of(database)
    focal, cx, cy = np.frombuffer(blob)
    assert focal == pytest.approx(TRUE, rel=0.015)
    assert (cx, cy, prior) == (512, 384, 1)
    with report.open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == PAIRS
    for line in lines:
        for side in "12":
            assert float(line[f"focal{side}"]) == pytest.approx(focal, abs=0.01)
            assert 0.005 < float(line[f"focal_deviation{side}"]) < 0.03
            assert line[f"focal_source{side}"] == "pooled"


@pytest.mark.parametrize("write_focals", [False, True])
def test_continued_runs_end_with_the_same_geometries(database, tmp_path, write_focals):
    cut = shutil.copyfile(database, tmp_path / "cut.db")
    verify_database(database, write_focals=write_focals)
    source = ColmapDatabase(cut, write_focals=write_focals)
    source.close()  # opening without writing
    assert cameras_of(cut) != cameras_of(database) or not write_focals
    verify_some(cut, write_focals)
    assert 0 < len(read_geometries(cut)) < PAIRS
    verify_database(cut, write_focals=write_focals)
    assert read_geometries(cut) == read_geometries(database)
    assert cameras_of(cut) == cameras_of(database)


def verify_some(path, write_focals):
    """Run a verification that is interrupted after its first batch."""

    class Interrupted(ColmapDatabase):
        def write(self, found):
            if len(read_geometries(self.path)):
                raise KeyboardInterrupt
            super().write(found)

    source = Interrupted(path, write_focals=write_focals)
    source.batch_size = 5
    with ThreadPoolExecutor(1) as executor, pytest.raises(KeyboardInterrupt):
        verify(source, executor, VerificationOptions(), in_flight=1)
    source.close()


def test_kept_pairs_are_reported_with_their_focal_lengths(database, tmp_path, capsys):
    verify_database(database)
    report = tmp_path / "report.csv"
    assert main(["verify", str(database), "--report", str(report)]) == 0
    assert f"kept {PAIRS} from before" in capsys.readouterr().out
    with report.open(newline="") as file:
        assert {line["focal_source1"] for line in csv.DictReader(file)} == {"pooled"}


def test_with_an_unknown_focal_length_pairs_get_fundamental_matrices(ahead, tmp_path, capsys):
    path = shutil.copyfile(ahead, tmp_path / "database.db")
    before = cameras_of(path)
    assert main(["verify", str(path), "--write-focals"]) == 0
    assert "Camera 1: focal length unknown" in capsys.readouterr().out
    assert cameras_of(path) == before, "unknown focal lengths are not written"
    source = ColmapDatabase(path, overwrite=True)
    pair = source.read(source.pending[0])
    source.close()
    found = verify_database(path, overwrite=True)
    assert {geometry.config for geometry in found} <= {Config.UNCALIBRATED, Config.PLANAR_OR_PANORAMIC}
    options = Options(max_error_px=3.0, seed=pair_seed(0, pair.image1, pair.image2))
    sizes = {"image_size1": (1024, 768), "image_size2": (1024, 768), "same_camera": True}
    expected = estimate_fundamental(pair.points1, pair.points2, options=options, **sizes)
    np.testing.assert_array_equal(found[0].F, expected.F)


def test_calibrated_never_uses_no_sizes(database):
    source = ColmapDatabase(database, calibrated="never")
    pair = source.read(source.pending[0])
    assert not source.unpooled and pair.image_sizes is None
    source.close()
    found = verify_database(database, calibrated="never")
    options = Options(max_error_px=3.0, seed=pair_seed(0, pair.image1, pair.image2))
    np.testing.assert_array_equal(found[0].F, estimate_fundamental(pair.points1, pair.points2, options=options).F)


def test_priors_are_known_to_a_few_per_cent(tmp_path):
    path, poses = make_collection(tmp_path / "prior.db", prior=True, stored_focal=1.05 * TRUE)
    errors, tight = {}, VerificationOptions(estimation=Options(max_error_px=2.0))
    for deviation in (None, 0.0):
        found = verify_database(path, options=tight, focal_deviation=deviation, overwrite=True)
        errors[deviation] = np.median(pose_errors(found, poses))
        assert {geometry.config for geometry in found} == {Config.CALIBRATED}
    assert errors[None] < 0.7 * errors[0.0]
    always = verify_database(path, calibrated="always", overwrite=True)
    exact = verify_database(path, focal_deviation=0.0, overwrite=True)
    for one, other in zip(always, exact, strict=True):
        np.testing.assert_array_equal(one.E, other.E)


def test_deviations_on_the_command_line(database, capsys):
    for text in ("0", "4%", "0.02"):
        assert main(["verify", str(database), "--focal-deviation", text, "--workers", "1"]) == 0
    for text in ("-1", "much", "300%"):
        with pytest.raises(SystemExit):
            main(["verify", str(database), "--focal-deviation", text])
        assert "is not a relative deviation" in capsys.readouterr().err
    assert main(["verify", str(database), "--calibrated", "always", "--focal-deviation", "4%"]) == 2
    assert "focal_deviation must be left out or 0" in capsys.readouterr().err


def test_unknown_lens_models_are_not_an_error_without_a_prior(tmp_path):
    path = make_database(tmp_path / "lens.db", some_pairs(1), prior=False)
    execute(path, "UPDATE cameras SET model = 7")
    source = ColmapDatabase(path)
    pair = source.read(source.pending[0])
    source.close()
    assert pair.image_sizes is None and pair.cameras is None
    assert [geometry.config for geometry in verify_database(path)] == [Config.UNCALIBRATED]


def test_a_fisheye_is_known_exactly_or_not_at_all(tmp_path):
    lens = Camera("FISHEYE", (*some_pairs(1)[0].camera1.pinhole.params,), 1024, 768)
    for prior in (True, False):
        pairs = [replace(pair, camera1=lens, camera2=lens) for pair in some_pairs(1)]
        source = ColmapDatabase(make_database(tmp_path / f"{prior}.db", pairs, prior=prior))
        pair, focals = source.read(source.pending[0]), source.focals(source.pending[0])
        source.close()
        assert [focal.deviation for focal in focals] == ([0.0] * 2 if prior else [None] * 2)
        assert (pair.cameras is not None) == (pair.image_sizes is not None) == prior
        assert not source.unpooled


def test_cameras_of_single_images_cannot_be_pooled(tmp_path):
    path = make_database(tmp_path / "single.db", some_pairs(2), prior=False)
    source = ColmapDatabase(path)
    pair = source.read(source.pending[0])
    assert not source.unpooled and pair.same_camera is None
    assert pair.image_sizes == ((1024, 768), (1024, 768))
    assert [focal.source for focal in source.focals(source.pending[0])] == ["unknown"] * 2
    source.close()
