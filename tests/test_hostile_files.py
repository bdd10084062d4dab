"""Files that were damaged or forged in hundreds of ways are read, or refused by a ValueError or an OSError."""

import json
import shutil
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
from databases import make_collection, make_database, some_pairs
from hloc_files import make_files
from hostile import ODD_VALUES, change_bytes, change_database, change_h5, change_npz, change_text
from layouts import write_pair_list, write_posebench

from caransac import Options, estimate_relative_pose
from caransac.camera import Camera
from caransac.cli import main
from caransac.given_cameras import as_camera
from caransac.io.images import focal_from_exif, read_image, write_image
from caransac.io.matches import Matches, parse_matches, read_matches, write_matches
from caransac.learned.weights_file import read_weights
from caransac.synthetic import make_pair
from caransac.tuning import Tuning
from caransac.verification import ColmapDatabase, HlocFiles, VerificationOptions, describe_settings
from caransac.verification.hloc import read_cameras
from caransac.verification.pair_records import BadPairError, PairReport
from caransac.verification.pair_reports import write_pair_reports
from caransac.verification.provenance import describe_kept
from caransac_lab.bench.filters import saved_filter
from caransac_lab.bench.journal import Journal
from caransac_lab.bench.protocol import Outcome
from caransac_lab.datasets import Pair, read_npz, read_pair_list, read_posebench, write_npz
from caransac_lab.networks.sample_quality import load_quality
from caransac_lab.networks.weights import find_weights

pytestmark = pytest.mark.slow

PAIR = make_pair(30, seed=1)
MATCHES = Matches(PAIR.points1, PAIR.points2, PAIR.scores, "ratio", PAIR.camera1, PAIR.camera2)
ODD_NUMBERS = (10**400, 10**5000, np.int8(100), np.uint8(255), np.array([1, 2]), np.float32(0.5), 1j)
COUNT = 40  # cases of each kind


def refuses(read, *arguments):
    """Call a reader. Return True if it refuses the input."""
    try:
        read(*arguments)
    except (ValueError, OSError) as error:
        assert str(error)
        return True
    return False


@pytest.fixture(scope="module")
def valid(tmp_path_factory):
    """Valid files of every kind."""
    folder = tmp_path_factory.mktemp("valid")
    for suffix in (".npz", ".h5", ".txt"):
        write_matches(folder / f"matches{suffix}", MATCHES)
    with h5py.File(folder / "packed.h5", "w") as file:
        file.create_dataset("pair", data=np.c_[PAIR.points1, PAIR.points2], compression="gzip", chunks=(10, 4))
    write_posebench(folder / "posebench.h5", PAIR)
    (folder / "hloc").mkdir()
    shutil.copyfile(make_files(folder / "hloc") / "cameras.txt", folder / "cameras.txt")
    make_database(folder / "database.db", some_pairs(4, num_points=40))
    make_collection(folder / "collection.db", count=4)
    image = np.random.default_rng(0).integers(0, 255, (24, 32, 3), np.uint8)
    for suffix in (".png", ".jpg", ".tif"):
        write_image(folder / f"image{suffix}", image)
    return folder


def read_everything(source):
    """Read all pairs of a source like a verification run."""
    try:
        for key in [*source.pending, *(key for unknown in source.unpooled.values() for key in unknown.pairs)]:
            try:
                source.read(key)
            except BadPairError:
                continue
            source.focals(key)
        describe_kept(source.kept_settings, describe_settings(VerificationOptions()))
        return source.kept
    finally:
        source.close()


def read_hloc(folder):
    inputs = [folder / name for name in ("feats.h5", "matches.h5", "pairs.txt")]
    options = {"cameras": folder / "cameras.txt", "strict": False}
    return read_everything(HlocFiles(*inputs, folder / "out.h5", **options))


def read_colmap(path):
    return read_everything(ColmapDatabase(path, strict=False, ratio_from_descriptors=False))


def read_colmap_with_descriptors(path):
    return read_everything(ColmapDatabase(path, strict=False, ratio_from_descriptors=True, calibrated="always"))


def read_image_and_exif(path):
    focal_from_exif(path)
    return read_image(path)


READERS = {
    "matches.npz": read_matches,
    "matches.h5": read_matches,
    "packed.h5": read_matches,
    "matches.txt": read_matches,
    "posebench.h5": lambda path: list(read_posebench(path)),
    "cameras.txt": read_cameras,
    "database.db": read_colmap,
    "collection.db": read_colmap_with_descriptors,
    "image.png": read_image_and_exif,
    "image.jpg": read_image_and_exif,
    "image.tif": read_image_and_exif,
}


# HDF5 stores strings in a heap, and it may loop forever if this heap is damaged. Files with strings are therefore
# damaged only in other tests.
@pytest.mark.parametrize("name", [name for name in READERS if name not in ("matches.h5", "posebench.h5")])
def test_files_with_changed_bytes(valid, tmp_path, rng, name):
    data, refused = (valid / name).read_bytes(), 0
    for _ in range(COUNT):
        (tmp_path / name).write_bytes(change_bytes(data, rng))
        refused += refuses(READERS[name], tmp_path / name)
    assert refused > 0
    assert not refuses(READERS[name], shutil.copyfile(valid / name, tmp_path / name))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("matches.npz", change_npz),
        ("matches.h5", change_h5),
        ("packed.h5", change_h5),
        ("posebench.h5", change_h5),
        ("database.db", change_database),
        ("collection.db", change_database),
    ],
)
def test_files_with_changed_content(valid, tmp_path, rng, name, change):
    for _ in range(COUNT):
        change(shutil.copyfile(valid / name, tmp_path / name), rng)
        refuses(READERS[name], tmp_path / name)


@pytest.mark.parametrize("name", ["feats.h5", "matches.h5"])
def test_files_of_hloc_with_other_content(tmp_path, rng, name):
    made = make_files(tmp_path)
    data = (made / name).read_bytes()
    for number in range(COUNT):
        (made / name).write_bytes(data if number % 2 else change_bytes(data, rng))
        if number % 2:
            change_h5(made / name, rng)
        refuses(read_hloc, made)


def test_texts_with_changed_words(valid, tmp_path, rng):
    listed = write_pair_list(tmp_path, [PAIR])
    texts = {
        "matches.txt": (read_matches, (valid / "matches.txt").read_text()),
        "cameras.txt": (read_cameras, (valid / "cameras.txt").read_text()),
        "list.txt": (lambda path: list(read_pair_list(path)), listed.read_text()),
    }
    for name, (read, text) in texts.items():
        for _ in range(COUNT):
            (tmp_path / name).write_text(change_text(text, rng), encoding="utf-8")
            refuses(read, tmp_path / name)
    for _ in range(COUNT):
        refuses(Camera.from_text, change_text("OPENCV:640x480:500,500,320,240,0.1,0,0,0 ±5%", rng))
        refuses(parse_matches, change_text(texts["matches.txt"][1], rng).encode())


@pytest.mark.parametrize("name", ["default", "filter", "sample-quality"])
def test_weights_with_other_content(tmp_path, rng, name):
    path = tmp_path / "weights.npz"
    for number in range(COUNT):
        np.savez(path, **read_weights(find_weights(name)))
        if number % 2:
            change_npz(path, rng)
        else:
            path.write_bytes(change_bytes(path.read_bytes(), rng))
        if name == "filter":
            refuses(lambda: saved_filter(f"mine={path}").apply(Pair.from_synthetic(PAIR, "0")))
            continue
        if name == "sample-quality":
            refuses(lambda: load_quality(path))
            continue
        try:
            found = estimate_relative_pose(
                PAIR.points1, PAIR.points2, PAIR.camera1, PAIR.camera2, options=Options(rounds=2, weights=path)
            )
        except ValueError as error:
            assert "weights.npz" in str(error)
            continue
        assert found.confidence is None or 0 <= found.confidence <= 1
        assert np.all(np.isfinite(found.probabilities))


def test_archives_of_pairs_with_other_content(tmp_path, rng):
    path = write_npz(tmp_path, Pair.from_synthetic(PAIR, "0"))
    data = path.read_bytes()
    for _ in range(COUNT):
        path.write_bytes(data)
        change_npz(path, rng)
        refuses(lambda: list(read_npz(tmp_path)))


def test_journals_with_other_content(tmp_path, rng):
    path = tmp_path / "journal.jsonl"
    with Journal(path, {"versions": {"numpy": "2"}}) as journal:
        for number in range(4):
            journal.add(("data", "scene", str(number)), Outcome(status="found", rotation_deg=1.0, parts_ms={"a": 1.0}))
    data = path.read_bytes()
    for _ in range(COUNT):
        path.write_text(change_text(data.decode(), rng), encoding="utf-8")
        refuses(lambda: Journal(path, {"versions": {"numpy": "2"}}).close())
        path.write_bytes(change_bytes(data, rng))
        refuses(lambda: Journal(path, {"versions": {"numpy": "2"}}).close())


def test_reports_with_other_content_are_replaced(tmp_path, rng):
    report = PairReport.of(("a", "b"), 9, 5, 2)
    for suffix in (".csv", ".parquet"):
        path = tmp_path / f"report{suffix}"
        write_pair_reports(path, [PairReport.of(("a", "b"), 9, 5, 2, 0.5, 3.0)])
        data = path.read_bytes()
        for _ in range(COUNT):
            path.write_bytes(change_bytes(data, rng))
            write_pair_reports(path, [report])
    path = tmp_path / "report.csv"
    for figure in ("much", "1e999", "x" * 200_000, "\0"):
        path.write_bytes(data := (tmp_path / "report.csv").read_bytes())
        lines = data.decode().splitlines()
        path.write_text("\n".join([lines[0], lines[1].replace(",calibrated,,", f",calibrated,{figure},")]) + "\n")
        write_pair_reports(path, [report])


def test_invalid_settings(rng):
    text = describe_settings(VerificationOptions())
    for _ in range(COUNT):
        describe_kept({change_text(text, rng): 1, "[" * 100_000: 2}, text)


@pytest.mark.parametrize("name", ["model", "params", "width", "height", "focal_deviation"])
def test_cameras_of_odd_values(name):
    good = {"model": "OPENCV", "params": (500, 500, 320, 240, 0.1, 0, 0, 0), "width": 640, "height": 480}
    odd = [*ODD_VALUES, *ODD_NUMBERS, (), [[]], {}, {1: 2}, np.zeros((2, 2)), np.array(1 + 1j), (True,) * 8, "1" * 8]
    lists = [(value, *good["params"][1:]) for value in (*ODD_VALUES, *ODD_NUMBERS, np.complex64(1))]
    for value in odd + (lists if name == "params" else []):
        refuses(as_camera, good | {name: value}, "camera1")
        refuses(lambda value=value: Camera(**(good | {name: value})))
        described = SimpleNamespace(**{**good, name: value})
        described.model_name = lambda described=described: described.model
        refuses(as_camera, described, "camera1")
    for value in odd:
        refuses(as_camera, value, "camera1")


def test_cameras_of_vast_distortion(rng):
    points = rng.uniform(0, 640, (20, 2))
    for model, count in (("OPENCV", 4), ("FULL_OPENCV", 8), ("THIN_PRISM_FISHEYE", 8), ("OPENCV_FISHEYE", 4)):
        for _ in range(COUNT):
            params = rng.choice([-1, 1, 0], count) * 10.0 ** rng.uniform(-320, 9, count)
            camera = Camera(model, (500, 500, 320, 240, *params))
            assert camera.undistort_pixels(points).shape == points.shape


def test_options_of_odd_values():
    good = Options()
    for name in good.__slots__:
        for value in (*ODD_VALUES, *ODD_NUMBERS):
            refuses(lambda name=name, value=value: Options(**{name: value}))
    options = Options(
        samples_per_round=np.int16(300), top_models=np.int16(300), rounds=np.uint8(200), seed=np.uint64(3)
    )
    assert options.samples_per_round * options.top_models * options.rounds == 18_000_000
    assert {type(getattr(options, name)) for name in options.__slots__} <= {int, float, bool, str, type(None), Tuning}


def test_the_command_line_refuses_in_one_line(valid, tmp_path, rng, capsys):
    for name in ("matches.npz", "packed.h5", "matches.txt"):
        for _ in range(5):
            (tmp_path / name).write_bytes(change_bytes((valid / name).read_bytes(), rng)[:-3])
            code = main(["pose", "--matches", str(tmp_path / name), "--json"])
            error = capsys.readouterr().err
            assert code in (0, 1, 2) and error.count("\n") <= 1 and "Traceback" not in error


def test_settings_are_described_as_json():
    assert json.loads(describe_settings(VerificationOptions()))["min_inliers"] == 15
