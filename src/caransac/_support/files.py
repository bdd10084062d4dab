"""Writing files so that they are whole or not there, and reading them with errors that name the file."""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zlib import error as ZlibError  # noqa: N812  # zlib spells it small

import numpy as np
from numpy.typing import NDArray


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside `path`, with its suffix, that takes its place once the block has ended without an error.

    Folders are made as needed. Whatever was at `path` stays until then.
    """
    temporary = _beside(path)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def save_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write named arrays as an npz archive."""
    np.savez(path, **arrays)  # type: ignore[arg-type]  # a name could be "allow_pickle"; none is


def check_writable(path: Path) -> None:
    """Raise now what `replacing` would raise at the end of a long run."""
    _beside(path).unlink()


def _beside(path: Path) -> Path:
    """A new empty file beside `path`; an OSError that names the path if that cannot be."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the name of a file")
    make_folder(path.parent)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=path.suffix, dir=path.parent)
    except OSError as error:
        raise type(error)(f"{path} cannot be written ({error.strerror}): choose another place") from error
    os.close(handle)
    return Path(name)


def make_folder(path: Path) -> None:
    """Make a folder and those above it; an OSError that names it if that cannot be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = "it is a file" if path.is_file() else error.strerror
        raise type(error)(f"{path} cannot be made a folder ({why}): choose another place") from error


def read_text(path: Path) -> str:
    """The text of a file in UTF-8, without a byte order mark; a ValueError that names the file if it is none."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not a text file in UTF-8: {error}") from error


@contextmanager
def open_npz(path: Path) -> Iterator[Any]:
    """The arrays of an npz archive; a ValueError that names the file if it is none."""
    try:
        with zipfile.ZipFile(path), np.load(path) as arrays:  # np.load alone takes other files for archives
            yield arrays
    except (zipfile.BadZipFile, ZlibError, EOFError) as error:
        raise ValueError(f"{path} is not an npz archive, or it is corrupt: {error}") from error


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Turn errors about what a file holds into ValueErrors that name it."""
    try:
        yield
    except KeyError as error:  # whose text is in quotes
        raise ValueError(f"{path}: {error.args[0]}") from error
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
