"""Recipes of docs/matchers.md, on objects of the libraries they are for or on what these are known to return."""

import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import cv2
import numpy as np
import pytest
import torch

import caransac
from caransac.geometry import pose_error_deg, rotation_angle_deg, rotation_from_vector
from caransac.synthetic import make_pair
from caransac_lab.render import render_pair

GUIDE = (Path(__file__).parent.parent / "docs" / "matchers.md").read_text(encoding="utf-8")
PACKAGE = "gluefactory.robust_estimators.relative_pose"


class BaseEstimator:
    """The form of glue-factory's: the defaults with the caller's settings, then `_init`; a call is `_forward`."""

    def __init__(self, conf):
        self.conf = SimpleNamespace(**self.default_conf | conf)
        self._init(self.conf)

    def __call__(self, data):
        return self._forward(data)


class Pose:
    """The form of glue-factory's: a tensor of R and t."""

    def __init__(self, R, t):
        self.R, self.t = R, t

    @classmethod
    def from_Rt(cls, R, t):
        assert R.shape[-2:] == (3, 3) and t.shape[-1] == 3
        return cls(R, t)

    def to(self, other):
        return Pose(self.R.to(other), self.t.to(other))


class Camera:
    """The form of glue-factory's: a tensor that describes itself as a dict."""

    def __init__(self, params):
        self.params = params

    def to_cameradict(self):
        return {"model": "PINHOLE", "width": 1024, "height": 768, "params": self.params}


@pytest.fixture
def estimator_type(monkeypatch):
    """The class that the recipe defines, in a package of glue-factory's form."""
    for name, content in {
        "gluefactory": {},
        "gluefactory.geometry": {},
        "gluefactory.geometry.wrappers": {"Pose": Pose},
        "gluefactory.robust_estimators": {},
        "gluefactory.robust_estimators.base_estimator": {"BaseEstimator": BaseEstimator},
        PACKAGE: {},
    }.items():
        module = ModuleType(name)
        module.__path__ = []
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    recipe = re.search(r"## glue-factory\n.*?```python\n(.*?)```", GUIDE, re.DOTALL)[1]
    scope = {"__name__": f"{PACKAGE}.caransac", "__package__": PACKAGE}
    exec(recipe, scope)
    (found,) = [  # as glue-factory's load_estimator chooses
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
    """The lines below a heading of the guide; what they leave."""
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


def test_what_kornia_returns(rng):
    pytest.importorskip("kornia")
    pair = make_pair(500, outlier_ratio=0.3, seed=6)
    descriptors1 = torch.tensor(rng.normal(size=(500, 32)))
    descriptors2 = descriptors1 + torch.tensor(rng.normal(size=(500, 32))) * 0.1
    points = {f"points{n}": torch.tensor(each) for n, each in ((1, pair.points1), (2, pair.points2))}
    found = run_recipe(
        "kornia's local affine frames", descriptors1=descriptors1, descriptors2=descriptors2, K=pair.camera1.K, **points
    )
    assert is_right(found["result"], pair)
    assert np.allclose(found["matches"].points1, pair.points1) and found["matches"].scores.max() < 0.5


def test_what_light_glue_returns(rng):
    pair = make_pair(500, outlier_ratio=0.3, seed=6)
    order = rng.permutation(500)
    size = torch.tensor([[pair.camera1.width, pair.camera1.height]])
    features1, features2 = (
        {"keypoints": torch.tensor(each)[None], "descriptors": torch.zeros(1, 500, 8), "image_size": size}
        for each in (pair.points1, pair.points2[order])
    )
    matches = torch.tensor(np.stack([order, np.arange(500)], axis=1))
    scores = torch.tensor(np.where(pair.inliers, 0.9, 0.3)[order])
    found = {"matches": [matches], "scores": [scores], "stop": 9, "matches0": matches[None, :, 1]}
    done = run_recipe(
        "LightGlue's dictionaries", features1=features1, features2=features2, found=found, K=pair.camera1.K
    )
    assert done["matches"].image_size1 == (pair.camera1.width, pair.camera1.height)
    assert np.allclose(done["matches"].points1, pair.points1[order])
    assert is_right(done["result"], pair)


def test_what_dense_matchers_return():
    pair = make_pair(8000, outlier_ratio=0.3, seed=6)
    assert (pair.camera1.width, pair.camera1.height) == (1024, 768)
    warp = np.concatenate([pair.points1 + 0.5, pair.points2 + 0.5], axis=1) / (1024, 768, 1024, 768) * 2 - 1
    certainty = np.where(pair.inliers, 0.9, 0.3)
    tensors = torch.tensor(warp).reshape(80, 100, 4), torch.tensor(certainty).reshape(80, 100)
    found = run_recipe("Dense warps", warp=tensors[0], certainty=tensors[1])
    assert len(found["matches"].points1) == 5000
    assert is_right(found["result"], pair, 3)
