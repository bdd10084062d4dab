"""Replacements for libraries that are not installed or that download weights. They return arrays of the same shapes."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import torch

GLUE_FACTORY = "gluefactory.robust_estimators.relative_pose"


class BaseEstimator:
    """A replacement for glue-factory's class: merges default and given settings, calls `_init`, and then `_forward`."""

    def __init__(self, conf):
        self.conf = SimpleNamespace(**self.default_conf | conf)
        self._init(self.conf)

    def __call__(self, data):
        return self._forward(data)


class Pose:
    """A replacement for glue-factory's class: tensors R and t."""

    def __init__(self, R, t):
        self.R, self.t = R, t

    @classmethod
    def from_Rt(cls, R, t):
        assert R.shape[-2:] == (3, 3) and t.shape[-1] == 3
        return cls(R, t)

    def to(self, other):
        return Pose(self.R.to(other), self.t.to(other))


def install_glue_factory(monkeypatch):
    """Install the modules that an estimator of glue-factory imports."""
    for name, content in {
        "gluefactory": {},
        "gluefactory.geometry": {},
        "gluefactory.geometry.wrappers": {"Pose": Pose},
        "gluefactory.robust_estimators": {},
        "gluefactory.robust_estimators.base_estimator": {"BaseEstimator": BaseEstimator},
        GLUE_FACTORY: {},
    }.items():
        _install(monkeypatch, name, **content)


def install_matchers(monkeypatch, points1, points2, scores, size):
    """Install replacements for LightGlue, LoFTR and RoMa that find these matches (N, 2) in images (width, height)."""
    model = SimpleNamespace
    order = np.random.default_rng(0).permutation(len(points1))

    def extract(image):
        points = points1 if extract.calls == 0 else points2[order]
        extract.calls += 1
        assert image.shape[0] == 3
        shape = {"descriptors": torch.zeros(1, len(points), 8), "image_size": torch.tensor([size])}
        return {"keypoints": torch.tensor(points)[None], **shape}

    extract.calls = 0
    matches = torch.tensor(np.stack([order, np.arange(len(order))], axis=1))
    glued = {"matches": [matches], "scores": [torch.tensor(scores[order])], "stop": 9, "matches0": matches[None, :, 1]}
    _install(
        monkeypatch,
        "lightglue",
        SuperPoint=lambda **_: model(eval=lambda: model(extract=extract)),
        LightGlue=lambda **_: model(eval=lambda: lambda both: glued if set(both) == {"image0", "image1"} else None),
    )
    _install(monkeypatch, "lightglue.utils", load_image=lambda path: torch.zeros(3, *size[::-1]) if path else None)

    warp = torch.tensor(np.concatenate([points1 + 0.5, points2 + 0.5], axis=1) / (*size, *size) * 2 - 1)
    certainty = torch.tensor(scores)
    roma = model(
        match=lambda *_, **__: (warp[None].reshape(1, 1, -1, 4), certainty.reshape(1, -1)),
        sample=lambda _, found, num: (warp[:num], found.ravel()[:num]),
        to_pixel_coordinates=lambda sampled, height1, width1, height2, width2: (
            (sampled[:, :2] + 1) / 2 * torch.tensor([width1, height1]),
            (sampled[:, 2:] + 1) / 2 * torch.tensor([width2, height2]),
        ),
    )
    _install(monkeypatch, "romatch", roma_outdoor=lambda **_: roma)

    import kornia.feature

    def loftr(images):
        assert all(image.shape[:2] == (1, 1) and image.max() <= 1 for image in images.values())
        found = {"keypoints0": points1, "keypoints1": points2, "confidence": scores}
        return {name: torch.tensor(values) for name, values in found.items()}

    monkeypatch.setattr(kornia.feature, "LoFTR", lambda **_: model(eval=lambda: loftr))


def _install(monkeypatch, name, **content):
    module = ModuleType(name)
    module.__path__ = []
    vars(module).update(content)
    monkeypatch.setitem(sys.modules, name, module)
