"""Recipes of docs/matchers.md that can run without the libraries they are for."""

import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch

from caransac.geometry import pose_error_deg
from caransac.synthetic import make_pair

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
