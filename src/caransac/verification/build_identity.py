"""Identify the exact build of caransac. Builds between two releases have the same version."""

from __future__ import annotations

from functools import cache
from hashlib import blake2b
from pathlib import Path

import caransac
from caransac.kernels import sources_digest

DECIDING = (".py", ".npz", ".json")  # suffixes of the files that affect results: code, weights and their cards
DIGITS = 12


def build_identity() -> str:
    """Return the version, and digests of the package's files and of the sources of its kernels.

    Two installations with the same identity give the same results, except for differences between types of processors.
    """
    return f"{caransac.__version__}+{_digest()}.{sources_digest()[:DIGITS]}"


@cache
def _digest() -> str:
    return digest_of_package(Path(caransac.__file__).parent)


def digest_of_package(folder: Path) -> str:
    """Compute a digest of the files of a package that affect results. It ignores line endings."""
    digest = blake2b(digest_size=DIGITS // 2)
    for path in sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).parts):
        if path.suffix in DECIDING and path.is_file():
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
            content = path.read_bytes()
            digest.update(content if path.suffix == ".npz" else content.replace(b"\r\n", b"\n"))
    return digest.hexdigest()
