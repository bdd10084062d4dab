"""Writing files so that they are whole or not there; `untrusted` reads them."""

from __future__ import annotations

import errno
import io
import os
import re
import secrets
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from caransac._support.arrays import shorten

if TYPE_CHECKING:
    import h5py

MARK = "-caransac-"  # in the names of temporary files, before eight random digits
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
Target = str | Path | IO[bytes] | IO[str]  # where to write to: a path, or a file that is open for writing


def as_path(value: Any, name: str = "path") -> Path:
    """What a caller gave as a path; a ValueError that names the argument where it is none."""
    try:
        path = os.fspath(value)
    except TypeError:
        path = None
    if not isinstance(path, str) or not path or "\0" in path:
        raise ValueError(f"{name} must be the path of a file or folder, not {shorten(value)}")
    return Path(path)


@contextmanager
def delivering(target: Target, suffix: str) -> Iterator[Path]:
    """A temporary path with a suffix, whose content goes to a target once the block has ended without an error.

    A path is replaced, as by `replacing`, and keeps its own suffix. An open file is written to and left open; one of
    text gets it as UTF-8.
    """
    if isinstance(target, str | Path):
        with replacing(as_path(target)) as temporary:
            yield temporary
        return
    if not callable(getattr(target, "write", None)):
        raise ValueError(f"path must be a path or a file that is open for writing, not a {type(target).__name__}")
    with TemporaryDirectory() as folder:
        temporary = Path(folder) / f"content{suffix}"
        yield temporary
        content: Any = temporary.read_bytes()
        target.write(content.decode() if isinstance(target, io.TextIOBase) else content)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside `path`, with its suffix, that takes its place once the block has ended without an error.

    Folders are made as needed. Whatever was at `path` stays until then, and hands its permissions on; a new file has
    those that the process gives to any. Where `path` is a symbolic link, the file it points to is replaced.

    What a process that was killed has left of its own is removed. An OSError of a full disk names `path`.
    """
    with _beside(path) as temporary, _naming_full_disk(path, temporary):
        yield temporary
        _write_through(temporary)
        target = _target(path)
        if (permissions := _permissions(target)) is not None:
            temporary.chmod(permissions)
        temporary.replace(target)
        _write_through(target.parent)


@contextmanager
def _naming_full_disk(path: Path, temporary: Path) -> Iterator[None]:
    """Turn errors about a lack of room, which name no file or the temporary one, into such that name the path."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM or error.filename not in (None, str(temporary)):
            raise
        raise no_room(path, error) from error


def no_room(path: Path, error: OSError) -> OSError:
    """The error to raise where there was no room for a file."""
    return OSError(f"{path} cannot be written ({os.strerror(error.errno or 0)}): make room, then continue")


def save_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write named arrays as an npz archive."""
    np.savez(path, **arrays)  # type: ignore[arg-type]  # a name could be "allow_pickle"; none is


def check_no_input(path: Path, inputs: Iterable[str | Path | None], name: str) -> None:
    """Raise a ValueError if writing to a path would replace one of the inputs, by whatever name or link.

    Args:
        path: where to write.
        inputs: what is read; None is skipped.
        name: of the argument or option of the path, for the message.
    """
    for each in (Path(each) for each in inputs if each is not None):
        if path.resolve() == each.resolve() or (path.exists() and each.exists() and path.samefile(each)):
            raise ValueError(f"{name} {path} is an input; choose another place")


def check_writable(path: Path) -> None:
    """Raise now what `replacing` would raise at the end of a long run."""
    with _beside(path):
        pass


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A new empty file beside the one that `path` leads to, gone at the end if it still has its name.

    It is locked meanwhile, and the system unlocks it when the process dies, however that comes. So the next one that
    writes to `path` can tell what nobody needs any more, and removes it.

    Raises:
        OSError: it cannot be made; names the path.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the name of a file")
    target = _target(path)
    make_folder(target.parent)
    try:
        _remove_abandoned(path, target.parent)
        # The kernel takes away what the umask says. What is private must not be open to others while it is written.
        permissions = _permissions(target)
        temporary, handle = _make_locked(path, target.parent, 0o666 if permissions is None else permissions | 0o600)
    except OSError as error:
        raise type(error)(f"{path} cannot be written ({error.strerror}): choose another place") from error
    try:
        if os.name == "nt":  # where an open file cannot be renamed
            os.close(handle)
        yield temporary
    finally:
        if os.name != "nt":
            os.close(handle)
        temporary.unlink(missing_ok=True)


def _make_locked(path: Path, folder: Path, mode: int) -> tuple[Path, int]:
    """A new file for what goes to a path, and a handle that has it locked."""
    while True:
        temporary = folder / f".{path.stem}{MARK}{secrets.token_hex(4)}{path.suffix}"
        handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
        _lock(handle)
        if os.name == "nt" or os.fstat(handle).st_nlink:  # else somebody took it for abandoned before it was locked
            return temporary, handle
        os.close(handle)


def _remove_abandoned(path: Path, folder: Path) -> None:
    """Remove temporary files of a path that belong to no process."""
    name = re.compile(re.escape(f".{path.stem}{MARK}") + "[0-9a-f]{8}" + re.escape(path.suffix))
    with os.scandir(folder) as entries:
        found = [Path(entry.path) for entry in entries if name.fullmatch(entry.name)]
    for each in found:
        with suppress(OSError):  # it is another user's, or gone by now
            handle = os.open(each, os.O_WRONLY)
            try:
                if _lock(handle):
                    each.unlink()
            finally:
                os.close(handle)


def _lock(handle: int) -> bool:
    """Lock an open file as long as its handle is open; whether that could be done."""
    if sys.platform == "win32":  # nobody knows there whether a file is in use
        return False
    else:  # noqa: RET505  # mypy skips what follows on Windows, where there is no fcntl, only in a branch
        import fcntl

        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # it is locked, or in a file system without locks
            return False
        return True


def _target(path: Path) -> Path:
    """The file that a path leads to, where it is a symbolic link; else itself."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _permissions(path: Path) -> int | None:
    """Permission bits of a file, None where there is none."""
    try:
        return path.stat().st_mode & 0o777
    except FileNotFoundError:
        return None


def _write_through(path: Path) -> None:
    """Bring a file or a folder to the disk.

    Else, after a power failure, a file's name could be there without its content, or the old file in place of the new.
    """
    if os.name == "nt" and path.is_dir():  # where folders cannot be opened
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(path: Path) -> None:
    """Make a folder and those above it; an OSError that names it if that cannot be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = "it is a file" if path.is_file() else error.strerror
        raise type(error)(f"{path} cannot be made a folder ({why}): choose another place") from error


def version_of(path: Path) -> tuple[int, ...]:
    """What tells whether a file is still the one that was read: for the keys of caches; an OSError if there is none.

    Device and inode tell files apart whatever the working folder and the links on the way are.
    """
    now = path.stat()
    return now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns


def open_h5(path: Path, mode: str = "r", opened: io.FileIO | None = None) -> h5py.File:
    """An h5 file, opened as h5py's `mode` says, by h5py or as a Python file; errors name it.

    Files that others made are read by `untrusted_h5.read_h5`.
    """
    try:
        import h5py
    except ImportError as error:
        raise ImportError("HDF5 files need h5py: pip install 'caransac[hloc]'") from error
    if mode == "r" and not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    try:
        return h5py.File(path if opened is None else opened, mode)
    except (OSError, RuntimeError) as error:
        raise OSError(f"{path} is not an HDF5 file, or it is corrupt or locked: {error}") from error


@contextmanager
def replacing_h5(path: Path) -> Iterator[h5py.File]:
    """An h5 file to write to, see `replacing`; an OSError that names it if the disk is full."""
    with replacing(path) as temporary, _ForgivingFile(temporary, "w+") as raw:
        with open_h5(temporary, "w", raw) as file:
            yield file
        if isinstance(raw.error, OSError):
            raise no_room(path, raw.error) from raw.error
        if raw.error is not None:
            raise raw.error


class _ForgivingFile(io.FileIO):
    """A file that keeps the first `error` of writing to itself.

    HDF5 must not see any, nor an interruption: a file with data that it cannot write cannot be closed either, and the
    end of the process crashes.
    """

    error: BaseException | None = None

    def write(self, data: Any) -> int:
        rest = memoryview(data)
        try:
            while rest and self.error is None:
                rest = rest[super().write(rest) :]
        except BaseException as error:
            self.error = error
        return len(data)

    def truncate(self, size: int | None = None) -> int:
        try:
            return super().truncate(size) if self.error is None else size or 0
        except BaseException as error:
            self.error = error
            return size or 0


@contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Turn errors about what a file, or a named part of it, holds into ValueErrors that name it."""
    try:
        yield
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
        text = str(error.args[0] if isinstance(error, KeyError) and error.args else error)  # without its quotes
        raise ValueError(f"{path}: {text.removeprefix(f'{path}: ')}") from error
