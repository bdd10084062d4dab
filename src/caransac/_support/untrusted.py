"""Read untrusted files: compare what they declare with their size and a limit before allocating memory.

A file of a few kilobytes can declare many gigabytes: zeros compress a thousandfold, and HDF5 need not store an array at
all. Every reader of text, images, npz and h5 files calls `check_size` first; `untrusted_h5` reads HDF5. Text from such
files goes through `escape_controls` before it is shown or written.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any
from zlib import error as ZlibError  # noqa: N812  # zlib writes it in lower case

import numpy as np
from numpy.typing import NDArray

LIMIT_VARIABLE = "CARANSAC_MAX_FILE_BYTES"  # the environment variable that sets the limit
DEFAULT_LIMIT = 2**30  # bytes of memory for one array, image, text or archive
FREE_SHARE = 8  # files of any size may use 1/8 of the limit
MOST_EXPANSION = 200  # maximum memory divided by file size beyond that; blank JPEG photographs come close
WIDEST_NUMBER = 8  # bytes; all numbers are converted to double precision sooner or later
PIECE = 2**20
MOST_PIXELS = 2**30  # OpenCV's own limit
IMAGE_STARTS = {b"\xff\xd8\xff": "JPEG", b"\x89PNG": "PNG", b"II*\0": "TIFF", b"MM\0*": "TIFF"}
LAST_CHARACTER = 0x10FFFF  # highest code point of Unicode
# Control characters, characters that change the text direction, and surrogates, which are not text.
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def escape_controls(text: str) -> str:
    """Escape control characters, so that the text can neither control a terminal nor forge a line."""
    return CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def memory_limit() -> int:
    """Return the bytes of memory that one array, image, text or archive may take; see `LIMIT_VARIABLE`."""
    text = os.environ.get(LIMIT_VARIABLE, "")
    if not text:
        return DEFAULT_LIMIT
    if not (text.isascii() and text.isdigit() and 0 < len(text) <= 18 and int(text)):
        raise ValueError(f"{LIMIT_VARIABLE} must be a number of bytes, not {text!r}")
    return int(text)


def check_size(wanted: int, stored: int, what: str) -> None:
    """Raise a ValueError if an object takes more memory than its size in the file justifies.

    Args:
        wanted: bytes of memory.
        stored: bytes in the file.
        what: description of the object, for the message.
    """
    limit = memory_limit()
    free = max(limit // FREE_SHARE, MOST_EXPANSION * stored)
    if wanted <= min(limit, free):
        return
    needed = wanted if wanted <= free else FREE_SHARE * wanted
    raise ValueError(
        f"{what} would take {wanted / 1e9:.2f} GB of memory for {stored} bytes in the file, which is more than a file "
        f"is allowed to; if you trust it, set the environment variable {LIMIT_VARIABLE} to {needed}"
    )


def read_bytes(path: Path) -> bytes:
    """Read a file. Raise a ValueError that names it if it is too large."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        check_size(size, size, str(path))
        return read_stream(file, str(path))


def read_stream(file: IO[bytes], name: str) -> bytes:
    """Read an open file to its end. Raise a ValueError with its name if it is too large, or endless."""
    pieces, size = list[bytes](), 0
    while piece := file.read(PIECE):
        pieces.append(piece)
        size += len(piece)
        check_size(size, size, name)
    return b"".join(pieces)


def read_text(path: Path) -> str:
    """Read a UTF-8 text without its byte order mark. Raise a ValueError that names the file if it is not UTF-8."""
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not a text file in UTF-8: {error}") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def parse_json(text: str | bytes) -> Any:
    """Parse a JSON text. Raise a ValueError if it is not valid."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("too many nested brackets") from error


def check_image(data: bytes, path: Path) -> None:
    """Raise a ValueError if an image file would take too much memory as 8-bit RGB.

    Args:
        data: content of the file.
        path: name of the file, for the message.
    """
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("reading images needs Pillow: pip install 'caransac[images]'") from error
    pixels = 0
    with warnings.catch_warnings(), suppress(Exception):  # Pillow may raise anything for files that it cannot read
        warnings.simplefilter("ignore")
        try:
            with Image.open(io.BytesIO(data)) as image:
                pixels = math.prod(image.size)
        except Image.DecompressionBombError:  # this error does not state the number of pixels
            pixels = MOST_PIXELS
    if not pixels:
        raise ValueError(explain_unreadable(data, path))
    check_size(3 * pixels, len(data), str(path))
    _check_chunks(data, path)


def explain_unreadable(data: bytes, path: Path) -> str:
    """Return the message about an image file that cannot be read, from the first bytes of its content."""
    kind = next((kind for start, kind in IMAGE_STARTS.items() if data.startswith(start)), None)
    if kind is None:
        return f"{path} is not an image, or its format cannot be read; JPEG, PNG and TIFF work"
    if kind == "TIFF":
        return f"{path} is a TIFF image that is damaged, or whose samples are not whole numbers of 8 or 16 bits"
    return f"{path} is a {kind} image that is truncated or damaged"


def _check_chunks(data: bytes, path: Path) -> None:
    """Raise a ValueError if a PNG chunk is longer than the file, because OpenCV allocates its length at once."""
    at = 8
    while data.startswith(b"\x89PNG") and at + 8 <= len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        at += 12 + length
        if at > len(data):
            raise ValueError(f"{path} is truncated: a part of {length} bytes is longer than the rest of the file")


@contextmanager
def open_npz(path: Path) -> Iterator[NpzArrays]:
    """Open an npz archive. Raise a ValueError that names the file if it is invalid or declares too much."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield NpzArrays(archive, path)
    except (zipfile.BadZipFile, ZlibError, EOFError, NotImplementedError) as error:
        raise ValueError(f"{path} is not an npz archive, or it is corrupt: {error}") from error


class NpzArrays(Mapping[str, NDArray[Any]]):
    """Arrays of an open npz archive by name, each read on access. Arrays of Python objects are rejected."""

    def __init__(self, archive: zipfile.ZipFile, path: Path) -> None:
        self._archive, self._path = archive, path
        entries = archive.infolist()
        for entry in entries:
            # numpy writes only these two; LZMA would allocate as much memory as the entry asks for
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or entry.flag_bits & 1:
                raise ValueError(f"{path}: {entry.filename} is encrypted, or compressed in another way than by numpy")
        check_size(sum(entry.file_size for entry in entries), path.stat().st_size, str(path))
        self._entries = {entry.filename.removesuffix(".npy"): entry for entry in entries}

    def __getitem__(self, name: str) -> NDArray[Any]:
        entry = self._entries[name]
        with self._archive.open(entry) as file:
            shape, dtype = self._read_header(file, name)
        numbers = math.prod(shape)
        if min(shape, default=0) < 0 or numbers * dtype.itemsize > entry.file_size:
            raise ValueError(f"{self._path}: {name} declares {shape} of {dtype}, but has {entry.file_size} bytes")
        check_size(numbers * max(dtype.itemsize, WIDEST_NUMBER), entry.compress_size, f"{self._path}: {name}")
        with self._archive.open(entry) as file:
            array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
        if array.dtype.kind == "U" and array.dtype.itemsize > 0:
            # numpy accepts any four bytes as a character, and raises SystemError when the text is used.
            codes = np.ascontiguousarray(array).view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
            if np.any(codes > LAST_CHARACTER):
                raise ValueError(f"{self._path}: {name} has characters that do not exist")
        return array

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def _read_header(self, file: IO[bytes], name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Return the shape and dtype that an array declares."""
        readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        try:
            shape, _, dtype = readers[np.lib.format.read_magic(file)](file)
        except (zipfile.BadZipFile, ZlibError, EOFError):
            raise
        except Exception as error:  # a header is a Python expression; a damaged one may raise anything
            raise ValueError(f"{self._path}: {name} is not an array of numpy: {error}") from error
        return shape, dtype
