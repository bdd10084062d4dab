"""Output of other libraries as matches: their own objects if installed, otherwise objects of the published shapes."""

import cv2
import numpy as np
import pytest
import torch

import caransac
from caransac.geometry import pose_error_deg
from caransac.synthetic import make_pair
from caransac_lab.render import render_pair

SIZE = (640, 480)


@pytest.fixture
def points(rng):
    return rng.uniform(0, 400, (30, 2)), rng.uniform(0, 400, (30, 2))


@pytest.fixture
def indices(rng):
    return np.stack([rng.permutation(30)[:12], rng.permutation(30)[:12]], axis=1)


def same(found, points1, points2, scores=None):
    assert np.allclose(found.points1, points1) and np.allclose(found.points2, points2)
    assert (found.scores is None) if scores is None else np.allclose(found.scores, scores)
    return found


@pytest.mark.parametrize("form", [lambda p: p, lambda p: p[:, None], lambda p: p[None], lambda p: p.tolist()])
@pytest.mark.parametrize("make", [np.asarray, torch.tensor])
def test_points_with_axes_of_length_one(points, form, make):
    scores = np.linspace(0, 1, 30)
    for shaped in (scores, scores[None], scores[:, None]):
        given = (make(form(p)) for p in points)
        found = caransac.matches_from(*given, scores=make(shaped), score_kind="ratio")
        assert same(found, *points, scores).score_kind == "ratio"


def test_indices_in_every_form(points, indices):
    chosen = points[0][indices[:, 0]], points[1][indices[:, 1]]
    for given in (indices, indices[None], torch.tensor(indices), indices.tolist(), indices.astype(np.uint32)):
        same(caransac.matches_from(*points, given), *chosen)
    partner = np.full(30, -1)
    partner[indices[:, 0]] = indices[:, 1]
    order = np.sort(indices[:, 0])
    for given in (partner, partner[None], torch.tensor(partner)):
        same(caransac.matches_from(*points, given), points[0][order], points[1][partner[order]])
    assert len(caransac.matches_from(*points, []).points1) == 0


def test_cameras_and_sizes_in_batches_of_one(points):
    K = np.array([[500.0, 0, 320], [0, 510, 240], [0, 0, 1]])
    found = caransac.matches_from(*points, camera1=K[None], image_size2=torch.tensor([[640.0, 480.0]]))
    assert np.array_equal(found.camera1.K, K)
    assert found.camera2 is None and found.image_size2 == SIZE
    assert np.array_equal(caransac.matches_from(*points, camera1=torch.tensor(K)[None, None]).camera1.K, K)
    assert caransac.matches_from(*points, camera2=[K, np.zeros(4)]).camera2.model == "FULL_OPENCV"


@pytest.mark.slow
def test_opencv_keypoints_with_its_matches():
    pair = render_pair(seed=6)
    orb = cv2.ORB_create(1500)
    (keypoints1, descriptors1), (keypoints2, descriptors2) = (
        orb.detectAndCompute(image, None) for image in (pair.image1, pair.image2)
    )
    crossed = cv2.BFMatcher(cv2.NORM_HAMMING, crossCheck=True).match(descriptors1, descriptors2)
    found = caransac.matches_from(keypoints1, keypoints2, crossed)
    expected = [
        np.array([k[i].pt for i in index])
        for k, index in ((keypoints1, [m.queryIdx for m in crossed]), (keypoints2, [m.trainIdx for m in crossed]))
    ]
    same(found, *expected)
    nearest = cv2.BFMatcher(cv2.NORM_HAMMING).knnMatch(descriptors1, descriptors2, k=2)
    found = caransac.matches_from(keypoints1, keypoints2, nearest, camera1=pair.camera, camera2=pair.camera)
    assert found.score_kind == "ratio" and len(found.points1) == len(nearest)
    assert found.scores.max() <= 1 and found.scores.min() < 0.7
    result = caransac.estimate(**found.arguments())
    assert result.kind == "pose" and pose_error_deg(result.R, result.t, pair.R, pair.t) < 2
    few = [[nearest[0][0]], [], list(nearest[1])]
    assert caransac.matches_from(keypoints1, keypoints2, few).scores[0] == 1
    assert len(caransac.matches_from(keypoints1, keypoints2, few).points1) == 2
    assert len(caransac.matches_from((), (), ()).points1) == 0


def test_what_is_not_opencvs_among_its_own_is_refused_by_name():
    cv2 = pytest.importorskip("cv2")
    keypoints, match = [cv2.KeyPoint(1.0, 2.0, 1.0)] * 3, cv2.DMatch(0, 0, 1.0)
    with pytest.raises(ValueError, match=r"first must be a list of cv2.KeyPoint"):
        caransac.matches_from([*keypoints, None], keypoints, [match])
    with pytest.raises(ValueError, match=r"second must be a list of cv2.KeyPoint"):
        caransac.matches_from(keypoints, [*keypoints, (1, 2)], [match])
    for other in (None, 3, (match, None), "a"):
        with pytest.raises(ValueError, match=r"matches must be cv2.DMatch, or lists of them"):
            caransac.matches_from(keypoints, keypoints, [match, other])


def test_local_affine_frames(points, indices):
    frames = []
    for each in points:
        shapes = np.broadcast_to(3 * np.eye(2), (30, 2, 2))
        frames.append(torch.tensor(np.concatenate([shapes, each[..., None]], axis=2)[None], dtype=torch.float64))
    ratios = torch.linspace(0.1, 0.9, 12)[:, None]  # kornia's matchers return (M, 1) with indices (M, 2)
    found = caransac.matches_from(*frames, torch.tensor(indices), scores=ratios, score_kind="ratio")
    same(found, points[0][indices[:, 0]], points[1][indices[:, 1]], ratios.numpy().ravel())
    kornia = pytest.importorskip("kornia")
    real = [kornia.feature.laf_from_center_scale_ori(torch.tensor(each)[None]) for each in points]
    same(caransac.matches_from(*real), *points)


def light_glue(points, indices):
    """Return the output of the extractor and of LightGlue, including the batch dimension of one."""
    features = [
        {
            "keypoints": torch.tensor(each)[None],
            "keypoint_scores": torch.rand(1, 30),
            "image_size": torch.tensor([SIZE]),
        }
        for each in points
    ]
    scores = torch.linspace(0.2, 1, 12, dtype=torch.float64)
    partner, strength = torch.full((1, 30), -1), torch.zeros(1, 30, dtype=torch.float64)
    partner[0, indices[:, 0]], strength[0, indices[:, 0]] = torch.tensor(indices[:, 1]), scores
    return features, {
        "matches0": partner,
        "matching_scores0": strength,
        "stop": 9,
        "matches": [torch.tensor(indices)],
        "scores": [scores],
    }


def test_dictionaries_of_light_glue(points, indices):
    features, found = light_glue(points, indices)
    chosen = points[0][indices[:, 0]], points[1][indices[:, 1]], found["scores"][0].numpy()
    batched = same(caransac.matches_from(*features, found), *chosen)
    assert batched.score_kind == "confidence" and batched.image_size1 == batched.image_size2 == SIZE
    single = {name: value[0] if name != "stop" else value for name, value in found.items()}
    alone = [{name: value[0] for name, value in each.items()} for each in features]
    same(caransac.matches_from(*alone, single), *chosen)
    same(caransac.matches_from(*alone, single["matches"], scores=single["scores"], score_kind="confidence"), *chosen)
    merged = found | {f"keypoints{n}": each["keypoints"] for n, each in enumerate(features)}
    same(caransac.matches_from(merged), *chosen)
    del merged["matches"], merged["scores"]  # SuperGlue and glue-factory have only one entry per keypoint
    order = np.argsort(indices[:, 0])
    same(caransac.matches_from(merged), *(each[order] for each in chosen))


def test_dictionaries_of_matched_points(points):
    confidence = torch.linspace(0, 1, 30)
    kornia = {"keypoints0": torch.tensor(points[0]), "keypoints1": torch.tensor(points[1]), "confidence": confidence}
    found = caransac.matches_from(kornia | {"batch_indexes": torch.zeros(30)}, image_size1=SIZE, image_size2=SIZE)
    same(found, *points, confidence.numpy())
    original = {"mkpts0_f": points[0], "mkpts1_f": points[1], "mconf": confidence}
    same(caransac.matches_from(original), *points, confidence.numpy())
    same(caransac.matches_from({"matched_kpts0": points[0], "matched_kpts1": points[1]}), *points)
    with pytest.raises(ValueError, match="batch_indexes has several"):
        caransac.matches_from(kornia | {"batch_indexes": torch.arange(30) % 2})


def warp_of(pair, size, shape=(60, 80)):
    """Create a warp like RoMa's from the matches of a scene: (H, W, 4), and the certainty of each cell."""
    rows = np.zeros((shape[0] * shape[1], 4))
    certainty = np.zeros(len(rows))
    count = len(pair.points1)
    rows[:count] = np.concatenate([pair.points1 + 0.5, pair.points2 + 0.5], axis=1) / np.tile(size, 2) * 2 - 1
    certainty[:count] = np.where(pair.inliers, 0.9, 0.2)
    return rows.reshape(*shape, 4), certainty.reshape(shape)


def test_warps_become_matches_in_pixels():
    pair = make_pair(2000, outlier_ratio=0.3, seed=3)
    size = np.array([pair.camera1.width, pair.camera1.height])
    warp, certainty = warp_of(pair, size)
    inside = np.all((pair.points1 >= -0.5) & (pair.points1 <= size - 0.5), axis=1)
    inside &= np.all((pair.points2 >= -0.5) & (pair.points2 <= size - 0.5), axis=1)
    all_of_them = caransac.matches_from_warp(warp, certainty, camera1=pair.camera1, camera2=pair.camera2)
    same(all_of_them, pair.points1[inside], pair.points2[inside], np.where(pair.inliers, 0.9, 0.2)[inside])
    result = caransac.estimate(**all_of_them.arguments())
    assert pose_error_deg(result.R, result.t, pair.R, pair.t) < 1
    batch = torch.tensor(warp)[None], torch.tensor(certainty)[None]
    drawn = [
        caransac.matches_from_warp(*batch, image_size1=size, image_size2=size, max_matches=500, seed=s)
        for s in (1, 1, 2)
    ]
    assert len(drawn[0].points1) == 500 == len(np.unique(drawn[0].points1, axis=0))
    assert np.array_equal(drawn[0].points1, drawn[1].points1) and not np.array_equal(drawn[0].points1, drawn[2].points1)
    share = (all_of_them.scores == 0.9).mean()
    assert (drawn[0].scores == 0.9).mean() > share + 0.05, "certain matches are drawn more often"
    sampled = warp.reshape(-1, 4)[:100], certainty.ravel()[:100]
    same(
        caransac.matches_from_warp(*sampled, image_size1=size, image_size2=size),
        pair.points1[:100][inside[:100]],
        pair.points2[:100][inside[:100]],
        sampled[1][inside[:100]],
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros((5, 3)), np.zeros((5, 2))), r"first must be points \(N, 2\)"),
        ((np.zeros((2, 5, 2)), np.zeros((5, 2))), r"first must be points .* got shape \(2, 5, 2\)"),
        ((np.zeros((5, 2)),), "second must be the keypoints of image 2"),
        ((np.zeros((5, 2)), np.zeros((4, 2))), "matches must be given, because there are 5 and 4 keypoints"),
        ((np.zeros((5, 2)), np.zeros((4, 2)), [[0, 4]]), "matches must be indices of the 5 and 4 keypoints"),
        ((np.zeros((5, 2)), np.zeros((4, 2)), [[0.0, 1.0]]), "matches must be indices of keypoints, whole numbers"),
        ((np.zeros((5, 2)), np.zeros((5, 2)), [0, 1, 2]), r"matches must be indices \(M, 2\), or \(N,\)"),
        ((np.full((5, 2), np.nan), np.zeros((5, 2))), "first must not contain NaN"),
        (({"descriptors": []}, {"keypoints": []}), 'first must have "keypoints", but has descriptors'),
        (({"keypoints0": np.zeros((5, 2))},), 'first must have "keypoints1"'),
        ((np.zeros((5, 2)), np.zeros((5, 2)), {"scores": []}), 'matches must have "matches" or "matches0"'),
        (({"keypoints": [np.zeros((5, 2))] * 2}, np.zeros((5, 2))), "must be of one pair, not of a batch of 2"),
    ],
)
def test_what_has_no_known_form_is_refused_by_name(arguments, message):
    with pytest.raises(ValueError, match=message):
        caransac.matches_from(*arguments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": np.zeros((5, 2)), "score_kind": "ratio"}, r"scores must have shape \(N,\), \(1, N\) or \(N, 1\)"),
        ({"scores": np.zeros(5)}, "score_kind must be given with scores"),
        ({"camera1": np.zeros((2, 3, 3))}, "camera1: K must be 3x3"),
        ({"image_size2": (640.5, 480)}, r"image_size2 must be \(width, height\)"),
    ],
)
def test_invalid_arguments_beside_the_points_are_refused_by_name(change, message):
    with pytest.raises(ValueError, match=message):
        caransac.matches_from(np.zeros((5, 2)), np.zeros((5, 2)), **change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"warp": np.zeros((4, 5, 2))}, r"warp must have shape \(H, W, 4\)"),
        ({"warp": np.zeros((2, 4, 5, 4))}, "warp must be of one pair, not of a batch of 2"),
        ({"certainty": np.zeros((5, 4))}, r"certainty must have shape \(4, 5\)"),
        ({"certainty": np.full((4, 5), 3.0)}, "certainty must be from 0 to 1; take the sigmoid"),
        ({"image_size1": None}, "image_size1 must be given, or a camera1 with width and height"),
        ({"max_matches": 0}, "max_matches must be a positive whole number"),
    ],
)
def test_warps_of_wrong_forms_are_refused_by_name(change, message):
    right = {"warp": np.zeros((4, 5, 4)), "certainty": np.ones((4, 5)), "image_size1": SIZE, "image_size2": SIZE}
    with pytest.raises(ValueError, match=message):
        caransac.matches_from_warp(**right | change)
