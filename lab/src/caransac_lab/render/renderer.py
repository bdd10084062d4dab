"""Render images and depths of textured rectangles."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caransac.camera import Camera
from caransac.geometry import Array, Floats
from caransac_lab.render.surfaces import Face, Image, sample

NEAR = 0.05  # metres; closer surfaces are not drawn
BACKGROUND = 30  # grey level if there is no surface


def render(faces: list[Face], camera: Camera, R: ArrayLike, t: ArrayLike, *, supersample: int = 2) -> Image:
    """Render the image of a camera.

    Args:
        faces: the scene.
        camera: an undistorted camera with a width and a height.
        R: (3, 3) rotation, camera from world.
        t: (3,) translation, camera from world, in metres.
        supersample: number of rays per pixel along each axis; a pixel is their mean.

    Returns:
        (height, width, 3) uint8 RGB.
    """
    R, t = np.asarray(R, float), np.asarray(t, float)
    columns, rows = _ray_grid(camera, supersample)
    index, closeness, places = _cast(faces, columns, rows, R, t)
    ray_lengths = np.sqrt(1 + columns**2 + rows[:, None] ** 2)
    colours = np.full((*index.shape, 3), BACKGROUND, np.float32)
    for number in np.unique(index[index >= 0]):
        face, seen = faces[number], np.flatnonzero(index == number)
        # Distance of the camera from the plane of the face.
        distance = abs(np.cross(*face.axes) @ (face.corner + R.T @ t))
        # The size of a ray's footprint on the surface along its steepest direction. It grows with depth and with slant.
        spread = ray_lengths.take(seen) / closeness.take(seen) ** 2 / (distance * camera.fx * supersample)
        levels = sample(face, places.reshape(-1, 2)[seen], spread)
        dark, light = face.colours.astype(np.float32)
        colours.reshape(-1, 3)[seen] = dark + levels.reshape(len(seen), -1) * (light - dark)
    parts = (colours[i::supersample, j::supersample] for i in range(supersample) for j in range(supersample))
    return np.rint(sum(parts) / supersample**2).astype(np.uint8)


def render_depth(faces: list[Face], camera: Camera, R: ArrayLike, t: ArrayLike) -> Array:
    """Return the depth in metres along the optical axis at each pixel centre (height, width); infinite if empty."""
    columns, rows = _ray_grid(camera, 1)
    closeness = _cast(faces, columns, rows, np.asarray(R, float), np.asarray(t, float))[1]
    with np.errstate(divide="ignore"):
        return np.asarray(1 / closeness)


def _ray_grid(camera: Camera, supersample: int) -> tuple[Array, Array]:
    """Return the normalised x of all columns and y of all rows of rays, `supersample` per pixel along each axis."""
    if camera.is_distorted or camera.width < 1 or camera.height < 1:
        raise ValueError("camera must have a width, a height and no distortion")
    x, y = ((np.arange(n * supersample) + 0.5) / supersample - 0.5 for n in (camera.width, camera.height))
    K = camera.K
    return (x - K[0, 2]) / K[0, 0], (y - K[1, 2]) / K[1, 1]


def _cast(
    faces: list[Face], columns: Array, rows: Array, R: Array, t: Array
) -> tuple[NDArray[np.int16], Array, Floats]:
    """Find the first face on each ray (column, row, 1): its index or -1, inverse depth, and position on the face.

    The point at depth z on a ray d lies in the plane through c with normal n if ``1 / z = (n . d) / (n . c)``.
    """
    shape = (len(rows), len(columns))
    index = np.full(shape, -1, np.int16)
    closeness = np.zeros(shape)
    places = np.zeros((*shape, 2), np.float32)
    for number, face in enumerate(faces):
        corner, axes = R @ face.corner + t, face.axes @ R.T
        normal = np.cross(axes[0], axes[1])
        if normal @ corner >= 0:  # the face is turned away
            continue
        window = _window(corner, axes * face.lengths[:, None], columns, rows)
        x, y = columns[window[1]], rows[window[0]][:, None]
        plane = np.stack([normal / (normal @ corner), *axes])
        inverse, along1, along2 = (a * x + (b * y + c) for a, b, c in plane)
        with np.errstate(divide="ignore", invalid="ignore"):
            first, second = along1 / inverse - axes[0] @ corner, along2 / inverse - axes[1] @ corner
            nearest = (inverse > closeness[window]) & (inverse < 1 / NEAR)
            nearest &= (first >= 0) & (first <= face.lengths[0]) & (second >= 0) & (second <= face.lengths[1])
        index[window][nearest] = number
        closeness[window][nearest] = inverse[nearest]
        places[window][nearest] = np.stack([first[nearest], second[nearest]], axis=1)
    return index, closeness, places


def _window(corner: Array, sides: Array, columns: Array, rows: Array) -> tuple[slice, slice]:
    """Return the rows and columns of rays that can meet a rectangle; all if it extends behind the camera."""
    corners = corner + np.array([[0, 0], [0, 1], [1, 0], [1, 1]]) @ sides
    if corners[:, 2].min() < NEAR:
        return slice(None), slice(None)
    flat = corners[:, :2] / corners[:, 2:]
    (left, top), (right, bottom) = flat.min(axis=0), flat.max(axis=0)
    return (
        slice(np.searchsorted(rows, top), np.searchsorted(rows, bottom, side="right")),
        slice(np.searchsorted(columns, left), np.searchsorted(columns, right, side="right")),
    )
