"""Convert the output of other libraries to `Matches`; docs/matchers.md shows each of them.

No library is imported here. Keypoints, matches and tensors are recognised by their attributes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caransac._support.arrays import as_array, as_reals, as_size, is_integer, is_real, shorten
from caransac.camera import Camera
from caransac.geometry import Array
from caransac.given_cameras import CameraLike, as_camera
from caransac.io.matches import Matches
from caransac.options import ScoreKind, check_score_kind

Points = ArrayLike | Sequence[Any] | Mapping[str, Any]  # or OpenCV's keypoints, or a dictionary that contains them
Found = ArrayLike | Sequence[Any] | Mapping[str, Any]

# Names of dictionary entries; the first one that exists is used. They come from LightGlue and glue-factory, SuperGlue,
# LoFTR in its own repository and in kornia, and vismatch.
KEYPOINTS = ("keypoints", "kpts", "lafs")
PAIRED_KEYPOINTS = ("keypoints{}", "mkpts{}_f", "mkpts{}", "matched_kpts{}", "kpts{}", "lafs{}")
MATCHES = ("matches", "matches0")
SCORES = ("scores", "matching_scores0", "confidence", "mconf")
SIZES = ("image_size", "image_size{}", "size{}")
BATCH = ("batch_indexes", "m_bids")  # index of the image pair within a batch, one per match of LoFTR

MAX_WARP_MATCHES = 10_000  # more matches hardly improve a pose, see docs/matchers.md
MIN_CERTAINTY = 0.05  # RoMa's own threshold; a pixel below it most likely has no match


def matches_from(
    first: Points,
    second: Points | None = None,
    matches: Found | None = None,
    *,
    scores: ArrayLike | None = None,
    score_kind: ScoreKind | None = None,
    camera1: CameraLike | None = None,
    camera2: CameraLike | None = None,
    image_size1: ArrayLike | None = None,
    image_size2: ArrayLike | None = None,
    images: tuple[Any, Any] | None = None,
) -> Matches:
    """Convert the output of a feature matcher to correspondences for the estimators.

    Args:
        first: all keypoints of image 1, or only the matched ones: points (N, 2), (N, 1, 2) or (1, N, 2), a sequence of
            cv2.KeyPoint, kornia's local affine frames (N, 2, 3) or (1, N, 2, 3), or a dictionary with "keypoints". A
            single dictionary for both images has "keypoints0" and "keypoints1". Arrays may be numpy arrays, lists or
            torch tensors.
        second: keypoints of image 2 in the same form; None if `first` is a dictionary for both images.
        matches: indices of matching keypoints, (M, 2) or (1, M, 2); or, for each keypoint of image 1, the index in
            image 2 or -1, (N,) or (1, N); or a sequence of cv2.DMatch, or of lists of them as knnMatch returns; or a
            dictionary with "matches" or "matches0". None if row i of `first` matches row i of `second`.
        scores: (M,), (1, M) or (M, 1) one number per match. By default, the scores of the dictionaries are used. For
            the result of knnMatch with two or more neighbours, the default is the ratio of the two smallest distances.
        score_kind: kind of the scores, "ratio" or "confidence"; required with `scores`. The default for scores of
            dictionaries is "confidence".
        camera1: camera of image 1, as in `estimate_relative_pose`; calibration matrices may be (1, 3, 3).
        camera2: camera of image 2.
        image_size1: (width, height) of image 1 if its camera is unknown. By default, the size in the dictionary.
        image_size2: size of image 2.
        images: both photographs, arrays or paths, for the estimators to refine the matches in them. The keypoints are
            their pixels.

    Returns:
        The matches: ``caransac.estimate(**found.arguments())``.

    Raises:
        ValueError: an argument has none of these forms. The message names it.
    """
    if isinstance(first, Mapping) and second is None:
        sides = [_side_of_both(first, number) for number in (1, 2)]
        matches = first if matches is None and any(name in first for name in MATCHES) else matches
        found_scores = _entry(first, SCORES, "scores", "first")
    else:
        if second is None:
            raise ValueError("second must be the keypoints of image 2, unless first is a dictionary for both images")
        sides = [_side(first, "first"), _side(second, "second")]
        found_scores = None
    check_score_kind(None, score_kind)
    (points1, size1), (points2, size2) = sides
    points1, points2, ratios, chosen = _matched(points1, points2, matches)
    if isinstance(matches, Mapping) and found_scores is None:
        found_scores = _entry(matches, SCORES, "scores", "matches")
    if scores is None and ratios is not None:
        scores, score_kind = ratios, score_kind or "ratio"
    elif scores is None and found_scores is not None:
        scores, score_kind = found_scores, score_kind or "confidence"
    numbers = None if scores is None else _flat(scores, "scores")
    if numbers is not None and chosen is not None and len(numbers) == len(chosen):  # one entry per keypoint of image 1
        numbers = numbers[chosen]
    cameras = _camera(camera1, "camera1"), _camera(camera2, "camera2")
    sizes = _size(image_size1, size1, "image_size1"), _size(image_size2, size2, "image_size2")
    return _make(points1, points2, numbers, score_kind, cameras, sizes, images)


def matches_from_warp(
    warp: ArrayLike,
    certainty: ArrayLike,
    *,
    image_size1: ArrayLike | None = None,
    image_size2: ArrayLike | None = None,
    camera1: CameraLike | None = None,
    camera2: CameraLike | None = None,
    images: tuple[Any, Any] | None = None,
    max_matches: int = MAX_WARP_MATCHES,
    min_certainty: float = MIN_CERTAINTY,
    seed: int = 0,
) -> Matches:
    """Draw random correspondences from a dense warp of RoMa or DKM. Certain ones are drawn more often.

    Args:
        warp: (H, W, 4) or (1, H, W, 4) coordinates x1, y1, x2, y2. They range from -1 (left or upper edge of the image)
            to 1 (right or lower edge). Symmetric warps (H, 2 W, 4) and samples (N, 4) are accepted, too.
        certainty: (H, W), (1, H, W) or (N,) certainty from 0 to 1.
        image_size1: (width, height) of image 1, which sets the pixel units of the matches. Not needed if `camera1` has
            a size.
        image_size2: size of image 2.
        camera1: camera of image 1, as in `matches_from`.
        camera2: camera of image 2.
        images: both photographs, as in `matches_from`.
        max_matches: maximum number of matches; each is drawn once.
        min_certainty: minimum certainty of a match.
        seed: seed of the draw.

    Returns:
        The matches with their certainties as confidences. The centre of the top-left pixel is (0, 0), as in OpenCV.

    Raises:
        ValueError: an argument has a wrong shape or impossible values. The message names it.
    """
    rows = as_reals(_one_of_batch(warp, "warp", 3), "warp")
    weights = as_reals(_one_of_batch(certainty, "certainty", 2), "certainty")
    if rows.ndim not in (2, 3) or rows.shape[-1] != 4:
        raise ValueError(f"warp must have shape (H, W, 4) or (N, 4), got {np.shape(warp)}")
    if weights.size != rows.size // 4 or (rows.ndim == 3 and weights.shape != rows.shape[:2]):
        raise ValueError(f"certainty must have shape {rows.shape[:-1]}, the shape of warp, got {weights.shape}")
    if weights.min(initial=0) < 0 or weights.max(initial=1) > 1:
        raise ValueError("certainty must be from 0 to 1; take the sigmoid of logits")
    if not is_integer(max_matches) or max_matches < 1:
        raise ValueError(f"max_matches must be a positive whole number, not {shorten(max_matches)}")
    if not is_real(min_certainty) or not 0 <= min_certainty <= 1:
        raise ValueError(f"min_certainty must be from 0 to 1, not {shorten(min_certainty)}")
    if not is_integer(seed) or seed < 0:
        raise ValueError(f"seed must be a whole number of at least 0, not {shorten(seed)}")
    rows, weights = rows.reshape(-1, 4), weights.ravel()
    cameras = _camera(camera1, "camera1"), _camera(camera2, "camera2")
    sizes = [
        _needed_size(_size(size, None, f"image_size{number}"), camera, number)
        for number, (size, camera) in enumerate(zip((image_size1, image_size2), cameras, strict=True), 1)
    ]
    usable = np.flatnonzero((weights >= max(min_certainty, 1e-12)) & np.all(np.abs(rows) <= 1, axis=1))
    chosen = _draw(usable, weights[usable], int(max_matches), seed)
    # The edges of an image lie half a pixel outside the centres of its outermost pixels.
    points1, points2 = (
        (rows[chosen, place : place + 2] + 1) * np.array(size) / 2 - 0.5
        for place, size in zip((0, 2), sizes, strict=True)
    )
    return _make(points1, points2, weights[chosen], "confidence", cameras, (sizes[0], sizes[1]), images)


def _draw(places: NDArray[np.intp], weights: Array, count: int, seed: int) -> NDArray[np.intp]:
    """Draw up to `count` places without repetition, with probabilities proportional to their weights, in order."""
    if len(places) <= count:
        return places
    # The largest values of log-weight plus Gumbel noise are a weighted sample without repetition (Efraimidis and
    # Spirakis).
    keys = np.log(weights) + np.random.default_rng(seed).gumbel(size=len(places))
    return places[np.sort(np.argpartition(-keys, count)[:count])]


def _make(
    points1: Array,
    points2: Array,
    scores: Array | None,
    score_kind: ScoreKind | None,
    cameras: tuple[Camera | None, Camera | None],
    sizes: tuple[tuple[int, int] | None, tuple[int, int] | None],
    images: tuple[Any, Any] | None,
) -> Matches:
    """Assemble the matches. The size of an image is used only if its camera is unknown."""
    check_score_kind(scores, score_kind)
    return Matches(
        points1,
        points2,
        scores,
        score_kind or "ratio",
        *cameras,
        image_size1=sizes[0] if cameras[0] is None else None,
        image_size2=sizes[1] if cameras[1] is None else None,
        images=images,
    )


def _side(given: Points, name: str) -> tuple[Array, Any]:
    """Return the points (N, 2) of one image, and its size if a dictionary contains it."""
    if not isinstance(given, Mapping):
        return _points(given, name), None
    keypoints = _entry(given, KEYPOINTS, "keypoints", name)
    if keypoints is None:
        raise ValueError(f'{name} must have "keypoints", but has {", ".join(map(str, given)) or "nothing"}')
    return _points(keypoints, f'{name}["keypoints"]'), _entry(given, SIZES, "image_size", name)


def _side_of_both(given: Mapping[str, Any], number: int) -> tuple[Array, Any]:
    """Return the points (N, 2) of one image from a dictionary for both, and its size if present."""
    index = number - 1  # the names in dictionaries count from zero
    for name in BATCH:
        if name in given and as_array(given[name], name).any():
            raise ValueError(f"first must contain one pair, but {name} has several; select the matches of one pair")
    keypoints = _entry(given, [name.format(index) for name in PAIRED_KEYPOINTS], f"keypoints{index}", "first")
    if keypoints is None:
        raise ValueError(
            f'first must have "keypoints{index}", but has {", ".join(map(str, given)) or "nothing"}; or give the '
            "keypoints of image 2 as second"
        )
    sizes = [name.format(index) for name in SIZES if "{}" in name]
    return _points(keypoints, f'first["keypoints{index}"]'), _entry(given, sizes, f"image_size{index}", "first")


def _entry(given: Mapping[str, Any], names: Sequence[str], what: str, argument: str) -> Any:
    """Return the first of several entries that a dictionary has, without its batch dimension; None if there is none."""
    for name in names:
        if given.get(name) is not None:
            return _only(given[name], f'{argument}["{what}"]')
    return None


def _only(value: Any, name: str) -> Any:
    """Unpack a batch of one that is a list of tensors, as LightGlue returns it. Return other values unchanged."""
    if not isinstance(value, list | tuple) or not value or len(getattr(value[0], "shape", ())) < 1:
        return value
    if len(value) > 1 and len(value[0].shape) > 1:
        raise ValueError(f"{name} must be of one pair, not of a batch of {len(value)}")
    is_point = "keypoints" in name and len(value[0].shape) == 1
    return value if is_point or len(value) > 1 else value[0]


def _one_of_batch(values: Any, name: str, ndim: int) -> NDArray[Any]:
    """Remove leading axes of length one until an array has `ndim` dimensions."""
    array = as_array(values, name)
    while array.ndim > ndim:
        if len(array) != 1:
            raise ValueError(f"{name} must be of one pair, not of a batch of {len(array)}, got shape {array.shape}")
        array = array[0]
    return array


def _points(given: Any, name: str) -> Array:
    """Convert keypoints of any supported form to points (N, 2)."""
    if isinstance(given, list | tuple) and given and hasattr(given[0], "pt"):  # cv2.KeyPoint
        if not all(hasattr(keypoint, "pt") for keypoint in given):
            raise ValueError(f"{name} must be a list of cv2.KeyPoint, but has other objects, too")
        return as_reals([keypoint.pt for keypoint in given], name)
    array = as_array(given, name)
    if array.size == 0:
        return np.empty((0, 2))
    shape = array.shape
    if array.ndim >= 3 and shape[-2:] == (2, 3):  # local affine frames; the last column is the centre
        array = array[..., 2]
    if array.ndim == 3 and 1 in array.shape[:2]:
        array = array.reshape(-1, array.shape[-1])
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(
            f"{name} must be points (N, 2), (N, 1, 2) or (1, N, 2), a list of cv2.KeyPoint, or local affine frames "
            f"(N, 2, 3); got shape {shape}"
        )
    return as_reals(array, name)


def _flat(scores: ArrayLike, name: str) -> Array:
    """Convert scores of shape (N,), (1, N) or (N, 1) to (N,)."""
    numbers = as_reals(scores, name)
    if numbers.ndim > 2 or (numbers.ndim == 2 and 1 not in numbers.shape and numbers.size):
        raise ValueError(f"{name} must have shape (N,), (1, N) or (N, 1), got {numbers.shape}")
    return numbers.ravel()


def _matched(
    points1: Array, points2: Array, matches: Any
) -> tuple[Array, Array, Array | None, NDArray[np.bool_] | None]:
    """Return the matched points (M, 2) of both images, and additional information of the matches.

    The additional values are the distance ratios (M,) or None, and a mask of the matched keypoints of image 1 or None.
    The mask exists if there is one entry per keypoint.
    """
    if isinstance(matches, Mapping):
        found = _entry(matches, MATCHES, "matches", "matches")
        if found is None:
            raise ValueError(f'matches must have "matches" or "matches0", but has {", ".join(map(str, matches))}')
        per_keypoint = matches.get("matches") is None
        matches = as_array(found, "matches").ravel() if per_keypoint else found
    if matches is None:
        if len(points1) != len(points2):
            raise ValueError(f"matches must be given, because there are {len(points1)} and {len(points2)} keypoints")
        return points1, points2, None, None
    if isinstance(matches, list | tuple) and any(_is_descriptor_match(each) for each in matches):
        indices, ratios = _from_descriptor_matches(matches)
        chosen = None
    else:
        indices, chosen = _as_indices(matches, len(points1))
        ratios = None
    if len(indices) and (indices.min() < 0 or np.any(indices.max(axis=0) >= (len(points1), len(points2)))):
        raise ValueError(f"matches must be indices of the {len(points1)} and {len(points2)} keypoints")
    return points1[indices[:, 0]], points2[indices[:, 1]], ratios, chosen


def _as_indices(matches: Any, count1: int) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
    """Return match indices (M, 2), and a mask of the matched keypoints of image 1 if there is one entry for each."""
    array = as_array(matches, "matches")
    if array.size == 0:
        return np.empty((0, 2), np.int64), None
    if array.dtype.kind not in "iu":
        raise ValueError(f"matches must be indices of keypoints, whole numbers, not {array.dtype}")
    if array.ndim == 3 and len(array) == 1:
        array = array[0]
    array = array.astype(np.int64)
    if array.ndim == 2 and array.shape[1] == 2:
        return array, None
    if array.ndim > 2 or (array.ndim == 2 and len(array) != 1) or array.size != count1:
        raise ValueError(
            f"matches must be indices (M, 2), or (N,) with -1 for no match, one for each of the {count1} keypoints "
            f"of image 1; got shape {np.shape(matches)}"
        )
    chosen = array.ravel() >= 0
    return np.stack([np.flatnonzero(chosen), array.ravel()[chosen]], axis=1), chosen


def _is_descriptor_match(value: Any) -> bool:
    """Return True for a cv2.DMatch or a list of them."""
    return hasattr(value, "trainIdx") or (
        isinstance(value, list | tuple) and len(value) > 0 and hasattr(value[0], "trainIdx")
    )


def _from_descriptor_matches(matches: Sequence[Any]) -> tuple[NDArray[np.int64], Array | None]:
    """Return the indices (M, 2) of OpenCV's matches, and distance ratios (M,) if second neighbours are known.

    A single distance is not used, because its scale depends on the descriptor and the image.
    """
    ranked = [list(each) if isinstance(each, list | tuple) else [each] for each in matches]
    ranked = [each for each in ranked if each]
    if not all(hasattr(each, "trainIdx") for few in ranked for each in few):
        raise ValueError("matches must be cv2.DMatch, or lists of them, but have other objects, too")
    indices = np.array([(each[0].queryIdx, each[0].trainIdx) for each in ranked], np.int64).reshape(-1, 2)
    if all(len(each) == 1 for each in ranked):
        return indices, None
    nearest = np.array([each[0].distance for each in ranked])
    second = np.array([each[1].distance if len(each) > 1 else each[0].distance for each in ranked])
    return indices, np.divide(nearest, second, out=np.ones_like(nearest), where=second > 0)


def _camera(camera: Any, name: str) -> Camera | None:
    """Convert an argument to a camera. Calibration matrices may have leading axes of length one."""
    if camera is None or isinstance(camera, Camera | Mapping):
        return None if camera is None else as_camera(camera, name)
    # A list of two is OpenCV's (K, distCoeffs).
    if hasattr(camera, "shape") or (isinstance(camera, list) and len(camera) != 2):
        array = as_array(camera, name)
        camera = array.reshape(3, 3) if array.size == 9 and array.shape[-2:] == (3, 3) else array
    return as_camera(camera, name)


def _size(given: Any, found: Any, name: str) -> tuple[int, int] | None:
    """Return the given (width, height), or else the one found in a dictionary; None if there is neither."""
    size = found if given is None else given
    if size is None:
        return None
    return as_size(as_reals(size, name).ravel(), name)


def _needed_size(size: tuple[int, int] | None, camera: Camera | None, number: int) -> tuple[int, int]:
    if size is not None:
        return size
    if camera is None or min(camera.width, camera.height) < 1:
        raise ValueError(f"image_size{number} must be given, or a camera{number} with width and height")
    return camera.width, camera.height
