"""Textured rectangles, the elements of all rendered scenes, and how their textures are sampled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from caransac.geometry import Array, Floats

Image = NDArray[np.uint8]

TEXEL = 0.01  # metres; about one pixel of a 640x480 view
WAVELENGTHS = (4 * TEXEL, 1.5)  # metres; shortest and longest wavelength of noise textures
LEVELS = 5  # levels of a texture pyramid, each half as fine as the previous one


@dataclass(frozen=True, eq=False)
class Face:
    """A textured rectangle, visible from the side of its normal.

    Attributes:
        corner: (3,) one corner in the world, in metres.
        axes: (2, 3) unit vectors of its two sides; the normal is their cross product.
        lengths: (2,) lengths of the two sides in metres.
        texture: grey levels (n, m) or RGB (n, m, 3) from 0 to 1, with the first axis along the first side; then coarser
            and coarser versions.
        colours: (2, 3) RGB colours of the levels 0 and 1, from 0 to 255.
        texel: distance in metres between two samples of the finest texture.
    """

    corner: Array
    axes: Array
    lengths: Array
    texture: tuple[Floats, ...]
    colours: Array
    texel: float = TEXEL


def texture_shape(lengths: tuple[float, float], texel: float = TEXEL) -> tuple[int, int]:
    """Return the texels for a rectangle with sides in metres, rounded so that a pyramid can halve them."""
    coarsest = 2 ** (LEVELS - 1)
    rows, columns = (coarsest * int(np.ceil(length / texel / coarsest) + 1) for length in lengths)
    return rows, columns


def make_noise(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Create grey levels from 0 to 1 of a `texture_shape`, with all `WAVELENGTHS` equally strong in every octave."""
    frequency = _frequencies(shape)
    band = np.exp(-((frequency * WAVELENGTHS[0]) ** 4)) / np.maximum(frequency, 1 / WAVELENGTHS[1])
    noise = np.fft.irfft2(np.fft.rfft2(rng.standard_normal(shape, np.float32)) * band, shape)
    return np.asarray(0.5 + 0.5 * np.tanh(noise / noise.std()), np.float32)


def make_smooth(levels: ArrayLike) -> Floats:
    """Remove wavelengths shorter than `WAVELENGTHS` from grey levels of a `texture_shape`."""
    levels = np.asarray(levels, np.float32)
    band = np.exp(-((_frequencies(levels.shape) * WAVELENGTHS[0]) ** 4))
    return np.asarray(np.fft.irfft2(np.fft.rfft2(levels) * band, levels.shape), np.float32)


def _frequencies(shape: tuple[int, ...]) -> Array:
    """Return the frequencies in cycles per metre of the Fourier transform of a texture."""
    return np.asarray(np.hypot(np.fft.fftfreq(shape[0], TEXEL)[:, None], np.fft.rfftfreq(shape[1], TEXEL)))


def make_pyramid(level: Floats) -> tuple[Floats, ...]:
    """Return the pyramid of a texture of a `texture_shape`, for a `Face`."""
    pyramid = [level]
    for _ in range(LEVELS - 1):
        level = 0.25 * (level[::2, ::2] + level[1::2, ::2] + level[::2, 1::2] + level[1::2, 1::2])
        pyramid.append(level)
    return tuple(pyramid)


def sample(face: Face, places: Floats, footprint: Array) -> Floats:
    """Sample levels (n,) or (n, 3) at places (n, 2) in metres, from coarser levels for larger footprints (n,).

    Footprints are in metres. The shortest wavelength is four texels, so a footprint of two texels needs no coarser
    level.
    """
    pyramid, texel = face.texture, face.texel
    wanted = np.log2(np.maximum(footprint / (2 * texel), 1)).astype(np.float32)
    lower = np.minimum(wanted.astype(np.int8), len(pyramid) - 2)
    share = np.minimum(wanted - lower, 1)
    levels = np.empty((len(places), *pyramid[0].shape[2:]), np.float32)
    for level in np.unique(lower):
        chosen = lower == level
        fine, coarse = (interpolate(pyramid[k], places[chosen] / (texel * 2**k)) for k in (level, level + 1))
        levels[chosen] = fine + _spread(share[chosen], fine) * (coarse - fine)
    return levels


def interpolate(texture: Floats, places: Floats) -> Floats:
    """Interpolate bilinearly at places (n, 2) in texels from the texture's corner: (n,), or (n, 3) for colours."""
    places = np.maximum(places - np.float32(0.5), 0)
    first, second = np.minimum(places.astype(np.int32), np.array(texture.shape[:2], np.int32) - 2).T
    flat, stride = texture.reshape(-1, *texture.shape[2:]), texture.shape[1]
    at = first * stride + second
    x, y = _spread(places[:, 0] - first, flat), _spread(places[:, 1] - second, flat)
    near = flat[at] + y * (flat[at + 1] - flat[at])
    far = flat[at + stride] + y * (flat[at + stride + 1] - flat[at + stride])
    return np.asarray(near + x * (far - near))


def _spread(weights: Floats, levels: Floats) -> Floats:
    """Reshape weights (n,) to broadcast over the channels of levels."""
    return weights.reshape(-1, *[1] * (levels.ndim - 1))
