"""Find the photographs of a collection in a folder."""

from __future__ import annotations

from pathlib import Path

from caransac._support.files import as_path


def check_folder(folder: str | Path) -> Path:
    """Return the absolute path of a folder of photographs. Raise an OSError if there is no such folder."""
    folder = as_path(folder, "images")
    if not folder.is_dir():
        raise NotADirectoryError(f"--images: no such folder: {folder}")
    return folder.resolve()  # workers of a cluster may have another working folder


def photograph_path(folder: Path, name: str) -> str:
    """Return the path of a photograph. A name that leaves the folder, which a forged file may have, is not followed."""
    inside = not Path(name).is_absolute() and ".." not in Path(name).parts
    return str(folder / name if inside else folder / Path(name).name)
