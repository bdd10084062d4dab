"""Writing files so that they are whole or not there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside `path`, with its suffix, that takes its place once the block has ended without an error.

    Folders are made as needed. Whatever was at `path` stays until then.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def save_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write named arrays as an npz archive."""
    np.savez(path, **arrays)  # type: ignore[arg-type]  # a name could be "allow_pickle"; none is


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
