"""Drop-in replacements for pycolmap's estimators of two views and of absolute poses, and for its verify_matches.

    from caransac.integrations import pycolmap
    found = pycolmap.estimate_essential_matrix(points2D1, points2D2, camera1, camera2, {"max_error": 1.0})
    geometry = pycolmap.estimate_two_view_geometry(camera1, points1, camera2, points2, matches)
    found = pycolmap.estimate_and_refine_absolute_pose(points2D, points3D, camera)

If pycolmap is installed, all other names (pycolmap.Camera, pycolmap.Database, ...) are taken from it. Cameras and
settings are objects of pycolmap, or dicts. Returns are those of pycolmap: dicts, or None if the data do not determine a
model. The dicts have two more entries, `probabilities` and `confidence`. The arguments `scores` and `score_kind` are
new, as in `caransac.estimate_relative_pose`.

COLMAP puts the centre of the top-left pixel at (0.5, 0.5). Nothing has to be shifted if the points and the principal
point use the same convention, because the pose depends only on their difference.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from caransac import api
from caransac._support.sqlite_files import connect, explaining
from caransac._support.untrusted import read_text
from caransac.given_cameras import as_camera, without_size
from caransac.integrations.originals import all_names, original_attribute
from caransac.integrations.pycolmap_absolute import estimate_absolute_pose as estimate_absolute_pose
from caransac.integrations.pycolmap_absolute import (
    estimate_and_refine_absolute_pose as estimate_and_refine_absolute_pose,
)
from caransac.integrations.pycolmap_settings import as_options, common_entries, load_pycolmap
from caransac.integrations.pycolmap_two_view import as_pair, as_two_view_settings, estimate_geometry
from caransac.options import Options, ScoreKind
from caransac.verification import ColmapDatabase, PairGeometry, open_executor, verify
from caransac.verification.colmap import MAX_IMAGES, OTHERWISE

if TYPE_CHECKING:
    import pycolmap


def estimate_essential_matrix(
    points2D1: ArrayLike,
    points2D2: ArrayLike,
    camera1: Any,
    camera2: Any,
    estimation_options: pycolmap.RANSACOptions | Mapping[str, Any] | Options | None = None,
    *,
    scores: ArrayLike | None = None,
    score_kind: ScoreKind | None = None,
) -> dict[str, Any] | None:
    """Replace ``pycolmap.estimate_essential_matrix``. Needs pycolmap, whose Rigid3d it returns.

    Args:
        points2D1: (N, 2) pixels in image 1.
        points2D2: (N, 2) pixels in image 2.
        camera1: camera of image 1: a pycolmap.Camera, a dict {model, params, width, height}, or any camera that
            `caransac.estimate_relative_pose` accepts.
        camera2: camera of image 2, in any of these forms.
        estimation_options: a pycolmap.RANSACOptions, a dict of its fields, or a `caransac.Options`. `max_error` (a
            Sampson distance in pixels, 4 by default), `confidence` and `random_seed` have pycolmap's meaning.
            `max_num_trials` is the maximum number of hypotheses, up to a million; pycolmap's default of 100,000 is
            replaced by ours. If `min_num_trials` is equal to it, exactly that many are tried. All other settings are
            ignored.
        scores: (N,) quality of each match; see `caransac.estimate_relative_pose` (new).
        score_kind: kind of the scores, "ratio" or "confidence"; required with scores (new).

    Returns:
        A dict with E (3, 3), cam2_from_cam1 (pycolmap.Rigid3d), num_inliers, inlier_mask (N,) bool, probabilities (N,)
        and confidence; or None if the data do not determine a pose.

    Raises:
        ValueError: a setting is unknown, or an argument has a wrong shape or value; the message names it.
        ImportError: pycolmap is not installed.
    """
    pycolmap = load_pycolmap()
    found = api.estimate_relative_pose(
        points2D1,
        points2D2,
        without_size(as_camera(camera1, "camera1")),
        without_size(as_camera(camera2, "camera2")),
        scores=scores,
        score_kind=score_kind,
        options=as_options(estimation_options),
    )
    if found.R is None or found.t is None:
        return None
    pose = pycolmap.Rigid3d(pycolmap.Rotation3d(found.R), found.t)
    return {"E": found.E, "cam2_from_cam1": pose, **common_entries(found)}


def estimate_fundamental_matrix(
    points2D1: ArrayLike,
    points2D2: ArrayLike,
    estimation_options: pycolmap.RANSACOptions | Mapping[str, Any] | Options | None = None,
    use_sampson_refinement: bool = True,  # noqa: ARG001  # the refinement always uses Sampson distances
    *,
    scores: ArrayLike | None = None,
    score_kind: ScoreKind | None = None,
) -> dict[str, Any] | None:
    """Replace ``pycolmap.estimate_fundamental_matrix``; pycolmap is not needed.

    Arguments and errors are those of `estimate_essential_matrix`, without cameras. `use_sampson_refinement` is ignored.

    Returns:
        A dict with F (3, 3), num_inliers, inlier_mask (N,) bool, probabilities (N,) and confidence; or None if the data
        do not determine a matrix.
    """
    options = as_options(estimation_options)
    found = api.estimate_fundamental(points2D1, points2D2, scores=scores, score_kind=score_kind, options=options)
    return None if found.F is None else {"F": found.F, **common_entries(found)}


def estimate_homography_matrix(
    points2D1: ArrayLike,
    points2D2: ArrayLike,
    estimation_options: pycolmap.RANSACOptions | Mapping[str, Any] | Options | None = None,
    *,
    scores: ArrayLike | None = None,
    score_kind: ScoreKind | None = None,
) -> dict[str, Any] | None:
    """Replace ``pycolmap.estimate_homography_matrix``; pycolmap is not needed.

    Arguments and errors are those of `estimate_fundamental_matrix`. `max_error` limits the root mean square of the
    distances in both images. If both images have the same scale, that is pycolmap's distance in the second image.

    Returns:
        A dict with H (3, 3) of norm one, num_inliers, inlier_mask (N,) bool, probabilities (N,) and confidence; or None
        if the data do not determine a matrix.
    """
    options = as_options(estimation_options)
    found = api.estimate_homography(points2D1, points2D2, scores=scores, score_kind=score_kind, options=options)
    return None if found.H is None else {"H": found.H, **common_entries(found)}


def estimate_two_view_geometry(
    camera1: Any,
    points1: ArrayLike,
    camera2: Any,
    points2: ArrayLike,
    matches: ArrayLike | None = None,
    options: pycolmap.TwoViewGeometryOptions | Mapping[str, Any] | Options | None = None,
    *,
    scores: ArrayLike | None = None,
    score_kind: ScoreKind | None = None,
) -> pycolmap.TwoViewGeometry:
    """Replace ``pycolmap.estimate_two_view_geometry``: kind of geometry, matrices and inliers of a pair.

    Cameras with ``has_prior_focal_length`` are treated as exact. Other focal lengths are treated as unknown, even if
    the parameters have a value. They are estimated from the image sizes and the matches: ``config`` is then
    UNCALIBRATED, and ``camera1`` and ``camera2`` of the geometry are the estimated cameras.

    Args:
        camera1: camera of image 1: a pycolmap.Camera, a dict {model, params, width, height, has_prior_focal_length}, or
            any camera that `caransac.estimate_relative_pose` accepts.
        points1: (m, 2) pixels of the keypoints in image 1.
        camera2: camera of image 2, in any of these forms.
        points2: (k, 2) pixels of the keypoints in image 2.
        matches: (n, 2) indices of keypoints, or None if row i of `points1` matches row i of `points2`.
        options: a pycolmap.TwoViewGeometryOptions, a dict of its fields, or a `caransac.Options`. `min_num_inliers`,
            `min_inlier_ratio`, `ransac` (as in `estimate_essential_matrix`), `force_H_use`, `multiple_models` and the
            settings of stationary matches and watermarks have pycolmap's meaning. All other settings are ignored.
        scores: (n,) quality of each match; see `caransac.estimate_relative_pose` (new).
        score_kind: kind of the scores, "ratio" or "confidence"; required with scores (new).

    Returns:
        A pycolmap.TwoViewGeometry with config, inlier_matches (k, 2) and, as far as the data determine them, E, F, H,
        cam2_from_cam1 and tri_angle. If they determine nothing, config is DEGENERATE.

    Raises:
        ValueError: a setting is unknown, or an argument has a wrong shape or value; the message names it.
        ImportError: pycolmap is not installed.
    """
    pair = as_pair((camera1, camera2), (points1, points2), matches, scores, score_kind, trusted=False)
    return estimate_geometry(*pair, as_two_view_settings(options))


def estimate_calibrated_two_view_geometry(
    camera1: Any,
    points1: ArrayLike,
    camera2: Any,
    points2: ArrayLike,
    matches: ArrayLike | None = None,
    options: pycolmap.TwoViewGeometryOptions | Mapping[str, Any] | Options | None = None,
    *,
    scores: ArrayLike | None = None,
    score_kind: ScoreKind | None = None,
) -> pycolmap.TwoViewGeometry:
    """Replace ``pycolmap.estimate_calibrated_two_view_geometry``.

    It is `estimate_two_view_geometry` with all cameras treated as exact.
    """
    pair = as_pair((camera1, camera2), (points1, points2), matches, scores, score_kind, trusted=True)
    return estimate_geometry(*pair, as_two_view_settings(options))


def verify_matches(
    database_path: str | Path,
    pairs_path: str | Path,
    options: pycolmap.TwoViewGeometryOptions | Mapping[str, Any] | Options | None = None,
    cancellation_token: pycolmap.CancellationToken | None = None,
) -> None:
    """Replace ``pycolmap.verify_matches``: verify listed pairs of a COLMAP database and write their geometries.

    Pairs that already have a geometry keep it, as in pycolmap. The verification is that of ``caransac verify``: prior
    focal lengths are treated as known to a few per cent, and unknown ones are pooled over the pairs of a camera.
    pycolmap is not needed.

    Args:
        database_path: path of the database.
        pairs_path: path of a text file with lines ``image1 image2``. Images that are not in the database are skipped
            with a warning. Pairs without matches are skipped silently.
        options: options as in `estimate_two_view_geometry`. `min_inlier_ratio`, `force_H_use`, `multiple_models` and
            `filter_stationary_matches` must be off, and watermarks are not detected.
        cancellation_token: a pycolmap.CancellationToken. After it is cancelled, no further pair is verified.

    Raises:
        ValueError: a setting is unknown, or a file has the wrong content.
        OSError: a file is missing or cannot be written to.
    """
    settings = as_two_view_settings(options)
    for name in ("min_inlier_ratio", "force_H_use", "multiple_models", "filter_stationary_matches"):
        if getattr(settings, name):
            raise ValueError(f"options: {name} must be off: `caransac verify`, which runs here, does not support it")
    with closing(ColmapDatabase(database_path)) as database, open_executor() as (executor, in_flight):
        wanted = _read_pair_ids(Path(database_path), Path(pairs_path))
        database.pending = [key for key in database.pending if key in wanted]

        def stop_if_cancelled(_: Sequence[PairGeometry]) -> None:
            if cancellation_token is not None and cancellation_token.is_cancelled:
                raise _CancelledError

        try:
            verify(database, executor, settings.verification, in_flight=in_flight, on_batch=stop_if_cancelled)
        except _CancelledError:
            return


class _CancelledError(Exception):
    """The caller cancelled the verification."""


def _read_pair_ids(database: Path, pairs: Path) -> set[int]:
    """Return the ids in a database of the image pairs that a text file lists."""
    with explaining(database, OTHERWISE), closing(connect(database)) as connection:
        numbers = {name: number for number, name in connection.execute("SELECT image_id, name FROM images")}
    listed = [words[:2] for line in read_text(pairs).splitlines() if len(words := line.split("#")[0].split()) >= 2]
    if unknown := sorted({name for names in listed for name in names if name not in numbers}):
        warnings.warn(f"{pairs}: {len(unknown)} images are not in {database}, for example {unknown[0]}", stacklevel=3)
    ids = (sorted(numbers[name] for name in names) for names in listed if not set(names) & set(unknown))
    return {MAX_IMAGES * first + second for first, second in ids}


def __getattr__(name: str) -> Any:
    return original_attribute("pycolmap", name, "pycolmap")


def __dir__() -> list[str]:
    return all_names("pycolmap", globals())
