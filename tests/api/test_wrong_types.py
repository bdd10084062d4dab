"""Values of a wrong type in the public calls: a ValueError that names the argument, never an error from deep inside."""

from pathlib import Path

import numpy as np
import pytest

import caransac
from caransac import Camera, Matches, plot, synthetic, viewer
from caransac.io import descriptors, images, matches
from caransac.verification import ColmapDatabase, HlocFiles, VerificationOptions, choose_workers
from caransac_lab import datasets, render
from caransac_lab.networks.match_filter import load_filter

NO_PATHS = [None, 7, 1.5, True, "", b"r.json", "a\0b", [], {}, object(), np.zeros(2)]
NO_NUMBERS = [None, "5", b"5", [], {}, object(), 1j, np.nan, np.inf, 10**400, -1, np.zeros(2)]
NO_TEXTS = [None, 7, b"title", [], {}, object(), np.zeros(2)]
NO_RECORDS = [None, 7, "xyz", b"xyz", [], object(), np.zeros(2)]
NO_IMAGES = [7, "a.png", b"a.png", [], {}, object(), [[1, 2], [3]], np.zeros(2), np.array(["a"])]

PAIR = synthetic.make_pair(60, outlier_ratio=0.2, seed=1)
POINTS = PAIR.points1, PAIR.points2
RESULT = caransac.estimate_relative_pose(*POINTS, PAIR.camera1, PAIR.camera2)
VECTORS = np.eye(4, dtype=np.float32)
IMAGE = np.zeros((24, 32, 3), np.uint8)

# Function, name of the wrong argument, and its value.
CALLS = [
    (caransac.load_result, "path", NO_PATHS),
    (caransac.RelativePoseResult.load, "path", NO_PATHS),
    (RESULT.save, "path", NO_PATHS),
    (caransac.show, "height_px", NO_NUMBERS),
    (caransac.estimate_relative_poses, "progress", NO_RECORDS[1:]),
    (caransac.estimate_fundamentals, "progress", NO_RECORDS[1:]),
    (caransac.estimate_fundamentals, "workers", NO_NUMBERS[1:]),
    (caransac.estimate_homography, "score_kind", [7, b"ratio", [], {}, np.array(["a", "b"])]),
    (caransac.matches_from, "score_kind", [7, b"ratio", [], {}, np.array(["a", "b"])]),
    (Camera.from_dict, "camera", NO_RECORDS),
    (Camera.from_text, "text", NO_TEXTS),
    (Camera.with_lens, "deviation", NO_NUMBERS),
    (Matches.from_arrays, "arrays", NO_RECORDS),
    (viewer.write_report, "title", NO_TEXTS),
    (viewer.write_report, "camera_source1", NO_TEXTS),
    (viewer.write_report, "size1", NO_NUMBERS[1:]),
    (viewer.write_report, "max_image_px", NO_NUMBERS[1:]),
    (matches.read_matches, "path", NO_PATHS),
    (matches.read_matches, "key", NO_TEXTS[1:]),
    (matches.write_matches, "matches", NO_RECORDS),
    (matches.parse_matches, "data", [None, 7, "1 2 3 4", [], {}, np.zeros(4)]),
    (images.read_image, "path", NO_PATHS),
    (images.write_image, "path", NO_PATHS),
    (images.write_image, "image", [None, *NO_IMAGES]),
    (images.focal_from_exif, "path", NO_PATHS),
    (images.camera_from_exif, "path", NO_PATHS),
    (images.centred_camera, "image", [None, *NO_IMAGES]),
    (images.centred_camera, "focal_px", NO_NUMBERS[1:-3]),
    (images.detect, "image", [None, *NO_IMAGES]),
    (images.detect, "features", NO_RECORDS),
    (images.detect, "max_features", NO_NUMBERS),
    (images.detect, "max_size", NO_NUMBERS[1:-3]),
    (descriptors.match_vectors, "vectors1", [7, "xyz", {}, object(), [[1, 2], [3]], np.zeros((4, 3)), np.zeros(4)]),
    (descriptors.match_ratios, "descriptors2", [7, "xyz", {}, object(), np.zeros((4, 3)), np.zeros(4)]),
    (descriptors.match_ratios, "partners", [7, "xyz", {}, object(), np.zeros(4), np.arange(4) + 1, [0, 1]]),
    (plot.draw_matches, "max_lines", NO_NUMBERS),
    (plot.draw_matches, "probabilities", [None, 7, "xyz", [], {}, np.full(60, np.nan), np.full(60, "a")]),
    (plot.draw_matches, "image1", NO_IMAGES),
    (plot.draw_matches, "size2", NO_NUMBERS[1:]),
    (plot.draw_matches, "ax", [7, "xyz", {}, object()]),
    (plot.draw_flow, "length", NO_NUMBERS),
    (plot.draw_points3d, "result", NO_RECORDS),
    (plot.summary, "result", NO_RECORDS),
    (load_filter, "filter", NO_PATHS),
    (datasets.open_dataset, "source", NO_PATHS),
    (datasets.open_dataset, "max_pairs", NO_NUMBERS[1:]),
    (datasets.write_npz, "root", NO_PATHS),
    (datasets.write_npz, "pair", NO_RECORDS),
    (synthetic.make_pair, "num_points", NO_NUMBERS),
    (synthetic.make_pair, "width", NO_NUMBERS),
    (synthetic.make_query, "noise_px", NO_NUMBERS),
    (render.render_pair, "angle_deg", NO_NUMBERS[1:-2]),
    (render.render_pair, "scene", NO_RECORDS),
    (ColmapDatabase, "path", NO_PATHS),
    (HlocFiles, "features", NO_PATHS),
    (HlocFiles, "pairs", NO_PATHS),
    (HlocFiles, "cameras", NO_PATHS[1:]),
    (VerificationOptions, "estimation", NO_RECORDS),
    (choose_workers, "workers", NO_NUMBERS),
    (choose_workers, "num_pairs", NO_NUMBERS),
]


def right_arguments(folder):
    """Return valid arguments of all calls by name. A test replaces one of them."""
    points = {"points1": POINTS[0], "points2": POINTS[1]}
    drawn = {"path": folder / "d.png", **points, "probabilities": np.ones(60)}
    report = {"path": folder / "r.html", "result": RESULT, **points}
    hloc = {name: folder / name for name in ("features", "matches", "pairs", "out")}
    return {
        caransac.show: {"result": RESULT, **points},
        caransac.estimate_relative_poses: {"pairs": [(*POINTS, PAIR.camera1, PAIR.camera2)], "workers": 1},
        caransac.estimate_fundamentals: {"pairs": [POINTS], "workers": 1},
        caransac.estimate_homography: points,
        caransac.matches_from: {"first": POINTS[0], "second": POINTS[1]},
        Camera.with_lens: {"self": PAIR.camera1, "k1": 0.1},
        viewer.write_report: report,
        matches.read_matches: {"path": folder / "m.h5"},
        matches.write_matches: {"path": folder / "m.npz"},
        images.write_image: {"path": folder / "i.png", "image": IMAGE},
        images.camera_from_exif: {"image": IMAGE},
        images.centred_camera: {"focal_px": 30.0, "image": IMAGE},
        images.detect: {"image": IMAGE},
        descriptors.match_vectors: {"vectors2": VECTORS},
        descriptors.match_ratios: {"descriptors1": VECTORS, "descriptors2": VECTORS, "partners": np.arange(4)},
        plot.draw_matches: drawn,
        plot.draw_flow: drawn,
        plot.draw_points3d: {"path": None},
        plot.summary: points,
        datasets.open_dataset: {"source": "synthetic:2"},
        datasets.write_npz: {"root": folder, "pair": datasets.Pair.from_synthetic(PAIR, "0")},
        HlocFiles: hloc,
        choose_workers: {"workers": 2, "num_pairs": 9},
    }


@pytest.mark.parametrize(
    ("call", "name", "values"), CALLS, ids=[f"{call.__qualname__} {name}" for call, name, _ in CALLS]
)
def test_a_value_of_a_wrong_type_is_refused_by_name(tmp_path, call, name, values):
    matches.write_matches(tmp_path / "m.h5", Matches(*POINTS))
    right = right_arguments(tmp_path).get(call, {})
    for value in values:
        arguments = {**right, "name" if call is load_filter else name: value}
        with pytest.raises(ValueError, match=name):
            call(**arguments)


def test_the_other_arguments_of_the_calls_are_valid(tmp_path):
    matches.write_matches(tmp_path / "m.h5", Matches(*POINTS))
    missing = {
        matches.write_matches: {"matches": Matches(*POINTS)},
        images.camera_from_exif: {"path": images.write_image(tmp_path / "i.png", IMAGE)},
        descriptors.match_vectors: {"vectors1": VECTORS},
        plot.draw_points3d: {"result": RESULT},
        plot.summary: {"result": RESULT},
        Camera.with_lens: {"deviation": 0.1},
    }
    for call, arguments in right_arguments(tmp_path).items():
        if call is not HlocFiles:  # HlocFiles needs existing files
            call(**{**arguments, **missing.get(call, {})})


def test_paths_may_be_texts_and_paths(tmp_path):
    RESULT.save(str(tmp_path / "r.json"))
    for path in (tmp_path / "r.json", str(tmp_path / "r.json")):
        assert caransac.load_result(path).num_inliers == RESULT.num_inliers
    with pytest.raises(FileNotFoundError, match="nowhere"):
        caransac.load_result(Path(tmp_path / "nowhere.json"))
