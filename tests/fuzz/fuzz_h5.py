"""HDF5 files with unusual datasets: matches of one pair, and hloc's features and matches, which are verified."""

from pathlib import Path

import h5py
import harness
import numpy as np

with harness.instrument():
    from caransac.io.matches import read_matches
    from caransac.verification.hloc import HlocFiles
    from caransac.verification.pair_records import BadPairError

# Errors of h5py that refuse to write a value.
REFUSED = TypeError, ValueError, OSError, KeyError, RuntimeError, SystemError
PAIR_NAMES = ("x1", "x2", "scores", "matches", "a/x1", "a/x2", "a/scores", "a/b", "b")
HLOC_NAMES = ("a.jpg/keypoints", "b.jpg/keypoints", "a.jpg/image_size", "a.jpg/b.jpg/matches0")
HLOC_NAMES += ("a.jpg/b.jpg/matching_scores0", "a.jpg_b.jpg/matches0", "a.jpg", "b.jpg")


def one_input(data: bytes) -> None:
    decisions = harness.Decisions(data)
    with harness.folder() as place:
        decisions.choose((_one_pair, _hloc))(decisions, place)


def _one_pair(decisions: harness.Decisions, place: Path) -> None:
    path = place / "pair.h5"
    _fill(path, decisions, PAIR_NAMES)
    harness.refusing(lambda: read_matches(path, decisions.choose((None, "a", "b", "a/b", "none"))))


def _hloc(decisions: harness.Decisions, place: Path) -> None:
    features, matches, pairs = place / "features.h5", place / "matches.h5", place / "pairs.txt"
    for path in (features, matches):
        _fill(path, decisions, HLOC_NAMES)
    pairs.write_text("a.jpg b.jpg\n")
    harness.refusing(lambda: _read_all(HlocFiles(features, matches, pairs, place / "out.h5", strict=False)))


def _read_all(files: HlocFiles) -> None:
    try:
        for key in files.pending:
            try:
                files.read(key)
            except BadPairError:
                continue
    finally:
        files.close()


def _fill(path: Path, decisions: harness.Decisions, names: tuple[str, ...]) -> None:
    with h5py.File(path, "w") as file:
        for name in sorted({decisions.choose(names) for _ in range(decisions.number(7))}):
            try:
                _put(file, name, decisions)
            except REFUSED:
                continue


def _put(file: h5py.File, name: str, decisions: harness.Decisions) -> None:
    kind = decisions.number(7)
    if kind == 0:
        file[name] = _writable(decisions.array())
    elif kind == 1:
        file[name] = decisions.sensible_array(decisions.choose((4, 9, 60)), decisions.choose((2, 4, 5)))
    elif kind == 2:
        file[name] = np.frombuffer(decisions.take(9), np.int8).astype(np.int16)
    elif kind == 3:
        file.create_group(name)
    elif kind == 4:
        file[name] = h5py.SoftLink(decisions.choose(("/", "/none", "/a", "/x1", name)))
    elif kind == 5:
        file.create_dataset(name, shape=(decisions.choose((4, 9)), 2), dtype=h5py.special_dtype(vlen=np.float64))
    else:
        file[name] = decisions.text()


def _writable(array: np.ndarray) -> np.ndarray:
    return array.astype("S8") if array.dtype.kind == "U" else array


if __name__ == "__main__":
    harness.fuzz(one_input)
