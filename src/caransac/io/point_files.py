"""Write triangulated points to files for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caransac._support.arrays import as_array
from caransac._support.files import delivering
from caransac.geometry.triangulation import Points3D


def write_ply(path: str | Path | IO[bytes], points3d: Points3D, colours: ArrayLike | None = None) -> None:
    """Write the points of a result as a PLY file for MeshLab, CloudCompare, Blender and others.

    Every vertex has x, y, z in the frame of camera 1, the angle between its rays in degrees, and its reprojection error
    in pixels.

    Args:
        path: path of the file, or a file that is open for writing.
        points3d: ``result.points3d``.
        colours: (m, 3) red, green and blue of each point as uint8, or None.
    """
    if not isinstance(points3d, Points3D):
        raise ValueError(f"points3d must be a caransac.Points3D, not {type(points3d).__name__}")
    names = ("x", "y", "z", "angle_deg", "error_px")
    columns = [*points3d.xyz.T, points3d.angle_deg, points3d.error_px]
    layout = [(name, "<f4") for name in names]
    shades = None if colours is None else _checked(colours, len(points3d))
    if shades is not None:
        layout += [(name, "u1") for name in ("red", "green", "blue")]
        columns += list(shades.T)
    table = np.empty(len(points3d), layout)
    for (name, _), column in zip(layout, columns, strict=True):
        table[name] = column
    words = {"<f4": "float", "u1": "uchar"}
    header = [
        "ply",
        "format binary_little_endian 1.0",
        f"element vertex {len(table)}",
        *(f"property {words[kind]} {name}" for name, kind in layout),
        "end_header\n",
    ]
    with delivering(path, ".ply") as temporary:
        temporary.write_bytes("\n".join(header).encode() + table.tobytes())


def _checked(colours: ArrayLike, count: int) -> NDArray[np.uint8]:
    shades = as_array(colours, "colours")
    if shades.shape != (count, 3) or shades.dtype != np.uint8:
        raise ValueError(f"colours must be ({count}, 3) uint8, got {shades.shape} {shades.dtype}")
    return shades
