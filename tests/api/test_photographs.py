"""Estimates with photographs: matches are refined, answers are more precise, and bad input is refused by name."""

import json
import tracemalloc
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from photographs import SIZE, photograph

import caransac
from caransac import Camera, Options
from caransac.geometry import pose_error_deg
from caransac.io.images import write_image
from caransac.tuning import DEFAULT_TUNING

CALLS = {
    "pose": (caransac.estimate_relative_pose, "pose"),
    "fundamental": (caransac.estimate_fundamental, "matches"),
    "any": (caransac.estimate, "pose"),
}


def error_of(found, truth):
    return pose_error_deg(found.R, found.t, truth.R, truth.t)


@pytest.fixture(scope="module")
def views():
    return photograph(np.random.default_rng(7))


def test_poses_are_an_order_of_magnitude_more_precise(rng):
    alone, refined = [], []
    for _ in range(5):
        views = photograph(rng)
        alone.append(error_of(caransac.estimate_relative_pose(**views.pose), views))
        refined.append(error_of(caransac.estimate_relative_pose(**views.pose, images=views.images), views))
    assert np.median(refined) < 0.1 * np.median(alone)
    assert max(refined) < 0.05


def test_the_result_says_what_was_refined(views):
    found = caransac.estimate_relative_pose(**views.pose, images=views.images)
    alone, refinement = caransac.estimate_relative_pose(**views.pose), found.refinement
    assert alone.refinement is None
    assert refinement.is_used and refinement.num_refined > 0.9 * np.count_nonzero(views.is_right)
    assert not refinement.refined[~views.is_right].any() or refinement.refined[~views.is_right].mean() < 0.1
    assert refinement.noise_before_px == alone.noise_px > 5 * found.noise_px
    moved = np.linalg.norm(refinement.points2 - views.truth2, axis=1)[refinement.refined & views.is_right]
    assert np.median(moved) < 0.05
    np.testing.assert_array_equal(found.points2, refinement.points2)
    np.testing.assert_array_equal(refinement.given2, views.points2)
    kept = ~refinement.refined
    np.testing.assert_array_equal(refinement.points2[kept], views.points2[kept])
    assert not refinement.information[kept].any() and not refinement.correlations[kept].any()
    assert np.linalg.eigvalsh(refinement.information[refinement.refined]).min() > 0
    assert found.num_hypotheses > alone.num_hypotheses  # of both estimates
    assert np.median(found.points3d.error_px) < 0.3 * np.median(alone.points3d.error_px)


@pytest.mark.parametrize("name", CALLS)
def test_every_call_refines(views, name):
    estimate, given = CALLS[name]
    arguments = getattr(views, given)
    alone, found = estimate(**arguments), estimate(**arguments, images=views.images)
    assert found.refinement.is_used and found.noise_px < 0.3 * alone.noise_px
    assert found.is_confident()


@pytest.mark.parametrize(
    "cameras",
    [
        {"image_size1": SIZE, "image_size2": SIZE},
        {"deviation": 0.05},
        {"distortion": 0.05},
    ],
    ids=str,
)
def test_uncertain_cameras_refine(views, cameras):
    given = dict(views.matches)
    if "image_size1" in cameras:
        given |= cameras
    else:
        camera = replace(
            views.camera,
            focal_deviation=cameras.get("deviation", 0.0),
            distortion_deviation=cameras.get("distortion", 0.0),
        )
        given |= {"camera1": camera, "camera2": camera}
    alone = caransac.estimate_relative_pose(**given)
    found = caransac.estimate_relative_pose(**given, images=views.images)
    assert found.refinement.is_used and found.noise_px < 0.3 * alone.noise_px
    assert error_of(found, views) < max(0.5 * error_of(alone, views), 0.1)


def test_lenses_with_known_distortion(rng):
    views = photograph(rng)
    lens = Camera("SIMPLE_RADIAL", (views.camera.fx, *views.camera.K[:2, 2], 1e-6), *SIZE)
    found = caransac.estimate_relative_pose(**views.matches, camera1=lens, camera2=lens, images=views.images)
    assert found.refinement.is_used and error_of(found, views) < 0.05


def test_homographies_refine(rng):
    views = photograph(rng, flat=True)
    alone = caransac.estimate_homography(**views.matches)
    found = caransac.estimate_homography(**views.matches, images=views.images)

    def error(H):
        corners = np.array([(0, 0, 1), (SIZE[0], 0, 1), (0, SIZE[1], 1), (*SIZE, 1)])
        first, second = (corners @ each.T for each in (H, views.H))
        return np.linalg.norm(first[:, :2] / first[:, 2:] - second[:, :2] / second[:, 2:], axis=1).mean()

    assert found.refinement.is_used
    assert error(found.H) < 0.2 * error(alone.H)


def test_estimate_chooses_the_plane_on_refined_points(rng):
    views = photograph(rng, flat=True)
    found = caransac.estimate(**views.matches, image_size1=SIZE, image_size2=SIZE, images=views.images)
    assert found.H is not None and found.noise_px < 0.3


def test_refine_matches_is_the_step_alone(views):
    right = views.is_right
    found = caransac.refine_matches(*views.images, views.points1[right], views.points2[right])
    error = np.linalg.norm(found.points2 - views.truth2[right], axis=1)
    before = np.linalg.norm(views.points2[right] - views.truth2[right], axis=1)
    assert found.num_refined > 0.9 * len(error)
    assert np.median(error[found.refined]) < 0.05
    assert np.mean((error > before)[found.refined]) < 0.02
    assert repr(found) == f"RefinedMatches({found.num_refined} of {len(error)} matches refined)"
    none = caransac.refine_matches(*views.images, np.empty((0, 2)), np.empty((0, 2)))
    assert none.num_refined == 0 and none.points2.shape == (0, 2)


def test_photographs_of_another_scene_change_nothing(views, rng):
    other = photograph(rng)
    alone = caransac.estimate_relative_pose(**views.pose)
    found = caransac.estimate_relative_pose(**views.pose, images=(views.images[0], other.images[1]))
    assert not found.refinement.is_used
    np.testing.assert_array_equal(found.R, alone.R)
    np.testing.assert_array_equal(found.points2, views.points2)
    flat = np.full(SIZE[::-1], 200, np.uint8)
    found = caransac.estimate_relative_pose(**views.pose, images=(flat, flat))
    assert found.refinement.num_refined == 0 and not found.refinement.is_used
    np.testing.assert_array_equal(found.t, alone.t)


def test_a_second_answer_without_consensus_is_refused(views):
    strict = replace(DEFAULT_TUNING, patches=replace(DEFAULT_TUNING.patches, least_consensus=10.0))
    found = caransac.estimate_relative_pose(**views.pose, images=views.images, options=Options(tuning=strict))
    assert not found.refinement.is_used and found.refinement.num_refined > 100
    np.testing.assert_array_equal(found.R, caransac.estimate_relative_pose(**views.pose).R)


def test_failures_stay_failures(views):
    few = {name: value[:4] for name, value in views.matches.items()}
    found = caransac.estimate_relative_pose(**few, camera1=views.camera, camera2=views.camera, images=views.images)
    assert not found.success and found.stop_reason == "too_few_points" and found.refinement is None
    nothing = caransac.estimate_relative_pose(
        np.empty((0, 2)), np.empty((0, 2)), views.camera, views.camera, images=views.images
    )
    assert not nothing.success


def test_results_survive_files(views, tmp_path):
    for name, (estimate, given) in CALLS.items():
        found = estimate(**getattr(views, given), images=views.images)
        found.save(tmp_path / f"{name}.json")
        back = caransac.load_result(tmp_path / f"{name}.json")
        assert back.refinement.is_used and back.refinement.num_refined == found.refinement.num_refined
        np.testing.assert_array_equal(back.refinement.information, found.refinement.information)
        if name == "any":
            np.testing.assert_array_equal(back.epipolar.refinement.given2, views.points2)
    # Files of versions without photographs have no such entry.
    values = caransac.estimate(**views.pose).to_dict(full=True)
    values.pop("refinement")
    values["epipolar"].pop("refinement", None)
    assert caransac.GeometryResult.from_dict(json.loads(json.dumps(values))).epipolar.refinement is None


KINDS = {
    "RGB": lambda image: np.stack([image] * 3, axis=2),
    "RGBA": lambda image: np.dstack([image] * 3 + [np.full_like(image, 255)]),
    "one channel": lambda image: image[:, :, None],
    "channels first": lambda image: np.stack([image] * 3),
    "uint16": lambda image: image.astype(np.uint16) * 257,
    "float32": lambda image: image.astype(np.float32) / 255,
    "float64": lambda image: image / 255,
    "float16": lambda image: (image / 256).astype(np.float16),
    "big-endian": lambda image: image.astype(">u2"),
    "mirrored view": lambda image: np.ascontiguousarray(image[:, ::-1])[:, ::-1],
}


@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_of_arrays(views, kind):
    expected = caransac.estimate_relative_pose(**views.pose, images=views.images)
    images = [KINDS[kind](image) for image in views.images]
    found = caransac.estimate_relative_pose(**views.pose, images=images)
    np.testing.assert_allclose(found.R, expected.R, atol=1e-4)
    assert abs(found.refinement.num_refined - expected.refinement.num_refined) <= 2


def test_tensors(views):
    torch = pytest.importorskip("torch")
    expected = caransac.estimate_relative_pose(**views.pose, images=views.images)
    for tensors in (
        [torch.from_numpy(image) for image in views.images],
        [torch.from_numpy(image)[None].float().expand(3, -1, -1) / 255 for image in views.images],
        [torch.from_numpy(image).bfloat16() for image in views.images],
    ):
        found = caransac.estimate_relative_pose(**views.pose, images=tensors)
        np.testing.assert_allclose(found.R, expected.R, atol=1e-3)


def bad_images(views):
    first, second = views.images
    return {
        "one": ((first,), r"images must be a pair"),
        "three": ((first, first, first), r"images must be a pair"),
        "an array": (first, r"images must be a pair \(image1, image2\), not an array of shape \(360, 480\)"),
        "empty": ((first, np.empty((0, 10), np.uint8)), r"images\[1\] is empty"),
        "NaN": ((first, np.where(second > 250, np.nan, second)), r"images\[1\] must not contain NaN"),
        "infinity": ((np.full((360, 480), np.inf), second), r"images\[0\] must not contain NaN or infinity"),
        "words": (("first.png", second), r"images\[0\]: no such image: first.png"),
        "bool": ((first > 100, second), r"images\[0\] must have uint8, uint16 or float numbers, not bool"),
        "complex": ((first.astype(complex), second), r"not complex128"),
        "four dimensions": ((first[None, None], second), r"images\[0\] must have shape \(H, W\) or \(H, W, 3\)"),
        "None": ((None, second), r"images\[0\] must have shape"),
        "small": ((first[::2, ::2], second), r"images\[0\] has 240 x 180 pixels, but camera 1 has 480 x 360"),
        "transposed": ((first, second.T), r"images\[1\] has 360 x 480 pixels"),
    }


@pytest.mark.parametrize("name", list(bad_images(photograph(np.random.default_rng(0), num_points=10))))
def test_bad_images_are_refused_by_name(views, name):
    images, message = bad_images(views)[name]
    with pytest.raises(ValueError, match=message):
        caransac.estimate_relative_pose(**views.pose, images=images)


def test_photographs_must_contain_the_points(views):
    half = views.images[0][:, :240]
    with pytest.raises(ValueError, match=r"images\[0\] of 240 x 360 pixels does not contain points1"):
        caransac.estimate_fundamental(**views.matches, images=(half, views.images[1]))
    with pytest.raises(ValueError, match=r"image2 of 240 x 360 pixels does not contain points2"):
        caransac.refine_matches(views.images[0], half, views.points1, views.points2)


def test_rays_cannot_be_refined(views):
    rays = np.column_stack([views.points1, np.ones(len(views.points1))])
    with pytest.raises(ValueError, match="images cannot refine rays"):
        caransac.estimate_relative_pose_from_rays(rays, rays, images=views.images)


def test_many_pairs_read_files_when_they_are_needed(views, tmp_path):
    paths = [write_image(tmp_path / f"{n}.png", np.stack([image] * 3, axis=2)) for n, image in enumerate(views.images)]
    expected = caransac.estimate_relative_pose(**views.pose, images=views.images)
    pairs = [views.pose | {"images": paths}, views.pose | {"images": views.images}, views.pose]
    found = caransac.estimate_relative_poses(pairs, workers=2)
    for each in found[:2]:
        np.testing.assert_array_equal(each.R, expected.R)
    assert found[2].refinement is None
    with pytest.raises(ValueError, match=r"pairs\[1\]: images\[0\]: no such image"):
        caransac.estimate_fundamentals([views.matches, views.matches | {"images": ("a.png", paths[1])}])


@pytest.mark.slow
def test_other_processes_refine(views):
    import multiprocessing

    expected = caransac.estimate_relative_pose(**views.pose, images=views.images)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        (found,) = caransac.estimate_relative_poses([views.pose | {"images": views.images}], workers=pool)
    np.testing.assert_array_equal(found.R, expected.R)
    np.testing.assert_array_equal(found.refinement.points2, expected.refinement.points2)


def test_answers_are_repeatable_and_inputs_unchanged(views):
    before = [image.copy() for image in views.images], views.points2.copy()
    first, second = (caransac.estimate_relative_pose(**views.pose, images=views.images) for _ in range(2))
    np.testing.assert_array_equal(first.R, second.R)
    np.testing.assert_array_equal(first.probabilities, second.probabilities)
    for image, copy in zip(views.images, before[0], strict=True):
        np.testing.assert_array_equal(image, copy)
    np.testing.assert_array_equal(views.points2, before[1])


@pytest.mark.slow
def test_huge_photographs_are_not_copied(views):
    huge = np.zeros((10_000, 10_000), np.uint8)  # 100 megapixels
    images = []
    for image in views.images:
        each = huge.copy()
        each[: image.shape[0], : image.shape[1]] = image
        images.append(each)
    camera = Camera("SIMPLE_PINHOLE", (views.camera.fx, *views.camera.K[:2, 2]))
    tracemalloc.start()
    found = caransac.estimate_relative_pose(**views.matches, camera1=camera, camera2=camera, images=images)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.refinement.is_used
    assert peak < 20e6


def test_very_many_matches_are_refined_on_a_part(rng):
    views = photograph(rng, num_points=3000)
    times = 4
    copies = [np.tile(points, (times, 1)) for points in (views.points1, views.points2)]
    copies[0] = copies[0] + 0.3 * rng.normal(size=copies[0].shape)
    copies[1] = copies[1] + 0.3 * rng.normal(size=copies[1].shape)
    copies = [np.clip(points, 0, np.array(SIZE) - 1) for points in copies]
    assert len(copies[0]) > DEFAULT_TUNING.working_set
    found = caransac.estimate_relative_pose(*copies, views.camera, views.camera, images=views.images)
    assert found.refinement.is_used and len(found.inliers) == len(copies[0])
    assert found.refinement.num_refined <= DEFAULT_TUNING.working_set
    assert error_of(found, views) < 0.03


def test_classical_methods_refine(views):
    options = Options(method="lm-lo")
    found = caransac.estimate_relative_pose(**views.pose, images=views.images, options=options)
    assert found.refinement.is_used and error_of(found, views) < 0.05 and found.confidence is None


def test_the_trace_is_that_of_the_answer(views):
    options = Options(keep_trace=True)
    found = caransac.estimate_relative_pose(**views.pose, images=views.images, options=options)
    assert all(len(each.probabilities) == len(found.inliers) for each in found.trace)
    np.testing.assert_array_equal(found.trace[-1].probabilities, found.probabilities.astype(np.float32))


def test_ellipses_contain_the_truth(rng):
    inside = 0
    for _ in range(10):
        views = photograph(rng, num_points=200)
        found = caransac.estimate_relative_pose(**views.pose, images=views.images)
        limit = 3 * np.degrees(np.sqrt(np.trace(found.covariance)))
        inside += error_of(found, views) < limit
    assert inside >= 9
