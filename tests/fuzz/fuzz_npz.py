"""Matches in npz files: raw bytes, or archives with unusual arrays under the expected names."""

import io
import zipfile

import harness
import numpy as np

with harness.instrument():
    from caransac.io.matches import read_matches

NAMES = ("points1", "points2", "scores", "score_kind", "camera1_model", "camera1_params", "camera1_size")
NAMES += ("camera1_focal_deviation", "camera2_model", "camera2_params", "camera2_size")


def one_input(data: bytes) -> None:
    decisions = harness.Decisions(data)
    kind = decisions.number(3)
    if kind == 0:
        return harness.with_file(decisions.rest(), ".npz", read_matches)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as members:
        count = decisions.choose((3, 8, 9, 60))
        for name in NAMES[:2] if kind == 1 else ():
            members.writestr(f"{name}.npy", _stored(decisions.sensible_array(count, 2)))
        for name in sorted({decisions.choose(NAMES[2 * (kind == 1) :]) for _ in range(decisions.number(8))}):
            members.writestr(f"{name}.npy", _member(decisions))
    return harness.with_file(archive.getvalue(), ".npz", read_matches)


def _member(decisions: harness.Decisions) -> bytes:
    kind = decisions.number(4)
    if kind == 0:  # an arbitrary header and content
        return b"\x93NUMPY\x01\x00" + decisions.take(decisions.number(200))
    if kind == 1:
        return _stored(np.array(decisions.choose(("ratio", "confidence", "SIMPLE_PINHOLE", "OPENCV", "FISHEYE", ""))))
    return _stored(decisions.array() if kind == 2 else decisions.sensible_array(decisions.choose((2, 3, 4, 8))))


def _stored(array: np.ndarray) -> bytes:
    member = io.BytesIO()
    np.save(member, array)
    return member.getvalue()


if __name__ == "__main__":
    harness.fuzz(one_input)
