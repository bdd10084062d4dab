"""Valid inputs for the fuzzers to start from: `python tests/fuzz/seeds.py CORPUS` writes a folder for every harness."""

import io
import sqlite3
import sys
import tempfile
from pathlib import Path

import fuzz_database
import numpy as np
from PIL import Image

from caransac import Camera
from caransac.io.matches import Matches, write_matches

LINES = "10 20 30 40 0.5\n# a comment\n1.5 2.5 3.5 4.5 0.25\n"
CAMERAS = "a.jpg SIMPLE_PINHOLE 640 480 800 320 240\nb.jpg OPENCV 640 480 800 800 320 240 0.1 0 0 0\n"
LISTED = "a.jpg b.jpg 0 0 800 0 320 0 800 240 0 0 1 800 0 320 0 800 240 0 0 1 1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1\n"
TEXTS = ("800,320,240", "800,800,320,240±5%", "OPENCV:640x480:500,500,320,240,0.1,0,0,0", "SIMPLE_RADIAL::8,3,2,0")


def main(corpus: Path) -> None:
    """Write all seeds."""
    rng = np.random.default_rng(0)
    for name in ("camera", "database", "h5", "image", "kernels", "npz", "options", "text", "weights"):
        (corpus / name).mkdir(parents=True, exist_ok=True)
        for number, length in enumerate((60, 300, 900)):
            (corpus / name / f"random{number}").write_bytes(rng.bytes(length))
    for number, text in enumerate((LINES, CAMERAS, "a.jpg b.jpg\n", LISTED)):
        (corpus / "text" / f"lines{number}").write_bytes(bytes([number]) + text.encode())
    for number, text in enumerate(TEXTS):
        (corpus / "camera" / f"text{number}").write_bytes(b"\0" + text.encode())
    (corpus / "npz" / "matches").write_bytes(b"\0" + _matches())
    for number, kind in enumerate(("JPEG", "PNG", "TIFF")):
        (corpus / "image" / kind).write_bytes(bytes([number]) + _image(kind))
    (corpus / "database" / "empty").write_bytes(b"\0" + _database())


def _matches() -> bytes:
    camera = Camera("SIMPLE_PINHOLE", (800.0, 320.0, 240.0), 640, 480)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "matches.npz"
        write_matches(path, Matches(np.ones((9, 2)), np.ones((9, 2)), np.ones(9), "ratio", camera, camera))
        return path.read_bytes()


def _image(kind: str) -> bytes:
    written, exif = io.BytesIO(), Image.Exif()
    exif[0x010F] = "maker"
    exif.get_ifd(0x8769).update({0x920A: 35.0, 0xA405: 50, 0xA002: 8})
    Image.new("RGB", (8, 6), (9, 99, 199)).save(written, kind, exif=exif)
    return written.getvalue()


def _database() -> bytes:
    connection = sqlite3.connect(":memory:")
    connection.execute("PRAGMA page_size = 512")
    connection.executescript(fuzz_database.SCHEMA)
    return connection.serialize()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
