"""Results as plain values and in files, and their 3D points."""

import copy
import dataclasses
import io
import json
import pickle
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from memory import kept_bytes
from photographs import photograph

import caransac
from caransac import result_format
from caransac.geometry import Array, depths, epipolar_corrections, homogeneous, sampson_sq
from caransac.geometry import essential_from_pose as essential
from caransac.io.point_files import write_ply
from caransac.robust import pipeline
from caransac.synthetic import make_pair, make_query
from caransac_lab.synthetic import random_plane

TRACED = caransac.Options(keep_trace=True)


@pytest.fixture(scope="module")
def pair():
    return make_pair(400, outlier_ratio=0.4, noise_px=0.5, seed=8)


def estimates(pair):
    """Return results of all classes, successful and failed, with and without a trace."""
    points, cameras = (pair.points1, pair.points2), (pair.camera1, pair.camera2)
    sizes = {"image_size1": (1024, 768), "image_size2": (1024, 768)}
    with_photographs = {**(taken := photograph(np.random.default_rng(3))).pose, "images": taken.images}
    wall = random_plane(np.random.default_rng(4), num_points=300, inlier_ratio=0.7)
    return {
        "pose": caransac.estimate_relative_pose(*points, *cameras, options=TRACED),
        "focals": caransac.estimate_relative_pose(*points, **sizes),
        "fundamental": caransac.estimate_fundamental(*points, **sizes, options=TRACED),
        "homography": caransac.estimate_homography(*points),
        "any": caransac.estimate(*points, *cameras, options=TRACED),
        "wall": caransac.estimate(wall.points1, wall.points2, pair.camera1.K, pair.camera2.K),
        "refined": caransac.estimate(**with_photographs),
        "classical": caransac.estimate_relative_pose(*points, *cameras, options=caransac.Options(method="lm-lo")),
        "none": caransac.estimate(np.zeros((3, 2)), np.zeros((3, 2)), *cameras),
        "empty": caransac.estimate_fundamental(np.empty((0, 2)), np.empty((0, 2))),
    }


@pytest.fixture(scope="module")
def results(pair):
    return estimates(pair)


def assert_equal(one, other):
    """Assert that two values are identical, including types and shapes of arrays."""
    assert type(one) is type(other)
    if dataclasses.is_dataclass(one):
        for field in dataclasses.fields(one):
            assert_equal(getattr(one, field.name), getattr(other, field.name))
    elif isinstance(one, tuple):
        assert len(one) == len(other)
        for first, second in zip(one, other, strict=True):
            assert_equal(first, second)
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype and one.shape == other.shape
        np.testing.assert_array_equal(one, other)
    else:
        assert one == other


def test_every_result_survives_json_and_files(results, tmp_path):
    for name, result in results.items():
        text = json.dumps(result.to_dict(full=True), allow_nan=False)
        assert_equal(type(result).from_dict(json.loads(text)), result)
        result.save(tmp_path / f"{name}.json")
        assert_equal(caransac.load_result(tmp_path / f"{name}.json"), result)
        assert_equal(type(result).load(tmp_path / f"{name}.json"), result)
    file = io.BytesIO()
    results["pose"].save(file)
    assert json.loads(file.getvalue()) == results["pose"].to_dict(full=True)


def test_a_result_has_a_reliability_and_is_not_a_bool(results):
    assert results["pose"].is_confident() and results["pose"].is_confident(threshold=0.9)
    assert not dataclasses.replace(results["pose"], confidence=0.3).is_confident()
    assert dataclasses.replace(results["pose"], confidence=0.3).is_confident(0.3)
    assert not results["none"].is_confident() and not results["empty"].is_confident(0)
    for result in results.values():
        with pytest.raises(ValueError, match=r"result\.is_confident\(\).*result\.success"):
            bool(result)
    with pytest.raises(ValueError, match=r"confidence is None.*check success"):
        results["classical"].is_confident()
    with pytest.raises(ValueError, match="threshold must be a number from 0 to 1, not 50"):
        results["pose"].is_confident(50)


def test_a_dict_is_short_unless_it_is_full(results):
    for result in results.values():
        short, full = result.to_dict(), result.to_dict(full=True)
        assert set(full) - set(short) == {"points1", "points2", "refinement", "trace"} | (
            {"epipolar"} if isinstance(result, caransac.GeometryResult) else set()
        )
        assert short == {name: full[name] for name in short}
        named = {field.name for field in dataclasses.fields(result)}
        derived = {"rotation_deg", "parallax_px", "rotation_deviation_deg", "direction_deviation_deg"}
        derived |= {"num_refined", "noise_before_px"}
        assert set(full) == named | derived | {"type", "schema", "num_matches"}
    found = results["any"]
    values = found.to_dict()
    assert (values["type"], values["schema"], values["kind"]) == ("GeometryResult", 1, "pose")
    assert values["inliers"] == np.flatnonzero(found.inliers).tolist()
    assert values["R"] == found.R.tolist() and values["H"] is None
    assert values["camera1"] == found.camera1.to_dict() | {"focal_deviation": 0.0}
    assert values["probabilities"] == found.probabilities.tolist()
    assert values["num_matches"] == 400
    assert "points1" not in found.to_dict(full=True)["epipolar"], "shared parts are written once"


def test_a_result_tells_what_the_photographs_changed(results):
    refined, values = results["refined"], results["refined"].to_dict()
    assert refined.num_refined == values["num_refined"] == refined.refinement.num_refined > 200
    assert refined.noise_px < 0.3 * refined.noise_before_px == 0.3 * values["noise_before_px"]
    unused = dataclasses.replace(refined, refinement=dataclasses.replace(refined.refinement, is_used=False))
    assert (unused.num_refined, unused.noise_before_px) == (0, None)
    for name in ("pose", "homography", "none"):
        assert results[name].num_refined is None
        assert results[name].to_dict()["num_refined"] is results[name].to_dict()["noise_before_px"] is None


def test_future_fields_need_no_code():
    class Rival(NamedTuple):
        R: Array
        support: float

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Later:
        covariance: Array | None
        rivals: tuple[Rival, ...]
        known: bool = True

    Later.__annotations__ |= {"covariance": Array | None, "rivals": tuple[Rival, ...], "known": bool}
    later = Later(covariance=np.diag([1.0, 2.0]), rivals=(Rival(np.eye(3), 2.0),))
    plain = json.loads(json.dumps(result_format.fields_to_plain(later, full=True), allow_nan=False))
    assert plain["covariance"] == [[1.0, 0.0], [0.0, 2.0]]
    assert plain["rivals"] == [{"R": np.eye(3).tolist(), "support": 2.0}]
    again = Later(**result_format.fields_from_plain(Later, plain | {"unheard_of": 1}, 0))
    assert_equal(again.rivals, later.rivals)
    np.testing.assert_array_equal(again.covariance, later.covariance)
    del plain["known"]
    assert Later(**result_format.fields_from_plain(Later, plain, 0)).known


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"type": "Weights"}, "type must be RelativePoseResult, not 'Weights'"),
        ({"type": ["RelativePoseResult"]}, "type must be RelativePoseResult"),
        ({"type": "HomographyResult"}, "type must be RelativePoseResult, not 'HomographyResult'"),
        ({"schema": 2}, "schema must be 1, not 2: another version wrote it"),
        ({"success": "yes"}, "success: must be a bool, not 'yes'"),
        ({"stop_reason": "tired"}, "stop_reason: must be one of budget, .*, not 'tired'"),
        ({"num_matches": 10**15}, "points1 and points2 must have num_matches rows"),
        ({"inliers": [0, 400]}, "inliers: must be indices of the 400 matches"),
        ({"inliers": 5}, "inliers: must be a list, not 5"),
        ({"R": [[1, 0], [0, 1]]}, r"R: must have shape \(3, 3\), got \(2, 2\)"),
        ({"R": [[1, 0], [0]]}, "R: "),
        ({"R": {"shape": [10**6, 10**6]}}, "R: must be a list, or the shape of an empty array"),
        ({"points1": [[1, 2]] * 399}, "points1 and points2 must have num_matches rows"),
        ({"probabilities": [0.5]}, r"probabilities: must have shape \(400,\)"),
        ({"camera1": {"model": "PINHOLE"}}, "camera1: a camera dict has model, params"),
        ({"confidence": [1]}, r"confidence: must be a float, not \[1\]"),
        ({"alternatives": [{"R": []}]}, "alternatives: must have R, t, not "),
        ({"alternatives": [{"R": [[1]], "t": [1, 0, 0]}]}, r"alternatives: R: must have shape \(3, 3\), got \(1, 1\)"),
        ({"covariance": [[1.0]]}, r"covariance_of: must have shape \(1,\), got \(5,\)"),
        ({"covariance": [[1.0, 0.0]]}, r"covariance: must have shape \(1, 1\), got \(1, 2\)"),
        ({"elapsed_s": np.nan}, "elapsed_s: must be a float, not nan"),
        ({"R": [[1, 0, 0], [0, 1, 0], [0, 0, None]]}, "R: must be finite numbers"),
    ],
)
def test_what_is_no_result_is_refused_by_name(results, tmp_path, change, message):
    values = results["pose"].to_dict(full=True) | change
    (tmp_path / "r.json").write_text(json.dumps(values))
    with pytest.raises(ValueError, match=message) as raised:
        caransac.RelativePoseResult.load(tmp_path / "r.json")
    assert "r.json" in str(raised.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"probabilities": [0.5]}, r"probabilities: must have shape \(400,\), got \(1,\)"),
        ({"probabilities": [None] * 400}, "probabilities: must be finite numbers"),
        ({"state": [[0.0]]}, r"state: must have shape \(400, 1\), got \(1, 1\)"),
        ({"msac_scores": [[0.0] * 400] * 99}, r"msac_scores: must have shape \(\d+, 400\), got \(99, 400\)"),
        ({"best": [[1.0, 0.0], [0.0, 1.0]]}, r"best: must have shape \(3, 4\), got \(2, 2\)"),
        ({"models": [[[1.0] * 5] * 3]}, r"models: must have shape \(1, 3, 4\), got \(1, 3, 5\)"),
        ({"models": [1.0]}, r"models: must have shape \('k', 3, 'columns'\), got \(1,\)"),
        ({"samples": [[0, 400]]}, "samples: must be indices of the 400 matches"),
        ({"samples": [[0, -1]]}, "samples: must be indices of the 400 matches"),
        ({"samples": [3]}, r"samples: must have shape"),
        ({"noise": float("inf")}, "noise: must be a float, not inf"),
    ],
)
def test_rounds_that_do_not_fit_the_matches_are_refused_by_name(results, change, message):
    values = results["pose"].to_dict(full=True)
    values["trace"][-1] |= change
    with pytest.raises(ValueError, match=f"trace: {message}"):
        caransac.RelativePoseResult.from_dict(values)


def test_a_covariance_in_a_result_in_a_result_is_checked(results):
    values = results["any"].to_dict(full=True)
    values["epipolar"] |= {"covariance": [[1.0, 0.0]] * 2}
    with pytest.raises(ValueError, match=r"epipolar: covariance_of: must have shape \(2,\), got \(5,\)"):
        caransac.GeometryResult.from_dict(values)


def test_files_without_a_result_are_named(results, tmp_path):
    path = tmp_path / "r.json"
    with pytest.raises(FileNotFoundError, match=r"r\.json"):
        caransac.load_result(path)
    for text in ("", "[]", "[" * 100_000, "5", "{}"):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"r\.json"):
            caransac.load_result(path)
    path.write_text(json.dumps(results["any"].to_dict()))
    with pytest.raises(ValueError, match=r"points1 is missing; to_dict\(full=True\) and save\(\) include it"):
        caransac.load_result(path)


def test_inliers_become_points_in_space(pair, results):
    found = results["pose"]
    points = found.points3d
    assert points is found.points3d, "computed once"
    assert 0.95 * found.num_inliers <= len(points) <= found.num_inliers
    assert np.all(found.inliers[points.index]) and np.all(np.diff(points.index) > 0)
    for pixels, camera, R, t in (
        (pair.points1, pair.camera1, np.eye(3), np.zeros(3)),
        (pair.points2, pair.camera2, found.R, found.t),
    ):
        moved = points.xyz @ R.T + t
        assert np.all(moved[:, 2] > 0)
        seen = camera.rays_to_pixels(moved[:, :2] / moved[:, 2:])
        assert np.linalg.norm(seen - pixels[points.index], axis=1).max() < 2 * found.max_error_px
    # To first order the squared distances in both images add up to the squared Sampson distance.
    rays = [c.pixels_to_rays(p[points.index]) for c, p in ((pair.camera1, pair.points1), (pair.camera2, pair.points2))]
    sampson_px = np.sqrt(sampson_sq(essential(found.R, found.t), *rays)) * pair.camera1.mean_focal
    np.testing.assert_allclose(points.error_px * np.sqrt(2), sampson_px, rtol=0.02, atol=1e-3)
    toward1, toward2 = points.xyz, points.xyz - (-found.R.T @ found.t)
    lengths = np.linalg.norm(toward1, axis=1) * np.linalg.norm(toward2, axis=1)
    cosines = np.sum(toward1 * toward2, axis=1) / lengths
    np.testing.assert_allclose(points.angle_deg, np.degrees(np.arccos(cosines)), atol=0.2)
    assert repr(points).startswith(f"Points3D({len(points)} points, median angle ")
    assert_equal(results["any"].points3d.index, results["any"].epipolar.points3d.index)


def test_there_are_no_points_without_a_translation(results):
    for name in ("fundamental", "homography", "none", "empty"):
        assert results[name].points3d is None and results[name].parallax_px is None
    turned = dataclasses.replace(results["pose"], degeneracy="rotation")
    assert turned.points3d is None
    assert results["focals"].points3d is not None
    assert results["pose"].parallax_px > 10


def test_points_do_not_change_with_the_callers_arrays(pair):
    points1 = pair.points1.copy()
    found = caransac.estimate_relative_pose(points1, pair.points2, pair.camera1, pair.camera2)
    points1[:] = 0
    assert np.array_equal(found.points1, pair.points1)
    assert np.median(found.points3d.error_px) < 1


def test_corrections_meet_the_pose_to_first_order(rng):
    R, t = np.eye(3), np.array([1.0, 0, 0])
    X = np.c_[rng.uniform(-2, 2, (50, 2)), rng.uniform(4, 8, 50)]
    x1, x2 = X[:, :2] / X[:, 2:], (X + t)[:, :2] / X[:, 2:]
    noisy1, noisy2 = x1 + rng.normal(size=x1.shape) * 1e-3, x2 + rng.normal(size=x2.shape) * 1e-3
    first, second = epipolar_corrections(R, t, noisy1, noisy2)
    E = essential(R, t)
    np.testing.assert_allclose(np.sum(first**2 + second**2, axis=1), sampson_sq(E, noisy1, noisy2), rtol=1e-9)
    assert sampson_sq(E, noisy1 + first, noisy2 + second).max() < 1e-16
    assert np.allclose(homogeneous(x1) * depths(R, t, x1, x2)[:, :1], X)
    assert np.isnan(depths(R, t, [[0.1, 0.2]], [[0.1, 0.2]])).all(), "parallel rays"


def test_points_can_be_exported(results, tmp_path):
    points = results["pose"].points3d
    colours = np.tile(np.array([[255, 128, 0]], np.uint8), (len(points), 1))
    write_ply(tmp_path / "p.ply", points, colours)
    header, _, body = (tmp_path / "p.ply").read_bytes().partition(b"end_header\n")
    assert f"element vertex {len(points)}".encode() in header
    names = ("x", "y", "z", "angle_deg", "error_px")
    table = np.frombuffer(body, [(n, "<f4") for n in names] + [(n, "u1") for n in ("red", "green", "blue")])
    np.testing.assert_allclose(np.stack([table[n] for n in "xyz"], axis=1), points.xyz, rtol=1e-6)
    assert table["green"].tolist() == [128] * len(points)
    with pytest.raises(ValueError, match=r"colours must be \(\d+, 3\) uint8"):
        write_ply(tmp_path / "p.ply", points, colours.astype(float))
    with pytest.raises(ValueError, match=r"points3d must be a caransac\.Points3D, not NoneType"):
        write_ply(tmp_path / "p.ply", None)


def test_the_first_lines_of_the_readme_print_a_summary(capsys):
    guide = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    exec(re.search(r"```python\n(.*?)```", guide, re.DOTALL)[1], {})
    summary, *pose = capsys.readouterr().out.splitlines()
    assert len(summary) < 200 and summary.startswith("RelativePoseResult(success, rotation ")
    assert pose, "the pose is printed if the result is confident"


def deferred(calls):
    """Create a result that counts its assessments."""

    def assess():
        calls.append(1)
        return {"confidence": 0.7, "warnings": ()}

    values = dict.fromkeys(("probabilities", "trace", "noise_px")) | {"H": np.eye(3), "inliers": np.ones(4, bool)}
    values |= {"points1": np.zeros((4, 2)), "points2": np.zeros((4, 2)), "consensus": 4.0, "max_error_px": 1.0}
    values |= {"success": True, "stop_reason": "budget", "num_inliers": 4, "num_hypotheses": 1, "elapsed_s": 0.1}
    return caransac.HomographyResult.deferring(assess, **values)


def test_a_result_is_assessed_once_when_its_confidence_is_first_read():
    calls = []
    result = deferred(calls)
    assert (result.num_matches, result.H.tolist(), calls) == (4, np.eye(3).tolist(), [])
    assert not hasattr(result, "confidense") and calls == []
    assert (result.confidence, result.confidence, calls) == (0.7, 0.7, [1])
    assert not hasattr(result, "_assess"), "the inputs of the assessment are released"


@pytest.mark.parametrize(
    "derive", [copy.copy, lambda r: pickle.loads(pickle.dumps(r)), lambda r: dataclasses.replace(r, H=None)]
)
def test_copies_and_pickles_are_assessed(derive):
    calls = []
    other = derive(deferred(calls))
    assert (other.confidence, calls) == (0.7, [1])


def test_a_failed_assessment_is_tried_again():
    calls = []
    result = deferred(calls)
    whole = result.__dict__["_assess"]
    result.__dict__["_assess"] = lambda: (_ for _ in ()).throw(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        _ = result.confidence
    result.__dict__["_assess"] = whole
    assert result.confidence == 0.7


def test_a_thread_that_comes_late_to_the_assessment_gets_the_same():
    """This thread found no confidence, and another thread has assessed the result since then."""
    result = deferred([])
    assert result.confidence == 0.7
    assert result.__getattr__("confidence") == 0.7
    with pytest.raises(AttributeError, match="confidense"):
        _ = result.confidense


def test_estimates_are_assessed_when_they_are_read(monkeypatch):
    asked = []
    whole = pipeline.assess_confidence
    monkeypatch.setattr(pipeline, "assess_confidence", lambda *given: (asked.append(1), whole(*given))[1])
    pair = make_pair(200, seed=2)
    result = caransac.estimate_relative_pose(pair.points1, pair.points2, pair.camera1, pair.camera2)
    assert result.success and result.num_inliers > 50 and asked == []
    assert result.covariance.shape == (5, 5) and result.confidence > 0.5 and asked == [1]


@pytest.mark.parametrize("estimate", ["pose", "sizes", "fundamental", "homography", "absolute"])
def test_a_result_without_a_trace_keeps_no_arrays_of_the_rounds(estimate):
    n = 2000
    if estimate == "absolute":
        query = make_query(n, outlier_ratio=0.5, seed=3)
        found = caransac.estimate_absolute_pose(query.points2d, query.points3d, query.camera)
    else:
        pair = make_pair(n, outlier_ratio=0.5, seed=3)
        points, sizes = (pair.points1, pair.points2), {"image_size1": (1024, 768), "image_size2": (1024, 768)}
        found = {
            "pose": lambda: caransac.estimate_relative_pose(*points, pair.camera1, pair.camera2),
            "sizes": lambda: caransac.estimate_relative_pose(*points, **sizes),
            "fundamental": lambda: caransac.estimate_fundamental(*points),
            "homography": lambda: caransac.estimate_homography(*points),
        }[estimate]()
    unread = kept_bytes(found)
    _ = found.confidence
    read = kept_bytes(found)
    # The points for the kernels in double and in single precision, two probabilities and a score of each match.
    coordinates = 5 if estimate == "absolute" else 4
    assert unread - read < n * (coordinates * 12 + 3 * 4) + 10_000
