"""The file of the viewer: its content is right, and it cannot do harm."""

import base64
import dataclasses
import hashlib
import json
import re
import sys
from importlib.resources import files

import numpy as np
import pytest
from photographs import photograph

import caransac
from caransac.camera import Camera
from caransac.geometry import (
    essential_from_pose,
    fundamental_from_essential,
    rotation_from_vector,
    sampson_sq,
    split_pose,
)
from caransac.synthetic import make_pair, transfer
from caransac.viewer import write_report
from caransac.viewer.report import SCRIPTS

TRACED = caransac.Options(keep_trace=True, early_stop=False, rounds=3)


def unpack(text, dtype):
    return np.frombuffer(base64.b64decode(text), dtype)


def content_of(path):
    found = re.search(r'<script type="application/json" id="content">(.*?)</script>', path.read_text(), re.DOTALL)
    return json.loads(found[1])


@pytest.fixture(scope="module")
def pair():
    return make_pair(num_points=300, outlier_ratio=0.6, seed=3)


@pytest.fixture(scope="module")
def pose(pair):
    return caransac.estimate_relative_pose(
        pair.points1, pair.points2, pair.camera1, pair.camera2, scores=pair.scores, score_kind="ratio", options=TRACED
    )


def test_every_round_has_its_probabilities_matrix_and_distances(tmp_path, pair, pose):
    path = write_report(
        tmp_path / "made" / "report.html", pose, pair.points1, pair.points2, camera1=pair.camera1, camera2=pair.camera2
    )
    content = content_of(path)
    assert len(content["rounds"]) == len(pose.trace) == 4
    assert content["rounds"][0]["F"] is None
    K1, K2 = pair.camera1.K, pair.camera2.K
    for shown, seen in zip(content["rounds"], pose.trace, strict=True):
        np.testing.assert_allclose(unpack(shown["probabilities"], "u1") / 255, seen.probabilities, atol=0.51 / 255)
        assert len(shown["hypotheses"]) == len(seen.models)
        if seen.best is None:
            continue
        # The last round shows the final answer.
        R, t = (pose.R, pose.t) if seen is pose.trace[-1] else split_pose(seen.best)
        F = fundamental_from_essential(essential_from_pose(R, t), K1, K2)
        np.testing.assert_allclose(np.reshape(shown["F"], (3, 3)), F / np.linalg.norm(F), atol=1e-12)
        # With equal cameras and square pixels, distances between rays correspond to distances in pixels.
        expected = np.sqrt(sampson_sq(F, pair.points1, pair.points2))
        distances = unpack(shown["distances"], "<u2") / 256  # as a multiple of the threshold
        in_thresholds = expected / pose.max_error_px
        np.testing.assert_allclose(distances, np.minimum(in_thresholds, 65535 / 256), atol=0.51 / 256)
    last = content["rounds"][-1]
    assert last["numInliers"] == pose.num_inliers
    assert last["apartDeg"] == pytest.approx(0, abs=1e-9)
    assert content["estimate"]["R"] == pose.R.ravel().tolist()


@pytest.mark.parametrize("plane", [False, True])
def test_refined_points_are_drawn_beside_the_given_ones(tmp_path, rng, plane):
    taken = photograph(rng, flat=plane)
    size = taken.images[0].shape[::-1]
    sizes = {"image_size1": size, "image_size2": size}
    found = caransac.estimate(**(taken.matches | sizes if plane else taken.pose), images=taken.images)
    assert (found.H is not None) is plane
    cameras = {} if plane else {"camera1": taken.camera, "camera2": taken.camera}
    content = content_of(write_report(tmp_path / "r.html", found, taken.points1, taken.points2, **cameras))
    drawn, given = unpack(content["images"][1]["points"], "<f4"), unpack(content["given2"], "<f4")
    np.testing.assert_allclose(drawn.reshape(-1, 2), found.refinement.points2, atol=1e-4)
    np.testing.assert_allclose(given.reshape(-1, 2), taken.points2, atol=1e-4)
    summary = content["summary"]
    assert (summary["numRefined"], summary["noiseBeforePx"]) == (found.num_refined, found.noise_before_px)
    assert content["rounds"][-1]["numInliers"] == found.num_inliers
    alone = caransac.estimate(**taken.pose)
    content = content_of(write_report(tmp_path / "r.html", alone, taken.points1, taken.points2, **cameras))
    assert content["given2"] is content["summary"]["numRefined"] is None


def test_the_3d_points_project_to_their_matches(tmp_path, pair, pose):
    path = write_report(
        tmp_path / "r.html", pose, pair.points1, pair.points2, camera1=pair.camera1, camera2=pair.camera2
    )
    cloud = content_of(path)["cloud"]
    index, points = unpack(cloud["index"], "<u4"), unpack(cloud["points"], "<f4").reshape(-1, 3)
    assert len(index) > 80
    np.testing.assert_array_equal(index, pose.points3d.index)
    np.testing.assert_allclose(points, pose.points3d.xyz, rtol=1e-6)
    for pixels, camera, R, t in (
        (pair.points1, pair.camera1, np.eye(3), np.zeros(3)),
        (pair.points2, pair.camera2, pose.R, pose.t),
    ):
        moved = points @ R.T + t
        assert np.all(moved[:, 2] > 0)
        seen = camera.rays_to_pixels(moved[:, :2] / moved[:, 2:])
        assert np.median(np.linalg.norm(seen - pixels[index], axis=1)) < 1.0


def test_a_fundamental_matrix_needs_no_cameras_and_takes_them(tmp_path, pair):
    found = caransac.estimate_fundamental(
        pair.points1, pair.points2, scores=pair.scores, score_kind="ratio", options=TRACED
    )
    content = content_of(write_report(tmp_path / "f.html", found, pair.points1, pair.points2))
    assert content["kind"] == "fundamental"
    assert content["estimate"] is None
    assert content["cloud"] is None
    assert content["rounds"][-1]["hypotheses"] == []
    assert content["rounds"][-1]["numInliers"] == found.num_inliers
    np.testing.assert_allclose(np.reshape(content["rounds"][-1]["F"], (3, 3)), found.F)

    with_cameras = write_report(
        tmp_path / "f.html", found, pair.points1, pair.points2, camera1=pair.camera1, camera2=pair.camera2
    )
    content = content_of(with_cameras)
    R, t = caransac.pose_from_fundamental(
        found.F, pair.points1[found.inliers], pair.points2[found.inliers], pair.camera1, pair.camera2
    )
    np.testing.assert_allclose(np.reshape(content["estimate"]["R"], (3, 3)), R, atol=1e-9)
    np.testing.assert_allclose(content["estimate"]["t"], t, atol=1e-9)


@pytest.mark.parametrize("method", ["ca-ransac", "lm-lo"])
def test_a_homography_has_transfer_errors_and_no_pose(tmp_path, pair, method):
    """The error is the root of half the sum of the squared errors in both directions, in pixels."""
    H = np.array([[1.1, 0.05, -30], [-0.04, 0.95, 20], [5e-5, -2e-5, 1]])
    points2 = pair.points2.copy()
    points2[:150] = transfer(H, pair.points1[:150]) + np.random.default_rng(0).normal(size=(150, 2))
    options = caransac.Options(keep_trace=method == "ca-ransac", method=method)
    found = caransac.estimate_homography(pair.points1, points2, options=options)
    given = {"camera1": pair.camera1, "camera2": pair.camera2}
    content = content_of(write_report(tmp_path / "h.html", found, pair.points1, points2, **given))
    assert (content["kind"], content["estimate"], content["cloud"]) == ("homography", None, None)
    last = content["rounds"][-1]
    assert (last["F"], last["hypotheses"]) == (None, [])
    assert last["H"] == content["summary"]["H"] == found.H.ravel().tolist()
    assert last["numInliers"] == found.num_inliers
    forth = np.sum((transfer(found.H, pair.points1) - points2) ** 2, axis=1)
    back = np.sum((transfer(np.linalg.inv(found.H), points2) - pair.points1) ** 2, axis=1)
    in_thresholds = np.sqrt((forth + back) / 2) / found.max_error_px
    distances = unpack(last["distances"], "<u2") / 256
    np.testing.assert_allclose(distances[:150], in_thresholds[:150], atol=0.51 / 256)


def test_classical_results_show_their_inliers(tmp_path, pair):
    found = caransac.estimate_relative_pose(
        pair.points1, pair.points2, pair.camera1.K, pair.camera2.K, options=caransac.Options(method="lm-lo")
    )
    path = write_report(
        tmp_path / "r.html", found, pair.points1, pair.points2, camera1=pair.camera1.K, camera2=pair.camera2.K
    )
    content = content_of(path)
    assert content["hasProbabilities"] is False
    assert np.array_equal(unpack(content["rounds"][0]["probabilities"], "u1") == 255, found.inliers)


@pytest.mark.parametrize("count", [0, 1, 4])
def test_hopeless_data_make_a_report_too(tmp_path, pair, count):
    points1, points2 = pair.points1[:count], pair.points2[:count]
    for options in (TRACED, caransac.Options(), caransac.Options(method="lm-lo")):
        found = caransac.estimate_relative_pose(points1, points2, pair.camera1, pair.camera2, options=options)
        assert not found.success
        path = write_report(
            tmp_path / "r.html", found, points1, points2, camera1=pair.camera1.K, camera2=pair.camera2.K
        )
        content = content_of(path)
        assert content["summary"]["stopReason"] == "too_few_points"
        assert len(unpack(content["images"][0]["points"], "<f4")) == 2 * count
        found = caransac.estimate_fundamental(points1, points2, options=options)
        assert content_of(write_report(tmp_path / "r.html", found, points1, points2))["summary"]["success"] is False


def test_sizes_come_from_images_cameras_or_arguments(tmp_path, pair, pose):
    def sizes(**arguments):
        cameras = {"camera1": pair.camera1.K, "camera2": pair.camera2.K} | arguments
        content = content_of(write_report(tmp_path / "r.html", pose, pair.points1, pair.points2, **cameras))
        return [image["size"] for image in content["images"]]

    image = np.zeros((50, 70), np.uint8)
    assert sizes(image1=image, size2=(30, 20)) == [[70, 50], [30, 20]]
    assert sizes(camera1=pair.camera1, camera2=pair.camera2) == [[1024, 768], [1024, 768]]
    assert sizes()[0] == [1024, 768]  # twice the principal point


def test_images_are_embedded_in_their_colours_and_not_too_large(tmp_path, pair, pose):
    cv2 = pytest.importorskip("cv2", reason="images need the extra `images`")
    image = np.zeros((1000, 4000, 3), np.uint8)
    image[:, :2000] = (250, 120, 10)
    path = write_report(
        tmp_path / "r.html",
        pose,
        pair.points1,
        pair.points2,
        camera1=pair.camera1,
        camera2=pair.camera2,
        image1=image[::-1],  # any strides are accepted
        image2=image[..., 0],
    )
    first, second = (image["picture"].removeprefix("data:image/jpeg;base64,") for image in content_of(path)["images"])
    seen = cv2.imdecode(unpack(first, np.uint8), cv2.IMREAD_COLOR)[..., ::-1]
    assert seen.shape == (400, 1600, 3)
    np.testing.assert_allclose(seen[200, 300].astype(int), (250, 120, 10), atol=6)
    assert cv2.imdecode(unpack(second, np.uint8), cv2.IMREAD_COLOR)[200, 300].tolist() == pytest.approx(
        [250] * 3, abs=6
    )


@pytest.mark.parametrize(("wanted", "side"), [(None, 4000), (9999, 4000), (2500, 2500), (1600, 1600), (7, 7)])
def test_the_size_of_embedded_images_is_a_choice(tmp_path, pair, pose, wanted, side):
    cv2 = pytest.importorskip("cv2", reason="images need the extra `images`")
    image = np.zeros((30, 4000), np.uint8)
    path = write_report(tmp_path / "r.html", pose, pair.points1, pair.points2, image1=image, max_image_px=wanted)
    first = content_of(path)["images"][0]
    seen = cv2.imdecode(unpack(first["picture"].removeprefix("data:image/jpeg;base64,"), np.uint8), cv2.IMREAD_COLOR)
    assert seen.shape[1] == side
    assert first["size"] == [4000, 30]


def test_without_opencv_images_are_refused_and_frames_work(tmp_path, pair, pose, monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    given = {"camera1": pair.camera1, "camera2": pair.camera2}
    write_report(tmp_path / "r.html", pose, pair.points1, pair.points2, **given)
    before = (tmp_path / "r.html").read_bytes()
    with pytest.raises(ImportError, match=r"caransac\[images\]"):
        image = np.zeros((9, 9), np.uint8)
        write_report(tmp_path / "r.html", pose, pair.points1, pair.points2, image1=image, **given)
    assert (tmp_path / "r.html").read_bytes() == before


def test_a_lens_in_the_report_has_a_reach(tmp_path, pair, pose):
    coefficients = {"k1": -0.3, "k2": 0.1, "p1": 1e-3, "p2": -2e-3, "k3": 0.02, "d1": 0.01, "d2": 0.03, "d3": 0.04}
    lens = Camera("FULL_OPENCV", (900, 910, 500, 380, *coefficients.values()), 1024, 768)
    absent = {"k4": 0, "sx1": 0, "sy1": 0, "projection": None}
    path = write_report(tmp_path / "r.html", pose, pair.points1, pair.points2, camera1=lens, camera2=pair.camera2)
    first, second = (image["lens"] for image in content_of(path)["images"])
    assert second is None
    reach = first.pop("reach")
    assert first == {"fx": 900, "fy": 910, "cx": 500, "cy": 380, **coefficients, **absent}
    corners = lens.pixels_to_rays(np.array([[0, 0], [1024, 0], [0, 768], [1024, 768]]) - 0.5)
    assert reach == pytest.approx(np.linalg.norm(corners, axis=1).max())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"points1": np.zeros((3, 2))}, "points1 must have shape"),
        ({"points2": np.full((300, 2), np.nan)}, "points2 must not contain NaN"),
        ({"points1": np.full((300, 2), "a")}, "points1 must contain real numbers"),
        ({"scores": np.zeros(3)}, "scores must have shape"),
        ({"camera2": np.eye(4)}, "camera2: K must be 3x3"),
        ({"image1": np.zeros((4, 4))}, "image1 must be"),
        ({"image2": np.zeros((4, 4, 4), np.uint8)}, "image2 must be"),
        ({"size1": (0, 3)}, "size1 must be"),
        ({"max_image_px": 0}, "max_image_px must be"),
    ],
)
def test_a_callers_mistake_names_the_argument_and_writes_no_file(tmp_path, pair, pose, wrong, message):
    given = {"points1": pair.points1, "points2": pair.points2, "camera1": pair.camera1, "camera2": pair.camera2}
    with pytest.raises(ValueError, match=message):
        write_report(tmp_path / "r.html", pose, **(given | wrong))
    assert list(tmp_path.iterdir()) == []


def test_failures_of_unknown_cameras_need_the_size(tmp_path, pair):
    few = pair.points1[:4], pair.points2[:4]
    found = caransac.estimate_relative_pose(*few, image_size1=(1024, 768), image_size2=(1024, 768), options=TRACED)
    with pytest.raises(ValueError, match=r"camera1 is missing: .* give size1"):
        write_report(tmp_path / "r.html", found, *few)
    with pytest.raises(ValueError, match=r"camera2 is missing: .* give size2"):
        write_report(tmp_path / "r.html", found, *few, size1=(1024, 768))
    content = content_of(write_report(tmp_path / "r.html", found, *few, size1=(1024, 768), size2=(1024, 768)))
    assert content["images"][0]["camera"]["focal"] == "870.4 px ± 15 %, assumed: the matches hardly constrain it"
    assert content["summary"]["success"] is False


@pytest.mark.parametrize("zoom", [1.0, 0.8])
def test_uncertain_and_unknown_cameras_are_drawn_as_refined(tmp_path, pair, zoom):
    centre = np.array(pair.camera2.params[1:])
    points2 = (pair.points2 - centre) * zoom + centre
    sizes = {"image_size1": (1024, 768), "image_size2": (1024, 768)}
    uncertain = Camera("SIMPLE_PINHOLE", (900, 511.5, 383.5), 1024, 768, focal_deviation=0.05)
    scored = {"scores": pair.scores, "score_kind": "ratio", "options": TRACED}
    for camera1, source1 in ((None, "estimated from the matches"), (uncertain, "refined; 900.0 px ± 5 % as given")):
        found = caransac.estimate_relative_pose(pair.points1, points2, camera1, None, **sizes, **scored)
        content = content_of(write_report(tmp_path / "r.html", found, pair.points1, points2, camera1=camera1))
        for image, camera, source in (
            (content["images"][0], found.camera1, source1),
            (content["images"][1], found.camera2, "estimated from the matches"),
        ):
            deviation = f"{100 * camera.focal_deviation:.2g}"
            assert image["camera"] == {"focal": f"{camera.mean_focal:.1f} px ± {deviation} %, {source}"}
        last = content["rounds"][-1]
        assert last["numInliers"] == found.num_inliers
        F = fundamental_from_essential(found.E, found.camera1.K, found.camera2.K)
        np.testing.assert_allclose(np.reshape(last["F"], (3, 3)), F / np.linalg.norm(F), atol=1e-12)
        index = unpack(content["cloud"]["index"], "<u4")
        np.testing.assert_array_equal(index, found.points3d.index)


def test_exact_cameras_need_not_be_repeated(tmp_path, pair, pose):
    path = write_report(tmp_path / "r.html", pose, pair.points1, pair.points2)
    expected = {"focal": "921.6 px, taken as exact"}
    assert [image["camera"] for image in content_of(path)["images"]] == [expected, expected]
    words = write_report(tmp_path / "r.html", pose, pair.points1, pair.points2, camera_source1="from the box")
    assert content_of(words)["images"][0]["camera"]["focal"] == "921.6 px, taken as exact, from the box"


def test_fundamental_matrices_of_sized_images_show_every_round(tmp_path, pair):
    sizes = {"image_size1": (1024, 768), "image_size2": (1024, 768)}
    found = caransac.estimate_fundamental(
        pair.points1, pair.points2, **sizes, scores=pair.scores, score_kind="ratio", options=TRACED
    )
    assert {seen.models.shape[1:] for seen in found.trace} == {(3, 3)}
    content = content_of(write_report(tmp_path / "f.html", found, pair.points1, pair.points2))
    assert len(content["rounds"]) == len(found.trace)
    np.testing.assert_allclose(np.reshape(content["rounds"][-1]["F"], (3, 3)), found.F)
    assert content["images"][1]["camera"]["focal"].startswith(f"{found.camera2.mean_focal:.1f} px ± ")
    assert content["estimate"] is not None


def test_only_results_are_shown(tmp_path, pair):
    with pytest.raises(ValueError, match="result must be"):
        write_report(tmp_path / "r.html", pair, pair.points1, pair.points2)


def test_titles_are_text_and_only_our_own_scripts_may_run(tmp_path, pair, pose):
    title = "</script><script>alert(1)</script> {{scripts}} <b>&"
    path = write_report(
        tmp_path / "r.html", pose, pair.points1, pair.points2, camera1=pair.camera1, camera2=pair.camera2, title=title
    )
    page = path.read_text()
    assert content_of(path)["title"] == title
    assert "alert(1)</script>" not in page
    assert page.count("</script>") == 2
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for opening, closing, name in (("<script>", "</script>", "script-src"), ("<style>", "</style>", "style-src")):
        body = page.split(opening)[1].split(closing)[0]
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{name} 'sha256-{digest}'" in policy
    assert not re.search(r"https?:|url\(|@import", page)


def test_the_parts_of_the_page_are_in_the_package():
    folder = files("caransac.viewer")
    scripts = {entry.name for entry in folder.iterdir() if entry.name.endswith(".js")}
    assert scripts == {*SCRIPTS, "query.js"}
    assert all((folder / name).is_file() for name in ("page.html", "report.html", "query.html", "viewer.css"))


def test_parts_of_a_pose_and_rivals_are_shown(tmp_path, pair):
    found = caransac.estimate_relative_pose(pair.points1, pair.points2, pair.camera1, pair.camera2, options=TRACED)
    rival = caransac.Rival(np.c_[np.eye(3), [1.0, 0, 0]], ~found.inliers, 0.4)
    told = dataclasses.replace(found, rivals=(rival,))
    content = content_of(write_report(tmp_path / "r.html", told, pair.points1, pair.points2))
    summary = content["summary"]
    assert summary["rotationConfidence"] == found.rotation_confidence
    assert summary["directionDeviationDeg"] == found.direction_deviation_deg
    assert summary["rivals"][0]["share"] == 0.4
    assert summary["rivals"][0]["inliers"] == np.flatnonzero(~found.inliers).tolist()
    assert summary["rivals"][0]["pose"]["t"] == [1, 0, 0]


@pytest.mark.parametrize("baseline", [0.0, 0.003])
@pytest.mark.parametrize("known", [True, False])
def test_rounds_of_a_rotation_are_homographies(tmp_path, rng, known, baseline):
    """If cameras hardly move, the answer is a homography, and the rounds have poses or fundamental matrices."""
    camera = Camera("OPENCV_FISHEYE", (561, 561, 640, 400, 0.02, -0.01, 0.002, -0.001), 1280, 800)
    points1 = rng.uniform((250, 150), (1030, 650), (400, 2))
    rays = np.c_[camera.pixels_to_rays(points1), np.ones(400)] * rng.uniform(4, 8, (400, 1))
    rays = rays @ rotation_from_vector([10 * baseline, 0, 0]).T + [6 * baseline, 0, 0]
    points2 = camera.rays_to_pixels(rays[:, :2] / rays[:, 2:]) + rng.normal(0, 0.3, (400, 2))
    points2[300:] = rng.uniform((250, 150), (1030, 650), (100, 2))
    cameras = {"camera1": camera, "camera2": camera} if known else {}
    found = caransac.estimate(points1, points2, **cameras, options=TRACED)
    content = content_of(write_report(tmp_path / "r.html", found, points1, points2, **cameras))
    assert content["kind"] == "homography"
    np.testing.assert_allclose(content["rounds"][-1]["H"], found.H.ravel())
    assert np.median(unpack(content["rounds"][-1]["distances"], "<u2")[:300] / 256) * found.max_error_px < 4
    if found.trace is not found.epipolar.trace:
        assert found.kind == "homography" and not known
    elif not known:
        assert found.kind == "rotation" and len(content["rounds"]) == 1, "a fundamental matrix has no homography"
    else:
        assert found.kind == "rotation" and len(content["rounds"]) == len(found.trace) > 2
        for step, seen in zip(content["rounds"][1:-1], found.trace[1:-1], strict=True):
            turned = camera.K @ seen.best[:, :3] @ np.linalg.inv(camera.K)
            np.testing.assert_allclose(step["H"], (turned / np.linalg.norm(turned)).ravel())
