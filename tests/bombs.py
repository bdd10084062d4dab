"""Malicious files for tests: small files that declare huge content, and files that refer to other files."""

import os
import re
import struct
import sys
import zlib
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np
import pytest

MEGABYTE = 2**20
SECRET = np.arange(40.0).reshape(10, 4)  # content of secret.raw and secret.h5 in a folder


def deflated_zeros(megabytes):
    """Return zeros as a raw deflate stream that repeats one block."""
    packing = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packing.compress(bytes(MEGABYTE)) + packing.flush(zlib.Z_FULL_FLUSH)
    return block * megabytes + packing.flush()


def npz_bomb(path, gigabytes=8):
    """Write an archive with the arrays points1 and points2 of zeros and their true sizes in its directory."""
    rows = gigabytes * 2**30 // 32
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, 2), }}"
    header = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + text.ljust(117).encode() + b"\n"
    stored = struct.pack("<BHH", 0, len(header), len(header) ^ 0xFFFF) + header  # an uncompressed deflate block
    data = stored + deflated_zeros(rows * 16 // MEGABYTE)
    sizes, content, directory = (0, len(data), rows * 16 + len(header)), b"", b""
    for name in (b"points1.npy", b"points2.npy"):
        start = len(content)
        content += struct.pack("<4s5H3I2H", b"PK\3\4", 45, 0, 8, 0, 0x21, *_small(sizes), len(name), 0) + name + data
        wide = struct.pack("<HHQ", 1, 8, sizes[2])  # sizes of more than 32 bits go here
        directory += struct.pack(
            "<4s6H3I5H2I", b"PK\1\2", 45, 45, 0, 8, 0, 0x21, *_small(sizes), len(name), len(wide), 0, 0, 0, 0, start
        )
        directory += name + wide
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 2, 2, len(directory), len(content), 0)
    path.write_bytes(content + directory + end)


def _small(sizes):
    return sizes[0], sizes[1], 0xFFFFFFFF


def png_bomb(path, side=32767):
    """Write a grey image of zeros with a gigapixel."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    data = b"\x78\xda" + deflated_zeros((side + 1) * side // MEGABYTE + 1)
    header = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b""))


def h5_bomb(path):
    """Write arrays x1 and x2 of 9.6 GB without any data."""
    with h5py.File(path, "w") as file:
        for name in ("x1", "x2"):
            file.create_dataset(name, (600_000_000, 2), np.float64)


@contextmanager
def little_memory(megabytes=64):
    """Assert that the block increases the peak memory only a little."""
    if not sys.platform.startswith("linux"):
        yield
        return
    try:
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    except OSError:
        pytest.skip("the peak of the memory cannot be reset on this system")
    before = _peak()
    yield
    assert _peak() - before < megabytes


def _peak():
    """Return the peak memory in megabytes since the last reset."""
    text = Path(f"/proc/{os.getpid()}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", text)[1]) / 1024


def write_secrets(folder):
    SECRET.tofile(folder / "secret.raw")
    with h5py.File(folder / "secret.h5", "w") as file:
        file["pair"] = SECRET


def external_storage(file, folder):
    file.create_dataset("pair", SECRET.shape, float, external=[(str(folder / "secret.raw"), 0, h5py.h5f.UNLIMITED)])


def external_link(file, folder):
    file["pair"] = h5py.ExternalLink(str(folder / "secret.h5"), "/pair")


def virtual_dataset(file, folder):
    layout = h5py.VirtualLayout(SECRET.shape, float)
    layout[:] = h5py.VirtualSource(str(folder / "secret.h5"), "pair", SECRET.shape)
    file.create_virtual_dataset("pair", layout)


def soft_link_to_a_link(file, folder):
    file["elsewhere"] = h5py.ExternalLink(str(folder / "secret.h5"), "/")
    file["pair"] = h5py.SoftLink("/elsewhere/pair")


def soft_link_to_storage(file, folder):
    place = file.create_group("place")
    external_storage(place, folder)
    file["pair"] = h5py.SoftLink("place/pair")


ELSEWHERE = [external_storage, external_link, virtual_dataset, soft_link_to_a_link, soft_link_to_storage]
