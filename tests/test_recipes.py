"""Recipes of docs/matchers.md, on objects of the libraries or on objects of the same form."""

import re
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from stand_ins import GLUE_FACTORY, BaseEstimator, install_glue_factory, install_matchers

import caransac
from caransac.geometry import pose_error_deg, rotation_angle_deg, rotation_from_vector
from caransac.synthetic import make_pair
from caransac_lab.render import render_pair

GUIDE = (Path(__file__).parent.parent / "docs" / "matchers.md").read_text(encoding="utf-8")


class Camera:
    """A replacement for glue-factory's camera: a tensor with a description as a dict."""

    def __init__(self, params):
        self.params = params

    def to_cameradict(self):
        return {"model": "PINHOLE", "width": 1024, "height": 768, "params": self.params}


@pytest.fixture
def estimator_type(monkeypatch):
    """The class that the recipe defines, in a package like glue-factory."""
    install_glue_factory(monkeypatch)
    recipe = re.search(r"## glue-factory\n.*?```python\n(.*?)```", GUIDE, re.DOTALL)[1]
    scope = {"__name__": f"{GLUE_FACTORY}.caransac", "__package__": GLUE_FACTORY}
    exec(recipe, scope)
    (found,) = [  # selected as in glue-factory's load_estimator
        each
        for each in scope.values()
        if isinstance(each, type) and issubclass(each, BaseEstimator) and each.__module__ == scope["__name__"]
    ]
    return found


def test_the_estimator_for_glue_factory(estimator_type):
    pair = make_pair(400, outlier_ratio=0.5, noise_px=0.4, seed=6)
    camera = Camera(list(pair.camera1.pinhole.params))
    data = {
        "m_kpts0": torch.tensor(pair.points1, dtype=torch.float32),
        "m_kpts1": torch.tensor(pair.points2, dtype=torch.float32),
        "camera0": camera,
        "camera1": camera,
    }
    assert set(estimator_type.required_data_keys) == set(data)
    estimator = estimator_type({"name": "caransac", "ransac_th": 0.5, "options": {"seed": 3}})
    assert (estimator.options.max_error_px, estimator.options.seed) == (0.5, 3)
    found = estimator(data)
    assert found["success"] is True
    assert found["M_0to1"].R.dtype == torch.float32
    assert pose_error_deg(found["M_0to1"].R.numpy(), found["M_0to1"].t.numpy(), pair.R, pair.t) < 2
    inliers = found["inliers"].numpy()
    assert (inliers == pair.inliers).mean() > 0.8 and np.sum(inliers) > 100
    few = {name: value[:3] if name.startswith("m_") else value for name, value in data.items()}
    failed = estimator(few)
    assert failed["success"] is False and not failed["inliers"].any()
    assert np.array_equal(failed["M_0to1"].R.numpy(), np.eye(3))


def run_recipe(title, **scope):
    """Run the lines below a heading of the guide. Return their variables."""
    scope |= {"caransac": caransac, "cv2": cv2}
    exec(re.search(rf"### {title}\n.*?```python\n(.*?)```", GUIDE, re.DOTALL)[1], scope)
    return scope


def is_right(result, pair, degrees=2):
    return result.success and pose_error_deg(result.R, result.t, pair.R, pair.t) < degrees


@pytest.mark.slow
def test_points_that_opencv_tracks():
    pair = render_pair(seed=6)
    K, R = pair.camera.K, rotation_from_vector([0.01, 0.02, -0.005])
    grey = cv2.cvtColor(pair.image1, cv2.COLOR_RGB2GRAY)
    turned = cv2.warpPerspective(grey, K @ R @ np.linalg.inv(K), grey.shape[::-1])
    found = run_recipe("OpenCV's points", grey1=grey, grey2=turned, K=K)
    assert len(found["matches"].points1) > 300
    assert found["result"].kind == "rotation" and rotation_angle_deg(found["result"].R @ R.T) < 0.05


@pytest.mark.slow
def test_keypoints_that_opencv_matches():
    pair = render_pair(seed=6)
    found = run_recipe("OpenCV's keypoints and matches", image1=pair.image1, image2=pair.image2, K=pair.camera.K)
    assert is_right(found["result"], pair)
    assert len(found["matches"].points1) > 1000


@pytest.fixture
def pair(monkeypatch):
    """A pair whose matches the stand-ins for the matchers find."""
    pair = make_pair(6000, outlier_ratio=0.3, seed=6)
    assert (pair.camera1.width, pair.camera1.height) == (1024, 768)
    scores = np.where(pair.inliers, 0.9, 0.3)
    install_matchers(monkeypatch, pair.points1, pair.points2, scores, (1024, 768))
    return pair


def test_output_of_light_glue(pair):
    done = run_recipe("LightGlue's dictionaries", IMAGES=("a.jpg", "b.jpg"), K=pair.camera1.K)
    assert done["matches"].image_size1 == (1024, 768)
    assert np.allclose(np.sort(done["matches"].points1, axis=0), np.sort(pair.points1, axis=0))
    assert is_right(done["result"], pair)


def test_output_of_dense_matchers(pair):
    image = np.zeros((768, 1024, 3), np.uint8)
    found = run_recipe("Dense warps", IMAGES=("a.jpg", "b.jpg"), image1=image, image2=image)
    assert len(found["matches"].points1) == 5000
    assert is_right(found["result"], pair, 3)


def test_output_of_kornia():
    """Frames and ratios of SIFT. The second image is the first one, shifted."""
    pytest.importorskip("kornia")
    rng = np.random.default_rng(2)
    grey = cv2.GaussianBlur(rng.integers(0, 256, (240, 320)).astype(np.uint8), (0, 0), 3)
    grey = cv2.normalize(grey, None, 0, 255, cv2.NORM_MINMAX)
    found = run_recipe(
        "kornia's local affine frames", grey1=grey[:, 6:], grey2=grey[:, :-6].copy(), K=np.diag([300.0, 300, 1])
    )
    moved = found["matches"].points2 - found["matches"].points1
    assert np.mean(np.linalg.norm(moved - [6, 0], axis=1) < 1) > 0.5 and found["matches"].score_kind == "ratio"
