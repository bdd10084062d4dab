"""Only the import changes: complete scripts run with the original library and with our drop-in."""

import importlib
import subprocess
import sys

import cv2
import numpy as np
import poselib
import pycolmap
import pytest

from caransac.geometry import pose_error_deg
from caransac.integrations import opencv
from caransac.integrations import poselib as poselib_drop_in
from caransac.integrations import pycolmap as pycolmap_drop_in
from caransac.synthetic import make_pair
from caransac_lab.render import render_pair

# Original library, names that the drop-in replaces, and the package to install.
REPLACED = {
    opencv: (
        cv2,
        {"findEssentialMat", "findFundamentalMat", "findHomography", "solvePnPRansac"},
        "opencv-python-headless",
    ),
    poselib_drop_in: (
        poselib,
        {
            *("estimate_relative_pose", "estimate_fundamental", "estimate_shared_focal_relative_pose"),
            *("estimate_homography", "estimate_absolute_pose", "ImagePair"),
        },
        "poselib",
    ),
    pycolmap_drop_in: (
        pycolmap,
        {
            *("estimate_essential_matrix", "estimate_fundamental_matrix", "verify_matches"),
            *("estimate_homography_matrix", "estimate_absolute_pose", "estimate_and_refine_absolute_pose"),
            *("estimate_two_view_geometry", "estimate_calibrated_two_view_geometry"),
        },
        "pycolmap",
    ),
}
drop_ins = pytest.mark.parametrize("drop_in", REPLACED, ids=lambda module: module.__name__)


def run(script, module, **given):
    """Run a script that imports a module as LIBRARY. Return its variables."""
    scope = {**given, "np": np}
    exec(script.replace("LIBRARY", module), scope)
    return scope


OPENCV_SCRIPT = """
import LIBRARY as cv2

image1 = cv2.imread(str(folder / "1.png"), cv2.IMREAD_GRAYSCALE)
image2 = cv2.imread(str(folder / "2.png"), cv2.IMREAD_GRAYSCALE)
sift = cv2.SIFT_create(2000)
keypoints1, descriptors1 = sift.detectAndCompute(image1, None)
keypoints2, descriptors2 = sift.detectAndCompute(image2, None)
matcher = cv2.FlannBasedMatcher(dict(algorithm=1, trees=5), dict(checks=50))
good = [m for m, n in matcher.knnMatch(descriptors1, descriptors2, k=2) if m.distance < 0.8 * n.distance]
points1 = np.float32([keypoints1[m.queryIdx].pt for m in good]).reshape(-1, 1, 2)
points2 = np.float32([keypoints2[m.trainIdx].pt for m in good]).reshape(-1, 1, 2)
F, fundamental_mask = cv2.findFundamentalMat(points1, points2, cv2.FM_RANSAC, 1.0, 0.999)
lines = cv2.computeCorrespondEpilines(points2, 2, F)
E, mask = cv2.findEssentialMat(points1, points2, K, method=cv2.RANSAC, prob=0.999, threshold=1.0)
H, plane_mask = cv2.findHomography(points1, points2, cv2.RANSAC, 5.0)
warped = cv2.warpPerspective(image1, H, image2.shape[::-1])
corners = np.float32([[0, 0], [100, 0], [100, 50], [0, 50]])
exact, _ = cv2.findHomography(corners, corners + 7)
count, R, t, mask = cv2.recoverPose(E, points1, points2, K, mask=mask)
chosen = mask.ravel() > 0
X = cv2.triangulatePoints(K @ np.eye(3, 4), K @ np.hstack([R, t]), points1[chosen, 0].T, points2[chosen, 0].T)
depths = X[2] / X[3]
drawn = cv2.drawMatches(image1, keypoints1, image2, keypoints2, good, None, matchesMask=mask.ravel().tolist())
cv2.imwrite(str(folder / "drawn.png"), drawn)
"""


@pytest.mark.slow
@pytest.mark.parametrize("module", ["cv2", "caransac.integrations.opencv"])
def test_a_script_of_opencv(module, tmp_path):
    pair = render_pair(seed=1)
    for number, image in ((1, pair.image1), (2, pair.image2)):
        cv2.imwrite(str(tmp_path / f"{number}.png"), image)
    left = run(OPENCV_SCRIPT, module, folder=tmp_path, K=pair.camera.K)
    assert pose_error_deg(left["R"], left["t"].ravel(), pair.R, pair.t) < 2
    assert left["count"] > 100 and (left["depths"] > 0).mean() > 0.95
    assert left["lines"].shape == (len(left["good"]), 1, 3)
    assert left["fundamental_mask"].mean() > 0.5
    assert left["warped"].shape == pair.image2.shape[:2] and left["plane_mask"].sum() > 30
    assert np.allclose(left["exact"], [[1, 0, 7], [0, 1, 7], [0, 0, 1]], atol=1e-6)
    assert (tmp_path / "drawn.png").stat().st_size > 0


POSELIB_SCRIPT = """
import LIBRARY as poselib

camera = {"model": "PINHOLE", "width": 1024, "height": 768, "params": [K[0, 0], K[1, 1], K[0, 2], K[1, 2]]}
ransac = poselib.RansacOptions()
ransac["max_epipolar_error"] = 1.0
pose, info = poselib.estimate_relative_pose(points1, points2, camera, camera, ransac, poselib.BundleOptions())
assert isinstance(pose, poselib.CameraPose)
inliers = np.array(info["inliers"])
refined, summary = poselib.refine_relative_pose(points1[inliers], points2[inliers], pose, camera, camera)
F, _ = poselib.estimate_fundamental(points1, points2, {"max_epipolar_error": 1.0})
image = poselib.Image()
image.pose, image.camera = pose, poselib.Camera("PINHOLE", camera["params"], 1024, 768)
rays1 = [np.array([*(x - K[:2, 2]) / K[0, 0], 1.0]) for x in points1[inliers][:5]]
rays2 = [np.array([*(x - K[:2, 2]) / K[0, 0], 1.0]) for x in points2[inliers][:5]]
minimal = poselib.relpose_5pt([x / np.linalg.norm(x) for x in rays1], [x / np.linalg.norm(x) for x in rays2])
"""


@pytest.mark.parametrize("module", ["poselib", "caransac.integrations.poselib"])
def test_a_script_of_poselib(module):
    pair = make_pair(400, outlier_ratio=0.5, noise_px=0.4, seed=6)
    left = run(POSELIB_SCRIPT, module, points1=pair.points1, points2=pair.points2, K=pair.camera1.K)
    for pose in (left["pose"], left["refined"], left["image"].pose):
        assert type(pose) is poselib.CameraPose
        assert pose_error_deg(pose.R, pose.t, pair.R, pair.t) < 2
    assert (left["inliers"] == pair.inliers).mean() > 0.95
    assert len(left["minimal"]) >= 1


PYCOLMAP_SCRIPT = """
import LIBRARY as pycolmap

camera = pycolmap.Camera(model="PINHOLE", width=1024, height=768, params=[K[0, 0], K[1, 1], K[0, 2], K[1, 2]])
camera.has_prior_focal_length = True
options = pycolmap.TwoViewGeometryOptions()
options.ransac.max_error = 2.0
options.compute_relative_pose = True
matches = np.stack([np.arange(len(points1))] * 2, axis=1)
geometry = pycolmap.estimate_two_view_geometry(camera, points1, camera, points2, matches, options)
assert isinstance(geometry, pycolmap.TwoViewGeometry)
kind = pycolmap.TwoViewGeometryConfiguration(geometry.config)
pose = pycolmap.Rigid3d(geometry.cam2_from_cam1.matrix())
back = pose.inverse() * pose
found = pycolmap.estimate_essential_matrix(points1, points2, camera, camera, pycolmap.RANSACOptions(max_error=2.0))
also = found["cam2_from_cam1"]
geometry.invert()
with pycolmap.Database.open(folder / "database.db") as database:
    number = database.write_camera(camera)
    ids = [database.write_image(pycolmap.Image(name=name, camera_id=number)) for name in ("a.png", "b.png")]
    for image_id, points in zip(ids, (points1, points2)):
        database.write_keypoints(image_id, points.astype(np.float32))
    database.write_matches(*ids, matches.astype(np.uint32))
(folder / "pairs.txt").write_text("a.png b.png")
pycolmap.verify_matches(folder / "database.db", folder / "pairs.txt", options)
with pycolmap.Database.open(folder / "database.db") as database:
    stored = database.read_two_view_geometry(*ids)
"""


@pytest.mark.parametrize("module", ["pycolmap", "caransac.integrations.pycolmap"])
def test_a_script_of_pycolmap(module, tmp_path):
    pair = make_pair(400, outlier_ratio=0.5, noise_px=0.4, seed=6)
    left = run(PYCOLMAP_SCRIPT, module, points1=pair.points1, points2=pair.points2, K=pair.camera1.K, folder=tmp_path)
    assert left["kind"] == pycolmap.TwoViewGeometryConfiguration.CALIBRATED
    assert np.allclose(left["back"].matrix(), np.eye(3, 4), atol=1e-9)
    for pose in (left["pose"], left["also"], left["geometry"].cam2_from_cam1.inverse()):
        assert pose_error_deg(pose.rotation.matrix(), pose.translation, pair.R, pair.t) < 2
    assert left["stored"].config == pycolmap.TwoViewGeometryConfiguration.CALIBRATED.value
    assert len(left["stored"].inlier_matches) == pytest.approx(pair.inliers.sum(), rel=0.1)


@drop_ins
def test_other_names_come_from_the_original(drop_in):
    original, replaced, _ = REPLACED[drop_in]
    others = {name for name in dir(original) if not name.startswith("__")} - replaced
    assert len(others) > 30
    for name in others:
        ours, theirs = getattr(drop_in, name), getattr(original, name)
        assert ours is theirs or ours == theirs or repr(ours) == repr(theirs), name
    assert set(dir(original)) <= set(dir(drop_in))
    assert drop_in.__version__ == original.__version__
    for name in replaced:
        assert getattr(drop_in, name) is not getattr(original, name)
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = drop_in.no_such_thing
    assert not hasattr(drop_in, "__path__"), "the drop-in is a module, not a package"


@pytest.mark.slow
@drop_ins
def test_without_the_original_a_missing_name_names_the_package(drop_in):
    original, _, package = REPLACED[drop_in]
    program = f"""
import sys
sys.modules[{original.__name__!r}] = None
import {drop_in.__name__} as drop_in
print(len(dir(drop_in)), hasattr(drop_in, "anything"))
drop_in.anything
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    count, there = done.stdout.split()
    assert int(count) > 10 and there == "False"
    assert f"AttributeError: caransac does not replace 'anything', and {original.__name__}" in done.stderr
    assert done.stderr.rstrip().endswith(f"pip install {package}")


@drop_ins
def test_names_can_be_imported(drop_in):
    original, replaced, _ = REPLACED[drop_in]
    name = min(set(dir(original)) - replaced - {"__all__"}, key=lambda name: (name.startswith("_"), name))
    assert importlib.import_module(drop_in.__name__).__dict__.get(name) is None
    scope = {}
    exec(f"from {drop_in.__name__} import {name}, {min(replaced)}", scope)
    assert scope[min(replaced)] is getattr(drop_in, min(replaced))
