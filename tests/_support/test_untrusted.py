"""Untrusted files: bombs are refused before they use memory, and the limit can be changed."""

import io
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from bombs import h5_bomb, little_memory, npz_bomb, png_bomb

from caransac._support.untrusted import (
    DEFAULT_LIMIT,
    LIMIT_VARIABLE,
    check_size,
    memory_limit,
    open_npz,
    parse_json,
    read_bytes,
    read_stream,
    read_text,
)
from caransac.cli import main
from caransac.io.images import focal_from_exif, read_image, write_image
from caransac.io.matches import read_matches
from caransac.learned.weights_file import read_weights


@pytest.mark.parametrize(
    ("make", "read", "name", "most"),
    [
        (h5_bomb, read_matches, "bomb.h5", 3_000),
        (npz_bomb, read_matches, "bomb.npz", 9_000_000),
        (npz_bomb, read_weights, "bomb.npz", 9_000_000),
        (png_bomb, read_image, "bomb.png", 1_100_000),
    ],
)
def test_bombs_are_refused_before_they_take_memory(tmp_path, make, read, name, most):
    path = tmp_path / name
    make(path)
    assert path.stat().st_size < most
    with (
        little_memory(),
        pytest.raises(ValueError, match=rf"{name}.* would take [\d.]+ GB of memory.*{LIMIT_VARIABLE}"),
    ):
        read(path)


def test_bombs_on_the_command_line_are_one_line(tmp_path, capsys):
    for make, name in ((npz_bomb, "bomb.npz"), (h5_bomb, "bomb.h5")):
        make(tmp_path / name)
        assert main(["pose", "--matches", str(tmp_path / name)]) == 2
    png_bomb(tmp_path / "bomb.png")
    assert main(["pose", str(tmp_path / "bomb.png"), str(tmp_path / "bomb.png")]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3 and all(line.startswith("caransac: ") and "GB of memory" in line for line in lines)


def test_focal_lengths_of_vast_images_are_unknown(tmp_path):
    png_bomb(tmp_path / "bomb.png")
    with little_memory():
        assert focal_from_exif(tmp_path / "bomb.png") is None


def test_the_limit_can_be_moved(tmp_path, monkeypatch):
    path = tmp_path / "zeros.npz"
    np.savez_compressed(path, points1=np.zeros((30_000, 2)), points2=np.zeros((30_000, 2)))
    assert len(read_matches(path).points1) == 30_000
    monkeypatch.setenv(LIMIT_VARIABLE, "900000")
    with pytest.raises(ValueError, match=rf"zeros.npz would take 0.00 GB .* {LIMIT_VARIABLE} to \d+$") as caught:
        read_matches(path)
    monkeypatch.setenv(LIMIT_VARIABLE, str(caught.value).split()[-1])
    assert len(read_matches(path).points1) == 30_000, "the limit in the message is large enough"


@pytest.mark.parametrize("text", ["lots", "-1", "0", "1e9", "9" * 30, "٣"])
def test_invalid_limits_are_named(monkeypatch, text):
    monkeypatch.setenv(LIMIT_VARIABLE, text)
    with pytest.raises(ValueError, match=f"{LIMIT_VARIABLE} must be a number of bytes"):
        memory_limit()


def test_sizes_are_limited_relative_to_the_stored_bytes():
    check_size(DEFAULT_LIMIT, DEFAULT_LIMIT // 100, "array")
    check_size(DEFAULT_LIMIT // 8, 0, "array")
    for wanted, stored in ((DEFAULT_LIMIT + 1, DEFAULT_LIMIT), (DEFAULT_LIMIT // 8 + 1, 1000)):
        with pytest.raises(ValueError, match="array would take"):
            check_size(wanted, stored, "array")


def test_texts_and_streams_have_a_limit(tmp_path, monkeypatch):
    path = tmp_path / "list.txt"
    path.write_text("x" * 2000)
    monkeypatch.setenv(LIMIT_VARIABLE, "1000")
    for read in (read_text, read_bytes):
        with pytest.raises(ValueError, match=r"list\.txt would take"):
            read(path)

    class Endless(io.RawIOBase):
        def read(self, size=-1):
            return bytes(size)

    monkeypatch.setenv(LIMIT_VARIABLE, str(2**22))
    with little_memory(), pytest.raises(ValueError, match="standard input would take"):
        read_stream(Endless(), "standard input")


def test_all_line_endings_are_read(tmp_path):
    path = tmp_path / "list.txt"
    path.write_bytes(b"a\r\nb\rc\n")
    assert read_text(path) == "a\nb\nc\n" == path.read_text()


def write_entry(path, content, **how):
    with zipfile.ZipFile(path, "w", **how) as archive:
        archive.writestr("points1.npy", content)


def npy(header):
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"text",
        b"\x93NUMPY\x03\x00\x01\x00\x00\x00 ",
        npy(b"-" * 9000 + b"1"),
        npy(b"(" * 9000),
        npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}"),
        npy(b"{'descr': '<f8', 'fortran_order': False, 'shape': (-5,)}"),
        npy(b"{'descr': '|V0', 'fortran_order': False, 'shape': (1000000000000,)}"),
        npy(b"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}") + b"cos\nsystem\n(S'true'\ntR.",
    ],
)
def test_wrong_headers_are_refused(tmp_path, content):
    path = tmp_path / "lies.npz"
    write_entry(path, content)
    with little_memory(), pytest.raises(ValueError, match=r"lies.npz|Object arrays"), open_npz(path) as arrays:
        arrays["points1"]


def test_archives_of_other_kinds_are_refused(tmp_path):
    path = tmp_path / "other.npz"
    for kind in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        write_entry(path, b"content", compression=kind)
        with pytest.raises(ValueError, match=r"points1.npy is encrypted, or compressed"), open_npz(path):
            pass
    np.savez(path, points1=np.zeros(3))
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\1\2") + 8] |= 1  # the flag of an encrypted entry
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"points1.npy is encrypted"), open_npz(path):
        pass


def test_deeply_nested_json_is_refused():
    assert parse_json('{"a": [1]}') == {"a": [1]}
    with pytest.raises(ValueError, match="too many nested brackets"):
        parse_json("[" * 100_000)


@pytest.mark.slow
def test_too_little_memory_is_a_message():
    program = (
        "import resource, sys, caransac.io.matches; from caransac.cli import main\n"
        "import caransac.cli.pose\n"
        "def read(*_): raise MemoryError\n"
        "caransac.cli.inputs.read_matches = read\n"
        "sys.exit(main(['pose', '--matches', 'm.npz']))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "caransac: not enough memory: use smaller inputs, or fewer --workers\n"


def test_a_part_of_an_image_is_not_longer_than_its_file(tmp_path):
    """Found by fuzzing: a file of 180 bytes claimed parts of gigabytes, and OpenCV allocated them."""
    path = tmp_path / "image.png"
    write_image(path, np.zeros((6, 8, 3), np.uint8))
    data = path.read_bytes()
    at = data.index(b"IDAT") - 4
    path.write_bytes(data[:at] + (2**31 - 1).to_bytes(4, "big") + data[at + 4 :])
    with pytest.raises(ValueError, match="truncated"):
        read_image(path)
