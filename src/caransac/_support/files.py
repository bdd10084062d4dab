"""Write files atomically: a file is complete or absent. `untrusted` reads files."""

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

MARK = "-caransac-"  # part of the names of temporary files, followed by eight random digits
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
Target = str | Path | IO[bytes] | IO[str]  # target of a write: a path, or a file that is open for writing


def as_path(value: Any, name: str = "path") -> Path:
    """Convert a caller's argument to a Path. Raise a ValueError that names the argument if it is not a path."""
    try:
        path = os.fspath(value)
    except TypeError:
        path = None
    if not isinstance(path, str) or not path or "\0" in path:
        raise ValueError(f"{name} must be the path of a file or folder, not {shorten(value)}")
    return Path(path)


@contextmanager
def delivering(target: Target, suffix: str) -> Iterator[Path]:
    """Yield a temporary path; copy its content to the target when the block ends without an error.

    A target that is a path is replaced as by `replacing`, and keeps its own suffix. An open file is written to and
    stays open; a text file receives the content as UTF-8.
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
    """Yield a temporary path with the same suffix; move it to `path` when the block ends without an error.

    Missing folders are created. The old file stays in place until the end, and the new file gets its permissions. If
    there was no file, the new one gets the default permissions of the process. If `path` is a symbolic link, the file
    that it points to is replaced.

    Temporary files that killed processes left behind are removed. If the disk is full, the OSError names `path`.
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
    """Make errors about a full disk name the path. The original errors name the temporary file or no file."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM or error.filename not in (None, str(temporary)):
            raise
        raise no_room(path, error) from error


def no_room(path: Path, error: OSError) -> OSError:
    """Return the error to raise if the disk has no room for a file."""
    return OSError(f"{path} cannot be written ({os.strerror(error.errno or 0)}): make room, then continue")


def save_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write named arrays as an npz archive."""
    np.savez(path, **arrays)  # type: ignore[arg-type]  # a name could be "allow_pickle"; none is


def check_no_input(path: Path, inputs: Iterable[str | Path | None], name: str) -> None:
    """Raise a ValueError if writing to a path would replace an input, even through a link or another name.

    Args:
        path: path to write to.
        inputs: files that are read; None is skipped.
        name: name of the argument or option that gave the path, for the message.
    """
    for each in (Path(each) for each in inputs if each is not None):
        if path.resolve() == each.resolve() or (path.exists() and each.exists() and path.samefile(each)):
            raise ValueError(f"{name} {path} is an input; choose another place")


def check_writable(path: Path) -> None:
    """Raise now the error that `replacing` would raise at the end of a long run."""
    with _beside(path):
        pass


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """Yield a new empty file beside the target of `path`. Delete it at the end if it was not renamed.

    The file is locked in the meantime. The system unlocks it when the process ends for any reason. The next process
    that writes to `path` therefore recognises abandoned files and removes them.

    Raises:
        OSError: the file cannot be created. The message names the path.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the name of a file")
    target = _target(path)
    make_folder(target.parent)
    try:
        _remove_abandoned(path, target.parent)
        # The kernel applies the umask. A private file must not be readable by others while it is being written.
        permissions = _permissions(target)
        temporary, handle = _make_locked(path, target.parent, 0o666 if permissions is None else permissions | 0o600)
    except OSError as error:
        raise type(error)(f"{path} cannot be written ({error.strerror}): choose another place") from error
    try:
        if os.name == "nt":  # Windows cannot rename an open file
            os.close(handle)
        yield temporary
    finally:
        if os.name != "nt":
            os.close(handle)
        temporary.unlink(missing_ok=True)


def _make_locked(path: Path, folder: Path, mode: int) -> tuple[Path, int]:
    """Create a locked temporary file for a path. Return its name and its handle."""
    while True:
        temporary = folder / f".{path.stem}{MARK}{secrets.token_hex(4)}{path.suffix}"
        handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
        _lock(handle)
        # A file without links was removed as abandoned by another process before it was locked.
        if os.name == "nt" or os.fstat(handle).st_nlink:
            return temporary, handle
        os.close(handle)


def _remove_abandoned(path: Path, folder: Path) -> None:
    """Remove the temporary files of a path that no process has locked."""
    name = re.compile(re.escape(f".{path.stem}{MARK}") + "[0-9a-f]{8}" + re.escape(path.suffix))
    with os.scandir(folder) as entries:
        found = [
            Path(entry.path) for entry in entries if name.fullmatch(entry.name) and entry.is_file(follow_symlinks=False)
        ]
    for each in found:
        with suppress(OSError):  # the file belongs to another user or was just removed
            handle = os.open(each, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))  # never waits for a reader of a FIFO
            try:
                if _lock(handle):
                    each.unlink()
            finally:
                os.close(handle)


def _lock(handle: int) -> bool:
    """Lock a file until its handle closes. Return False if that fails, e.g. because it is locked already."""
    if sys.platform == "win32":  # Windows gives no way to see whether a file is in use
        return False
    else:  # noqa: RET505  # on Windows, which has no fcntl, mypy skips this code only in a branch
        import fcntl

        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # the file is locked, or its file system has no locks
            return False
        return True


def _target(path: Path) -> Path:
    """Return the file that a symbolic link points to, or the path itself if it is not a link."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _permissions(path: Path) -> int | None:
    """Return the permission bits of a file, or None if it does not exist."""
    try:
        return path.stat().st_mode & 0o777
    except FileNotFoundError:
        return None


def _write_through(path: Path) -> None:
    """Flush a file or a folder to the disk.

    Without this, a power failure could leave a file name without content, or the old file instead of the new one.
    """
    if os.name == "nt" and path.is_dir():  # Windows cannot open folders
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(path: Path) -> None:
    """Create a folder and its parents. Raise an OSError that names the folder if that fails."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = "it is a file" if path.is_file() else error.strerror
        raise type(error)(f"{path} cannot be made a folder ({why}): choose another place") from error


def version_of(path: Path) -> tuple[int, ...]:
    """Return a cache key that changes when a file changes. Raise an OSError if there is no file.

    Device and inode identify a file independently of the working folder and of links.
    """
    now = path.stat()
    return now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns


def open_h5(path: Path, mode: str = "r", opened: io.FileIO | None = None) -> h5py.File:
    """Open an h5 file in h5py's `mode`, by name or through a Python file. Errors name the file.

    Use `untrusted_h5.read_h5` to read files from other sources.
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
    """Open an h5 file for atomic writing, see `replacing`. If the disk is full, the OSError names the file."""
    with replacing(path) as temporary, _ForgivingFile(temporary, "w+") as raw:
        with open_h5(temporary, "w", raw) as file:
            yield file
        if isinstance(raw.error, OSError):
            raise no_room(path, raw.error) from raw.error
        if raw.error is not None:
            raise raw.error


class _ForgivingFile(io.FileIO):
    """A file that stores the first `error` of writing instead of raising it.

    HDF5 must not see write errors or interruptions. It cannot close a file with unwritten data, and then it crashes at
    the end of the process.
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
    """Turn errors about the content of a file, or of a named part of it, into ValueErrors that name it."""
    try:
        yield
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
        # The text of a KeyError has quotes around its message, so take the message itself.
        text = str(error.args[0] if isinstance(error, KeyError) and error.args else error)
        raise ValueError(f"{path}: {text.removeprefix(f'{path}: ')}") from error
