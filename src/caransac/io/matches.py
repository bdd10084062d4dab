"""Read and write correspondences as npz, text and h5 files; docs/formats.md describes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, cast, get_args, overload

import numpy as np
from numpy.typing import NDArray

from caransac._support.arrays import as_matches, as_reals, as_size, shorten
from caransac._support.files import as_path, delivering, naming, replacing, replacing_h5, save_arrays
from caransac._support.untrusted import open_npz, read_text
from caransac._support.untrusted_h5 import UntrustedGroup, read_h5
from caransac.camera import DEVIATIONS, Camera
from caransac.geometry import Array
from caransac.given_cameras import as_camera
from caransac.options import ScoreKind, check_score_kind

SUFFIXES = (".npz", ".txt", ".h5")
FILE_STARTS = {b"PK": ".npz", b"\x89HDF": ".h5"}


@dataclass(frozen=True, eq=False)
class Matches:
    """Correspondences of two images, with their cameras if known.

    Attributes:
        points1: (N, 2) pixels in image 1.
        points2: (N, 2) pixels in image 2. Row i matches row i of `points1`.
        scores: (N,) one number per match, or None.
        score_kind: kind of the scores.
        camera1: camera of image 1, as for `estimate_relative_pose`, or None if it is unknown.
        camera2: camera of image 2, or None if it is unknown.
        image_size1: (width, height) in pixels of image 1 if its camera is unknown, or None. A camera has its own size.
        image_size2: (width, height) in pixels of image 2 if its camera is unknown, or None.
        images: both photographs, arrays or paths, in which the estimators refine the matches; None to estimate from
            the points alone. Files of matches do not contain them.
    """

    points1: Array
    points2: Array
    scores: Array | None = None
    score_kind: ScoreKind = "ratio"
    camera1: Camera | None = None
    camera2: Camera | None = None
    image_size1: tuple[int, int] | None = field(default=None, kw_only=True)
    image_size2: tuple[int, int] | None = field(default=None, kw_only=True)
    images: tuple[Any, Any] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        checked = as_matches(self.points1, self.points2, self.scores)
        for name, values in zip(("points1", "points2", "scores"), checked, strict=True):
            object.__setattr__(self, name, values)
        check_score_kind(self.scores, self.score_kind)
        for name in ("camera1", "camera2"):
            if (camera := getattr(self, name)) is not None:
                object.__setattr__(self, name, as_camera(camera, name))
        for name in ("image_size1", "image_size2"):
            if (size := getattr(self, name)) is not None:
                object.__setattr__(self, name, as_size(size, name))

    def __repr__(self) -> str:
        scores = f"{self.score_kind} scores" if self.scores is not None else "no scores"
        views = ""
        for name, camera, size in _views(self):
            views += f", {name} {'unknown' if camera is None else camera.model}"
            views += f" {size[0]}x{size[1]}" if camera is None and size is not None else ""
        return f"Matches({len(self.points1)}, {scores}{views})"

    def arguments(self) -> dict[str, Any]:
        """Return all known fields as arguments of the estimators: ``caransac.estimate(**matches.arguments())``.

        Unknown fields are omitted. Without cameras, `estimate_homography` therefore accepts the arguments, too.
        """
        names = ("points1", "points2", "camera1", "camera2", "image_size1", "image_size2", "scores", "images")
        known = {name: value for name in names if (value := getattr(self, name)) is not None}
        return known | ({"score_kind": self.score_kind} if self.scores is not None else {})

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Matches:
        """Create matches from the named arrays of `to_arrays`, the content of an npz file."""
        if not isinstance(arrays, Mapping):
            raise ValueError(f"arrays must be a mapping from names to arrays, not a {type(arrays).__name__}")
        missing = [name for name in ("points1", "points2") if name not in arrays]
        if missing:
            raise ValueError(f"no array {missing[0]}; expected points1, points2 (N, 2) and optionally scores (N,)")
        return cls(
            arrays["points1"],
            arrays["points2"],
            arrays.get("scores"),
            cast(ScoreKind, str(arrays["score_kind"])) if "score_kind" in arrays else "ratio",
            *(_camera_from_arrays(arrays, name) for name in ("camera1", "camera2")),
            image_size1=_unknown_size(arrays, "camera1"),
            image_size2=_unknown_size(arrays, "camera2"),
        )

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return all known fields as named arrays."""
        arrays: dict[str, NDArray[Any]] = {"points1": self.points1, "points2": self.points2}
        if self.scores is not None:
            arrays |= {"scores": self.scores, "score_kind": np.array(self.score_kind)}
        for name, camera, size in _views(self):
            if camera is not None:
                arrays |= {f"{name}_model": np.array(camera.model), f"{name}_params": np.array(camera.params)}
                arrays[f"{name}_size"] = np.array([camera.width, camera.height])
                for deviation in DEVIATIONS:
                    if number := getattr(camera, deviation):
                        arrays[f"{name}_{deviation}"] = np.array(number)
            elif size is not None:
                arrays[f"{name}_size"] = np.array(size)
        return arrays


def _views(matches: Matches) -> tuple[tuple[str, Camera | None, tuple[int, int] | None], ...]:
    """Return for each view its name in files, its camera, and the image size if the camera is unknown."""
    return ("camera1", matches.camera1, matches.image_size1), ("camera2", matches.camera2, matches.image_size2)


def _camera_from_arrays(arrays: Mapping[str, NDArray[Any]], name: str) -> Camera | None:
    if f"{name}_model" not in arrays:
        return None
    return Camera(
        str(arrays[f"{name}_model"]),
        tuple(arrays[f"{name}_params"]),
        *_stored_size(arrays, name),
        *(float(arrays.get(f"{name}_{deviation}", 0.0)) for deviation in DEVIATIONS),
    )


def _unknown_size(arrays: Mapping[str, NDArray[Any]], name: str) -> tuple[Any, Any] | None:
    """Return the size of an image whose camera is unknown; None if the camera is known or the size is unknown."""
    size = _stored_size(arrays, name)
    return size if f"{name}_model" not in arrays and min(size) != 0 else None


def _stored_size(arrays: Mapping[str, NDArray[Any]], name: str) -> tuple[Any, Any]:
    """Return the stored (width, height), 0 if unknown. The caller checks the values."""
    size = as_reals(arrays.get(f"{name}_size", (0, 0)), f"{name}_size").ravel()
    if len(size) != 2:
        raise ValueError(f"{name}_size must be (width, height), got {len(size)} numbers")
    return float(size[0]), float(size[1])


def read_matches(path: str | Path, key: str | None = None) -> Matches:
    """Read correspondences from a file. The suffix selects the format.

    Args:
        path: an npz archive from `write_matches`; a text with lines ``x1 y1 x2 y2 [score]``; or an h5 file. The h5 file
            has x1 and x2 (N, 2) and optionally scores (N,), at its root or in the group `key`. Alternatively, `key` is
            one array (N, 4) of x1 y1 x2 y2, or (N, 5) with the score.
        key: name of the pair in an h5 file; not needed if there is only one.

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: the file does not contain matches. The message names the place and the error.
    """
    path = as_path(path)
    if key is not None and not isinstance(key, str):
        raise ValueError(f"key must be the name of a pair in an h5 file, not {shorten(key)}")
    if path.suffix not in SUFFIXES:
        raise ValueError(f"{path}: a file of matches must end in {', '.join(SUFFIXES)}")
    if not path.is_file():
        raise FileNotFoundError(f"no such file of matches: {path}")
    if key is not None and path.suffix != ".h5":
        raise ValueError(f"{path} has one pair and no keys; a key such as {key!r} is only for h5 files")
    if path.suffix == ".npz":
        with open_npz(path) as arrays, naming(path):
            return Matches.from_arrays(arrays)
    if path.suffix == ".txt":
        text = read_text(path)
        with naming(path):
            return _parse_text(text)
    with read_h5(path) as file, naming(path):
        return _find_in_h5(file, key)


def parse_matches(data: bytes, key: str | None = None) -> Matches:
    """Parse correspondences from bytes, e.g. from standard input. The content determines the format.

    Args:
        data: the content of a file that `read_matches` reads.
        key: name of the pair in an h5 file.
    """
    if not isinstance(data, bytes):
        raise ValueError(f"data must be bytes, the content of a file of matches, not a {type(data).__name__}")
    suffix = next((suffix for start, suffix in FILE_STARTS.items() if data.startswith(start)), ".txt")
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"matches{suffix}"
        path.write_bytes(data)
        try:
            return read_matches(path, key)
        except (OSError, ValueError) as error:
            raise ValueError(str(error).replace(str(path), "standard input")) from error


@overload
def write_matches(path: str | Path, matches: Matches) -> Path: ...
@overload
def write_matches(path: IO[bytes], matches: Matches) -> IO[bytes]: ...
def write_matches(path: str | Path | IO[bytes], matches: Matches) -> Path | IO[bytes]:
    """Write correspondences for `read_matches`. The suffix selects the format; text files contain no cameras.

    A file that is open for writing receives an npz archive.

    Returns:
        The path, or the file.
    """
    if not isinstance(matches, Matches):
        raise ValueError(f"matches must be a caransac.Matches, not a {type(matches).__name__}")
    if not isinstance(path, str | Path):
        with delivering(path, ".npz") as temporary:
            save_arrays(temporary, matches.to_arrays())
        return path
    path = as_path(path)
    if path.suffix not in SUFFIXES:
        raise ValueError(f"{path}: the name must end in one of {', '.join(SUFFIXES)}")
    if path.suffix not in (".npz", ".txt"):
        with replacing_h5(path) as file:
            _fill_h5(file, matches)
        return path
    with replacing(path) as temporary:
        if path.suffix == ".npz":
            save_arrays(temporary, matches.to_arrays())
        else:
            _write_text(temporary, matches)
    return path


def _parse_text(text: str) -> Matches:
    """Parse lines of four or five numbers, separated by blanks or commas; ``#`` starts a comment.

    A comment that ends in "ratio" or "confidence" sets the kind of the scores.
    """
    rows: list[list[float]] = []
    kind: ScoreKind = "ratio"
    for number, line in enumerate(text.splitlines(), 1):
        words, _, comment = line.partition("#")
        named = comment.split()[-1:]
        if not words.strip() and named and named[0] in get_args(ScoreKind):
            kind = cast(ScoreKind, named[0])
        if not words.strip():
            continue
        try:
            row = [float(word) for word in words.replace(",", " ").split()]
        except ValueError as error:
            raise ValueError(f"line {number}: {error}; expected x1 y1 x2 y2 [score]") from error
        if len(row) not in (4, 5) or (rows and len(row) != len(rows[0])):
            first = f" like the lines before, {len(rows[0])}" if rows else ""
            raise ValueError(f"line {number} has {len(row)} numbers; expected x1 y1 x2 y2 [score]{first}")
        if not np.all(np.isfinite(row)):
            raise ValueError(f"line {number} has a number that is not finite")
        rows.append(row)
    return _from_columns(np.array(rows).reshape(len(rows), -1 if rows else 4), kind)


def _from_columns(table: Array, kind: ScoreKind = "ratio") -> Matches:
    """Create matches from a table (N, 4) of x1 y1 x2 y2, or (N, 5) with the score."""
    if table.ndim != 2 or table.shape[1] not in (4, 5):
        raise ValueError(f"expected an array (N, 4) of x1 y1 x2 y2, or (N, 5) with the score, got {table.shape}")
    return Matches(table[:, :2], table[:, 2:4], table[:, 4] if table.shape[1] == 5 else None, kind)


def _write_text(path: Path, matches: Matches) -> None:
    table = np.c_[matches.points1, matches.points2]
    header = "x1 y1 x2 y2"
    if matches.scores is not None:
        table, header = np.c_[table, matches.scores], f"{header} {matches.score_kind}"
    np.savetxt(path, table, fmt="%.9g", header=header)


def _find_in_h5(file: UntrustedGroup, key: str | None) -> Matches:
    names = list(file)
    if key is None and "x1" not in file:
        if not names:
            raise ValueError("it is empty; expected x1, x2 (N, 2), optionally scores (N,)")
        if len(names) > 1:
            listed = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
            raise ValueError(f"it has {len(names)} pairs; choose one by its key: {listed}")
        key = names[0]
    if key is not None and key not in file:
        raise ValueError(f"it has no key {key!r}")
    own = {} if key is None else file.attributes(key)
    kind = cast(ScoreKind, str(own.get("score_kind", file.attrs.get("score_kind", "ratio"))))
    if key is not None and file.is_array(key):
        return _from_columns(file.array(key), kind)
    found = file if key is None else file.group(key)
    missing = [name for name in ("x1", "x2") if name not in found]
    if missing:
        raise ValueError(f"{key or 'its root'} has no {missing[0]}; expected x1, x2 (N, 2), optionally scores (N,)")
    known = [found.group(name) if name in found else None for name in ("camera1", "camera2")]
    size1, size2 = (None if group is None or "model" in group else _size_from_h5(group) for group in known)
    return Matches(
        found.array("x1"),
        found.array("x2"),
        found.array("scores") if "scores" in found else None,
        kind,
        *(None if group is None or "model" not in group else camera_from_h5(group) for group in known),
        image_size1=size1,
        image_size2=size2,
    )


def camera_from_h5(group: UntrustedGroup) -> Camera:
    """Read a camera from an h5 group: model, width, height, params, and optionally deviations.

    All entries except params are single values or arrays of length one, as in posebench.
    """
    texts = group.array("model").ravel()
    if len(texts) != 1:
        raise ValueError(f"model must be one text, got {len(texts)}")
    text: Any = texts[0]
    model = text.decode() if isinstance(text, bytes) else str(text)
    deviations = (_number(group, name) if name in group else 0.0 for name in DEVIATIONS)
    return Camera(model, tuple(group.array("params").ravel()), *_size_from_h5(group), *deviations)


def _size_from_h5(group: UntrustedGroup) -> tuple[Any, Any]:
    """Return the stored (width, height). The caller checks the values."""
    return _number(group, "width"), _number(group, "height")


def _number(group: UntrustedGroup, name: str) -> float:
    number = as_reals(group.array(name), name)
    if number.size != 1:
        raise ValueError(f"{name} must be a number, got shape {number.shape}")
    return float(number.ravel()[0])


def _fill_h5(file: Any, matches: Matches) -> None:
    """Write matches to an open h5 file."""
    file["x1"], file["x2"] = matches.points1, matches.points2
    if matches.scores is not None:
        file["scores"] = matches.scores
        file.attrs["score_kind"] = matches.score_kind
    for name, camera, size in _views(matches):
        if camera is not None:
            group = file.create_group(name)
            group["model"], group["params"] = camera.model, camera.params
            group["width"], group["height"] = camera.width, camera.height
            for deviation in DEVIATIONS:
                if number := getattr(camera, deviation):
                    group[deviation] = number
        elif size is not None:
            group = file.create_group(name)
            group["width"], group["height"] = size
