"""vismatch: its verification by a homography, and its SIFT matcher."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import numpy as np

from caransac_lab.bench.studies.other_projects.project_data import INLIERS, Data, Row, corner_error, pose_row
from caransac_lab.bench.studies.other_projects.stand_ins import stand_in


def run_vismatch(folder: Path, data: Data) -> Iterator[Row]:
    """Run its verification by a homography, and its SIFT matcher."""
    stand_in("torchvision", "torchvision.transforms", "yacs", "yacs.config", "huggingface_hub", "huggingface_hub.utils")
    sys.path.insert(0, str(folder))
    import torch

    base = import_module("vismatch.base_matcher")
    matcher, errors = base.BaseMatcher(), []
    for points1, points2, H, size in data.read_planes():
        errors.append(corner_error(matcher.compute_ransac(points1, points2)[0], H, size))
    yield pose_row("vismatch `BaseMatcher.compute_ransac`", "OpenCV", "planes, pixels", errors)
    base.to_tensor_image = lambda image: torch.tensor(np.float32(image).transpose(2, 0, 1) / 255)
    sift = import_module("vismatch.im_models.handcrafted").SiftNNMatcher()
    photos = [image[..., ::-1].copy() for image in data.read_photos()]
    found = [int(sift(one, other)["num_inliers"]) for one, other in itertools.pairwise(photos)]
    row = {"script": "vismatch `sift-nn`", "library": "OpenCV", "on": "photographs from above", "pairs": len(found)}
    yield row | {"figure": INLIERS, "value": sum(found)}
