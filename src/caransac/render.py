"""A small renderer: images of textured boxes, floor and walls with exact cameras, for demonstration and tests.

Pixels follow OpenCV: the centre of the top-left pixel is (0, 0), so the principal point of a centred lens is
((width - 1) / 2, (height - 1) / 2). Add one half to points and principal point for COLMAP.

The world is metric with z up; cameras look along +z with x right and y down, as everywhere in this package. Each
surface is a rectangle with a texture of its own, fixed to it and smooth on the scale of a pixel, so features repeat
between views and can be localised to a small fraction of a pixel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caransac.camera import Camera
from caransac.geometry import Array, Floats, relative_pose

Image = NDArray[np.uint8]

TEXEL = 0.01  # metres; about one pixel of a 640x480 view
WAVELENGTHS = (4 * TEXEL, 1.5)  # metres; what the textures are made of, the shortest and the longest
LEVELS = 5  # of a texture's pyramid, each half as fine as the one before
NEAR = 0.05  # metres; nothing is drawn nearer to the camera
TARGET = np.array([0.0, 0.0, 0.9])  # metres; what the cameras look at
BACKGROUND = 30  # grey level where there is no surface


@dataclass(frozen=True, eq=False)
class Face:
    """A textured rectangle, seen from the side its normal points to.

    Attributes:
        corner: (3,) one corner in the world, in metres.
        axes: (2, 3) unit vectors of its two sides; the normal is their cross product.
        lengths: (2,) lengths of the two sides in metres.
        texture: grey levels 0 to 1, the first axis along the first side, `TEXEL` apart; then ever coarser ones.
        colours: (2, 3) RGB of the levels 0 and 1, from 0 to 255.
    """

    corner: Array
    axes: Array
    lengths: Array
    texture: tuple[Floats, ...]
    colours: Array


@dataclass(frozen=True, eq=False)
class RenderedViews:
    """Views of one scene, and the truth about their cameras.

    Attributes:
        images: one (height, width, 3) uint8 RGB array per view.
        camera: the camera of all views, in OpenCV's pixel convention.
        rotations: (V, 3, 3) and
        translations: (V, 3): a point X of the world is ``rotations[i] X + translations[i]`` in camera i, in metres.
    """

    images: tuple[Image, ...]
    camera: Camera
    rotations: Array
    translations: Array

    def relative_pose(self, first: int, second: int) -> tuple[Array, Array]:
        """R (3, 3) and t (3,) of length one, with ``x2 = R x1 + t``, of two views."""
        return relative_pose(
            self.rotations[first], self.translations[first], self.rotations[second], self.translations[second]
        )


@dataclass(frozen=True, eq=False)
class RenderedPair:
    """Two views of one scene, and the truth about them.

    Attributes:
        image1: (height, width, 3) uint8 RGB.
        image2: (height, width, 3) uint8 RGB.
        camera: the camera of both, in OpenCV's pixel convention.
        R: (3, 3) true rotation, ``x2 = R x1 + t``.
        t: (3,) true translation, of length one.
    """

    image1: Image
    image2: Image
    camera: Camera
    R: Array
    t: Array


def render_views(
    num_views: int = 12, *, width: int = 640, height: int = 480, seed: int = 0, arc_deg: float = 75.0
) -> RenderedViews:
    """Views of a made-up scene from an arc of cameras around it.

    Args:
        num_views: number of views.
        width: image width in pixels.
        height: image height in pixels.
        seed: seed of the scene and of the cameras' unsteady hands.
        arc_deg: angle between the first and the last camera as seen from the scene, in degrees.
    """
    if num_views < 1 or width < 2 or height < 2:
        raise ValueError("num_views must be at least 1, width and height at least 2")
    rng = np.random.default_rng([seed, 1])
    camera = Camera("SIMPLE_PINHOLE", (0.9 * width, (width - 1) / 2, (height - 1) / 2), width, height)
    faces = make_scene(seed)
    poses = []
    for azimuth in np.radians(np.linspace(-arc_deg / 2, arc_deg / 2, num_views) + rng.uniform(-1, 1, num_views)):
        radius, elevation = rng.uniform(6.5, 7.5), np.radians(rng.uniform(12, 22))
        around = [np.sin(azimuth) * np.cos(elevation), -np.cos(azimuth) * np.cos(elevation), np.sin(elevation)]
        poses.append(look_at(TARGET + radius * np.array(around), TARGET + rng.uniform(-0.2, 0.2, 3)))
    images = tuple(render(faces, camera, R, t) for R, t in poses)
    return RenderedViews(images, camera, np.stack([R for R, _ in poses]), np.stack([t for _, t in poses]))


def render_pair(seed: int = 0, *, width: int = 640, height: int = 480, angle_deg: float = 12.0) -> RenderedPair:
    """Two views of a made-up scene.

    Args:
        seed: seed of the scene and of the cameras.
        width: image width in pixels.
        height: image height in pixels.
        angle_deg: angle between the two cameras as seen from the scene, in degrees.
    """
    views = render_views(2, width=width, height=height, seed=seed, arc_deg=angle_deg)
    return RenderedPair(views.images[0], views.images[1], views.camera, *views.relative_pose(0, 1))


def look_at(centre: ArrayLike, target: ArrayLike) -> tuple[Array, Array]:
    """Rotation (3, 3) and translation (3,), camera from world, of an upright camera at `centre` facing `target`."""
    centre = np.asarray(centre, float)
    forward = np.asarray(target, float) - centre
    forward /= np.linalg.norm(forward)
    right = np.cross(forward, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    R = np.stack([right, np.cross(forward, right), forward])
    return R, -R @ centre


def make_scene(seed: int = 0, num_boxes: int = 10) -> list[Face]:
    """A floor, two walls in a corner and boxes in front of them, of random sizes, places and textures."""
    rng = np.random.default_rng([seed, 0])
    x, y, z = np.eye(3)
    slant = np.radians(25)  # walls at an angle are at varied depths
    left, right = np.cos(slant) * x + np.sin(slant) * y, np.cos(slant) * x - np.sin(slant) * y
    edge = np.array([0, 3.2, 0])  # where walls and floor meet
    faces = [
        _make_face(rng, [-7.5, -5, 0], x, y, (15, 9)),
        _make_face(rng, edge - 8 * left, left, z, (8, 5.5)),
        _make_face(rng, edge, right, z, (8, 5.5)),
    ]
    for index in range(num_boxes):  # in two rows, lower ones in front
        row, column = index % 2, index // 2
        place = [(column - (num_boxes // 2 - 1) / 2) * 1.3 + rng.uniform(-0.25, 0.25), row * 1.7 + rng.uniform(-0.9, 0)]
        size = rng.uniform(0.5, 1.0, 3) * [1, 1, 1 + 1.3 * row]
        faces += _make_box(rng, np.array([*place, 0.0]), size, rng.uniform(-0.7, 0.7))
    return faces


def _make_box(rng: np.random.Generator, place: Array, size: Array, turn: float) -> list[Face]:
    """The sides and the top of a box on the floor: its centre there, its size, and its angle about the vertical."""
    x, y, z = np.array([np.cos(turn), np.sin(turn), 0]), np.array([-np.sin(turn), np.cos(turn), 0]), np.eye(3)[2]
    width, depth, height = size
    front = place - width / 2 * x - depth / 2 * y
    back = place + width / 2 * x + depth / 2 * y
    return [
        _make_face(rng, front, x, z, (width, height)),
        _make_face(rng, front + width * x, y, z, (depth, height)),
        _make_face(rng, back, -x, z, (width, height)),
        _make_face(rng, back - width * x, -y, z, (depth, height)),
        _make_face(rng, front + height * z, x, y, (width, depth)),
    ]


def _make_face(
    rng: np.random.Generator, corner: ArrayLike, side1: Array, side2: Array, lengths: tuple[float, float]
) -> Face:
    """A rectangle with a random texture, as bright as a lamp from above left leaves it."""
    lamp = np.array([-0.4, -0.6, 0.7])
    brightness = 0.75 + 0.25 * float(np.cross(side1, side2) @ lamp)
    paint = rng.uniform(130, 220, 3)
    colours = brightness * np.stack([0.3 * paint, 0.4 * paint + 150])
    texture = _make_texture(rng, lengths)
    return Face(np.asarray(corner, float), np.stack([side1, side2]), np.array(lengths), texture, colours)


def _make_texture(rng: np.random.Generator, lengths: tuple[float, float]) -> tuple[Floats, ...]:
    """Noise for a rectangle with sides of these lengths in metres, and its pyramid."""
    return make_pyramid(make_noise(rng, texture_shape(lengths)))


def texture_shape(lengths: tuple[float, float]) -> tuple[int, int]:
    """Texels that cover a rectangle with sides of these lengths in metres, as many as a pyramid can halve."""
    coarsest = 2 ** (LEVELS - 1)
    rows, columns = (coarsest * int(np.ceil(length / TEXEL / coarsest) + 1) for length in lengths)
    return rows, columns


def make_noise(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Grey levels 0 to 1 of a `texture_shape`, of all wavelengths in `WAVELENGTHS`, equally strong in every octave."""
    frequency = _frequencies(shape)
    band = np.exp(-((frequency * WAVELENGTHS[0]) ** 4)) / np.maximum(frequency, 1 / WAVELENGTHS[1])
    noise = np.fft.irfft2(np.fft.rfft2(rng.standard_normal(shape, np.float32)) * band, shape)
    return np.asarray(0.5 + 0.5 * np.tanh(noise / noise.std()), np.float32)


def make_smooth(levels: ArrayLike) -> Floats:
    """Grey levels of a `texture_shape` without the wavelengths that are too short for `WAVELENGTHS`."""
    levels = np.asarray(levels, np.float32)
    band = np.exp(-((_frequencies(levels.shape) * WAVELENGTHS[0]) ** 4))
    return np.asarray(np.fft.irfft2(np.fft.rfft2(levels) * band, levels.shape), np.float32)


def _frequencies(shape: tuple[int, ...]) -> Array:
    """Frequencies in cycles per metre of the Fourier transform of a texture."""
    return np.asarray(np.hypot(np.fft.fftfreq(shape[0], TEXEL)[:, None], np.fft.rfftfreq(shape[1], TEXEL)))


def make_pyramid(level: Floats) -> tuple[Floats, ...]:
    """A texture of a `texture_shape`, then ever coarser ones: what a `Face` has."""
    pyramid = [level]
    for _ in range(LEVELS - 1):
        level = 0.25 * (level[::2, ::2] + level[1::2, ::2] + level[::2, 1::2] + level[1::2, 1::2])
        pyramid.append(level)
    return tuple(pyramid)


def render(faces: list[Face], camera: Camera, R: ArrayLike, t: ArrayLike, *, supersample: int = 2) -> Image:
    """The image that a camera sees.

    Args:
        faces: the scene.
        camera: an undistorted camera with a width and a height.
        R: (3, 3) rotation, camera from world.
        t: (3,) translation, camera from world, in metres.
        supersample: a pixel is the mean of so many rays squared.

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
        distance = abs(np.cross(*face.axes) @ (face.corner + R.T @ t))  # of the camera from the face's plane
        # What one ray has to stand for on a surface, along its steepest direction; it grows with depth and with slant.
        spread = ray_lengths.take(seen) / closeness.take(seen) ** 2 / (distance * camera.fx * supersample)
        grey = _sample(face.texture, places.reshape(-1, 2)[seen], spread)
        dark, light = face.colours.astype(np.float32)
        colours.reshape(-1, 3)[seen] = dark + grey[:, None] * (light - dark)
    parts = (colours[i::supersample, j::supersample] for i in range(supersample) for j in range(supersample))
    return np.rint(sum(parts) / supersample**2).astype(np.uint8)


def render_depth(faces: list[Face], camera: Camera, R: ArrayLike, t: ArrayLike) -> Array:
    """Depth in metres along the optical axis at every pixel's centre: (height, width), infinite without a surface."""
    columns, rows = _ray_grid(camera, 1)
    closeness = _cast(faces, columns, rows, np.asarray(R, float), np.asarray(t, float))[1]
    with np.errstate(divide="ignore"):
        return np.asarray(1 / closeness)


def _ray_grid(camera: Camera, supersample: int) -> tuple[Array, Array]:
    """Normalised x of all columns and y of all rows of rays, `supersample` to a pixel along each."""
    if camera.is_distorted or camera.width < 1 or camera.height < 1:
        raise ValueError("camera must have a width, a height and no distortion")
    x, y = ((np.arange(n * supersample) + 0.5) / supersample - 0.5 for n in (camera.width, camera.height))
    K = camera.K
    return (x - K[0, 2]) / K[0, 0], (y - K[1, 2]) / K[1, 1]


def _cast(
    faces: list[Face], columns: Array, rows: Array, R: Array, t: Array
) -> tuple[NDArray[np.int16], Array, Floats]:
    """What each ray (column, row, 1) meets first: the face's index or -1, the inverse depth, the place on the face.

    The point at depth z on a ray d lies in the plane through c with normal n where ``1 / z = (n . d) / (n . c)``.
    """
    shape = (len(rows), len(columns))
    index = np.full(shape, -1, np.int16)
    closeness = np.zeros(shape)
    places = np.zeros((*shape, 2), np.float32)
    for number, face in enumerate(faces):
        corner, axes = R @ face.corner + t, face.axes @ R.T
        normal = np.cross(axes[0], axes[1])
        if normal @ corner >= 0:  # turned away
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
    """The rows and columns of rays that can meet a rectangle; all of them when it reaches behind the camera."""
    corners = corner + np.array([[0, 0], [0, 1], [1, 0], [1, 1]]) @ sides
    if corners[:, 2].min() < NEAR:
        return slice(None), slice(None)
    flat = corners[:, :2] / corners[:, 2:]
    (left, top), (right, bottom) = flat.min(axis=0), flat.max(axis=0)
    return (
        slice(np.searchsorted(rows, top), np.searchsorted(rows, bottom, side="right")),
        slice(np.searchsorted(columns, left), np.searchsorted(columns, right, side="right")),
    )


def _sample(pyramid: tuple[Floats, ...], places: Floats, footprint: Array) -> Floats:
    """Grey levels at places (n, 2) in metres, as coarse as their footprints (n,) in metres ask for.

    No wavelength is below four texels, so a footprint of two needs no coarser level.
    """
    wanted = np.log2(np.maximum(footprint / (2 * TEXEL), 1)).astype(np.float32)
    lower = np.minimum(wanted.astype(np.int8), len(pyramid) - 2)
    share = np.minimum(wanted - lower, 1)
    grey = np.empty(len(places), np.float32)
    for level in np.unique(lower):
        chosen = lower == level
        fine, coarse = (_interpolate(pyramid[k], places[chosen] / (TEXEL * 2**k)) for k in (level, level + 1))
        grey[chosen] = fine + share[chosen] * (coarse - fine)
    return grey


def _interpolate(texture: Floats, places: Floats) -> Floats:
    """Bilinear interpolation at places (n, 2) in texels, from the texture's corner."""
    places = np.maximum(places - np.float32(0.5), 0)
    first, second = np.minimum(places.astype(np.int32), np.array(texture.shape, np.int32) - 2).T
    x, y = places[:, 0] - first, places[:, 1] - second
    flat, stride = texture.ravel(), texture.shape[1]
    at = first * stride + second
    near = flat[at] + y * (flat[at + 1] - flat[at])
    far = flat[at + stride] + y * (flat[at + stride + 1] - flat[at + stride])
    return np.asarray(near + x * (far - near))
