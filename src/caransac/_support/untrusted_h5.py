"""Read untrusted HDF5 files: only data inside the file itself, and only of a reasonable size.

HDF5 can store the data of an array in other files (external storage, external links, virtual datasets). With such a
file, its sender could copy any file of the reader's machine into a result. All of these are therefore rejected.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caransac._support.files import open_h5
from caransac._support.untrusted import FREE_SHARE, PIECE, WIDEST_NUMBER, check_size, memory_limit

MOST_SOFT_LINKS = 16  # maximum length of a chain of soft links
DEFLATE, SHUFFLE, CHECKSUM = 1, 2, 3  # HDF5's numbers for these filters
MOST_DEFLATED = 1032  # maximum number of bytes that one deflated byte can expand to
CHUNK_SLACK = 2**16  # bytes by which compression may enlarge a chunk


@contextmanager
def read_h5(path: Path) -> Iterator[UntrustedGroup]:
    """Open an h5 file and yield its root. Errors name the file, and the dataset if there is one."""
    with open_h5(path) as file:
        yield UntrustedGroup(file, path, "")


class UntrustedGroup:
    """A group of an h5 file. Its members are found by name or path.

    Attributes:
        path: path of the file.
        name: path of the group in the file; empty for the root.
    """

    def __init__(self, group: Any, path: Path, name: str) -> None:
        self._group, self.path, self.name = group, path, name

    def __iter__(self) -> Iterator[str]:
        with self._explaining(self.name):
            names = list(self._group)
        return iter(names)

    def __contains__(self, name: str) -> bool:
        return self._find(name) is not None

    def is_array(self, name: str) -> bool:
        """Return True if the name belongs to an array."""
        return hasattr(self._find(name), "shape")

    def group(self, name: str) -> UntrustedGroup:
        """Return a group by name."""
        item = self._get(name)
        if not hasattr(item, "keys"):
            raise ValueError(f"{self.path}: {self._full(name)} is not a group")
        return UntrustedGroup(item, self.path, self._full(name))

    def array(self, name: str) -> NDArray[Any]:
        """Read an array by name."""
        item = self._get(name)
        with self._explaining(self._full(name)):
            return _read_dataset(item, f"{self.path}: {self._full(name)}")

    @property
    def attrs(self) -> UntrustedAttributes:
        """The attributes of the group."""
        return UntrustedAttributes(self._group.attrs, f"{self.path}: {self.name}")

    def attributes(self, name: str) -> UntrustedAttributes:
        """Return the attributes of a member of the group."""
        return UntrustedAttributes(self._get(name).attrs, f"{self.path}: {self._full(name)}")

    def copy_to(self, target: Any) -> None:
        """Copy the arrays and attributes of the group into a new h5py group."""
        for name in self:
            target.create_dataset(name, data=self.array(name))
        for name, value in self.attrs.items():
            target.attrs[name] = value

    def _full(self, name: str) -> str:
        """Return the path of a member from the root."""
        return f"{self.name}/{name}".removeprefix("/")

    def _get(self, name: str) -> Any:
        """Return an h5py object by name or path. Raise a ValueError if it does not exist."""
        if (item := self._find(name)) is None:
            raise ValueError(f"{self.path}: no {self._full(name)}")
        return item

    def _find(self, name: str) -> Any:
        """Return an h5py object or None. Raise a ValueError if the path leaves the file."""
        with self._explaining(self._full(name)):
            return _follow(self._group, name)

    @contextmanager
    def _explaining(self, name: str) -> Iterator[None]:
        """Turn h5py's errors about corrupt files into ValueErrors that name the file and the object."""
        try:
            yield
        except (OSError, RuntimeError, LookupError, TypeError, ValueError, OverflowError, SystemError) as error:
            text = str(error.args[0] if isinstance(error, KeyError) and error.args else error)
            prefix = f"{self.path}: {name}"
            raise ValueError(text if text.startswith(prefix) else f"{prefix}: {text}") from error


class UntrustedAttributes(Mapping[str, Any]):
    """Attributes of an object in an h5 file."""

    def __init__(self, attributes: Any, place: str) -> None:
        self._attributes, self._place = attributes, place

    def __getitem__(self, name: str) -> Any:
        try:
            if name not in self._attributes:
                raise KeyError(name)
            found = self._attributes.get_id(name)
            _check_memory(found.dtype, math.prod(found.shape or ()), found.get_storage_size(), self._place)
            return self._attributes[name]
        except (OSError, RuntimeError, TypeError, OverflowError, SystemError) as error:
            raise ValueError(f"{self._place}: attribute {name} cannot be read: {error}") from error

    def __iter__(self) -> Iterator[str]:
        return iter(self._attributes)

    def __len__(self) -> int:
        return len(self._attributes)


def _follow(group: Any, name: str, depth: int = 0) -> Any:
    """Follow a path from a group; None if it does not exist. Every soft link is checked, as any may leave the file."""
    import h5py

    if depth > MOST_SOFT_LINKS:
        raise ValueError("circular links")
    place = group.file["/"] if name.startswith("/") else group
    for part in name.split("/"):
        if part in ("", "."):
            continue
        link = place.get(part, getlink=True) if isinstance(place, h5py.Group) else None
        if isinstance(link, h5py.ExternalLink):
            raise ValueError(f"a link to another file, {link.filename}: such links are not followed; copy the data")
        if link is None:
            return None
        place = _follow(place, link.path, depth + 1) if isinstance(link, h5py.SoftLink) else place[part]
        if place is None:
            return None
    return place


def _read_dataset(dataset: Any, what: str) -> NDArray[Any]:
    """Read a dataset that is stored in the file and has a reasonable size."""
    if getattr(dataset, "shape", None) is None:
        raise ValueError(f"{what} is not an array")
    if dataset.external is not None:
        raise ValueError(f"{what} is stored in another file, {dataset.external[0][0]}: such data are not read")
    if dataset.is_virtual:
        raise ValueError(f"{what} is a virtual dataset, made of other files: such data are not read")
    stored = dataset.id.get_storage_size()
    _check_memory(dataset.dtype, math.prod(dataset.shape), stored, what)
    if dataset.chunks is not None:
        check_size(math.prod(dataset.chunks) * dataset.dtype.itemsize, stored, f"a chunk of {what}")
        _check_chunks(dataset, what)
    return np.asarray(dataset[()])


def _check_memory(dtype: np.dtype[Any], count: int, stored: int, what: str) -> None:
    """Raise if the elements take too much memory. Variable-length elements may share one stored value."""
    if dtype.hasobject and count > 1:
        raise ValueError(f"{what} has elements of any length: such data are not read")
    check_size(count * max(dtype.itemsize, WIDEST_NUMBER), stored, what)


def _check_chunks(dataset: Any, what: str) -> None:
    """Raise if a chunk expands beyond its declared size. HDF5 allocates whatever the filter produces."""
    plist, size = dataset.id.get_create_plist(), math.prod(dataset.chunks) * dataset.dtype.itemsize
    filters = [plist.get_filter(number)[0] for number in range(plist.get_nfilters())]
    compressors = [number for number in filters if number not in (SHUFFLE, CHECKSUM)]
    if len(compressors) > 1:
        raise ValueError(f"{what} is compressed more than once: such data are not read")
    if not compressors:
        return
    for chunk in _chunks(dataset):
        if chunk.size > 2 * size + CHUNK_SLACK:
            raise ValueError(f"{what} has a chunk of {chunk.size} bytes that declares {size}")
        if compressors == [DEFLATE] and chunk.size * MOST_DEFLATED > memory_limit() // FREE_SHARE:
            _check_deflated(dataset.id.read_direct_chunk(chunk.chunk_offset)[1], size, what)


def _chunks(dataset: Any) -> list[Any]:
    """Return the positions and sizes of the chunks of a dataset."""
    found: list[Any] = []
    if hasattr(dataset.id, "chunk_iter"):  # a lookup by number takes time proportional to the number
        dataset.id.chunk_iter(lambda chunk: found.append(chunk))
        return found
    return [dataset.id.get_chunk_info(number) for number in range(dataset.id.get_num_chunks())]


def _check_deflated(data: bytes, size: int, what: str) -> None:
    """Raise if deflated data expand to more bytes than declared. The data are inflated piece by piece."""
    unpacking, unpacked = zlib.decompressobj(), 0
    try:
        while not unpacking.eof and (piece := unpacking.decompress(data, PIECE)):
            data, unpacked = unpacking.unconsumed_tail, unpacked + len(piece)
            if unpacked > size:
                raise ValueError(f"{what} has a chunk that becomes larger than the {size} bytes that it declares")
    except zlib.error as error:
        raise ValueError(f"{what} has a corrupt chunk: {error}") from error
