"""Find weights by name, in the lab or in the package."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "weights"


def find_weights(name: str | Path) -> str | Path:
    """Return the path of weights that are in the lab; return other names and paths unchanged."""
    path = FOLDER / f"{name}.npz"
    return path if isinstance(name, str) and "/" not in name and path.is_file() else name
