"""Hostile arrays: every function that takes matches refuses them and names the argument."""

import numpy as np
import pytest
import torch

import caransac
from caransac import plot
from caransac.io.matches import Matches
from caransac.synthetic import make_pair
from caransac.viewer import write_report

POINTS = np.arange(20.0).reshape(10, 2)
HOSTILE = [
    POINTS + 1j,
    POINTS.astype(object),
    POINTS.astype(str),
    np.ma.masked_array(POINTS),
    np.full((10, 2), np.nan),
    POINTS * 1e30,
    POINTS.T,
    POINTS[:, 0],
    None,
    3.0,
    {"a": 1},
    [[1, 2], [3]],
]


@pytest.mark.parametrize("points", HOSTILE, ids=lambda points: type(points).__name__)
@pytest.mark.parametrize(
    "take",
    [Matches, lambda *points: plot.draw_matches("never.png", *points, np.ones(10))],
    ids=["Matches", "draw_matches"],
)
def test_invalid_points_are_refused_by_name(take, points):
    with pytest.raises(ValueError, match="points1 must"):
        take(points, POINTS)
    with pytest.raises(ValueError, match="points2 must"):
        take(POINTS, points)


def test_lists_and_integers_are_taken():
    assert Matches([[1, 2]], [[3, 4]], [0.5]).scores.dtype == float


def test_there_is_one_score_per_match():
    with pytest.raises(ValueError, match=r"scores must have shape \(10,\)"):
        Matches(POINTS, POINTS, np.ones(9), "ratio")


PAIR = make_pair(200, outlier_ratio=0.3, seed=5)


def as_tensor(values, dtype=None):
    return torch.tensor(values, dtype=dtype, requires_grad=dtype is None or dtype.is_floating_point)


class OnDevice:
    """A tensor in the memory of a device, which numpy cannot read."""

    def __init__(self, tensor):
        self._tensor = tensor

    def __array__(self, *_, **__):
        raise TypeError("can't convert cuda:0 device type tensor to numpy")

    def detach(self):
        return self

    def cpu(self):
        return self._tensor.detach()


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int32"])
@pytest.mark.parametrize("place", [lambda tensor: tensor, OnDevice], ids=["cpu", "device"])
def test_tensors_are_arrays(dtype, place):
    tensors = [as_tensor(points, getattr(torch, dtype)) for points in (PAIR.points1, PAIR.points2)]
    scores = as_tensor(PAIR.scores, torch.bfloat16)
    K = as_tensor(PAIR.camera1.K)
    arrays = [tensor.detach().double().numpy() for tensor in (*tensors, scores)]
    options = caransac.Options(max_error_px=2.0)
    expected = caransac.estimate_relative_pose(
        *arrays[:2], K.detach().numpy(), K.detach().numpy(), scores=arrays[2], score_kind="ratio", options=options
    )
    found = caransac.estimate_relative_pose(
        *map(place, tensors), K, K, scores=place(scores), score_kind="ratio", options=options
    )
    assert np.array_equal(found.inliers, expected.inliers) and np.array_equal(found.E, expected.E)
    for tensor in tensors:
        assert tensor.requires_grad == tensor.is_floating_point(), "the caller's tensors are unchanged"


def test_tensors_are_drawn(tmp_path):
    points = [as_tensor(points) for points in (PAIR.points1, PAIR.points2)]
    image = torch.zeros(30, 40, 3, dtype=torch.uint8)
    plot.draw_matches(tmp_path / "m.png", *points, as_tensor(PAIR.inliers.astype(float)), image1=image)
    result = caransac.estimate_fundamental(*points)
    write_report(tmp_path / "r.html", result, *points, image1=image)


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (torch.zeros(10, 2, device="meta"), "points1 must be an array: .*meta"),
        (torch.zeros(10, 2).to_sparse(), "points1 must be an array: "),
        (torch.zeros(10, 2, dtype=torch.complex64), "points1 must contain real numbers, not complex64"),
        (torch.zeros(10, 2, dtype=torch.bool), "points1 must contain real numbers, not bool"),
        ([torch.ones(2, requires_grad=True)] * 10, "points1 must be an array: .*grad"),
    ],
    ids=["meta", "sparse", "complex", "bool", "list"],
)
def test_tensors_that_are_no_arrays_are_refused_by_name(points, message):
    with pytest.raises(ValueError, match=message):
        caransac.estimate_fundamental(points, POINTS)
