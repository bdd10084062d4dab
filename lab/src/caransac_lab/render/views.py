"""Views of a synthetic scene, with their true cameras."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from caransac._support.arrays import LARGEST_SIDE, check_real, check_whole, shorten
from caransac.camera import Camera
from caransac.geometry import Array, relative_pose
from caransac_lab.render.boxes import make_scene
from caransac_lab.render.courtyard import expose, make_courtyard
from caransac_lab.render.renderer import render
from caransac_lab.render.surfaces import Face, Image

SceneName = Literal["boxes", "courtyard"]
TARGET = np.array([0.0, 0.0, 0.9])  # metres; point that the cameras look at among the boxes


@dataclass(frozen=True, eq=False)
class _Setting:
    """A scene and its viewpoints.

    Attributes:
        make: function that creates the scene from a seed.
        target: (3,) point that the cameras look at, in metres.
        distance: smallest and largest distance of the cameras from the target, in metres.
        elevation_deg: smallest and largest elevation of the cameras above the target, in degrees.
        take: function that turns a rendered image into a photograph.
    """

    make: Callable[[int], list[Face]]
    target: Array
    distance: tuple[float, float]
    elevation_deg: tuple[float, float]
    take: Callable[[np.random.Generator, Image], Image] = lambda _, image: image


SETTINGS: dict[SceneName, _Setting] = {
    "boxes": _Setting(make_scene, TARGET, (6.5, 7.5), (12, 22)),
    "courtyard": _Setting(make_courtyard, np.array([0.1, 0.7, 1.5]), (7.3, 7.9), (1, 4), expose),
}


@dataclass(frozen=True, eq=False)
class RenderedViews:
    """Views of one scene, with their true cameras.

    Attributes:
        images: one (height, width, 3) uint8 RGB array per view.
        camera: camera of all views, in OpenCV's pixel convention.
        rotations: (V, 3, 3) rotations. A point X of the world is ``rotations[i] X + translations[i]`` in camera i.
        translations: (V, 3) translations in metres.
    """

    images: tuple[Image, ...]
    camera: Camera
    rotations: Array
    translations: Array

    def relative_pose(self, first: int, second: int) -> tuple[Array, Array]:
        """Return R (3, 3) and t (3,) of unit length, with ``x2 = R x1 + t``, for two views."""
        return relative_pose(
            self.rotations[first], self.translations[first], self.rotations[second], self.translations[second]
        )


@dataclass(frozen=True, eq=False)
class RenderedPair:
    """Two views of one scene, with the true camera and pose.

    Attributes:
        image1: (height, width, 3) uint8 RGB.
        image2: (height, width, 3) uint8 RGB.
        camera: camera of both views, in OpenCV's pixel convention.
        R: (3, 3) true rotation, ``x2 = R x1 + t``.
        t: (3,) true translation of unit length.
    """

    image1: Image
    image2: Image
    camera: Camera
    R: Array
    t: Array


def render_views(
    num_views: int = 12,
    *,
    width: int = 640,
    height: int = 480,
    seed: int = 0,
    arc_deg: float = 75.0,
    scene: SceneName = "boxes",
) -> RenderedViews:
    """Render views of a synthetic scene from an arc of cameras around it.

    Args:
        num_views: number of views.
        width: image width in pixels.
        height: image height in pixels.
        seed: seed of the scene and of random camera motion.
        arc_deg: angle between the first and the last camera as seen from the scene, in degrees.
        scene: "boxes" is rich in features and takes a second; "courtyard" looks like photographs and takes several.
    """
    for value, name, least in ((num_views, "num_views", 1), (width, "width", 2), (height, "height", 2)):
        check_whole(value, name, least, LARGEST_SIDE)
    check_real(arc_deg, "arc_deg", -360, 360)
    if not isinstance(scene, str) or scene not in SETTINGS:
        raise ValueError(f"scene must be one of {', '.join(SETTINGS)}, not {shorten(scene)}")
    setting = SETTINGS[scene]
    rng = np.random.default_rng([seed, 1])
    camera = Camera("SIMPLE_PINHOLE", (0.9 * width, (width - 1) / 2, (height - 1) / 2), width, height)
    faces = setting.make(seed)
    poses = []
    for azimuth in np.radians(np.linspace(-arc_deg / 2, arc_deg / 2, num_views) + rng.uniform(-1, 1, num_views)):
        radius, elevation = rng.uniform(*setting.distance), np.radians(rng.uniform(*setting.elevation_deg))
        around = [np.sin(azimuth) * np.cos(elevation), -np.cos(azimuth) * np.cos(elevation), np.sin(elevation)]
        centre = setting.target + radius * np.array(around)
        poses.append(look_at(centre, setting.target + rng.uniform(-0.2, 0.2, 3)))
    images = tuple(setting.take(rng, render(faces, camera, R, t)) for R, t in poses)
    return RenderedViews(images, camera, np.stack([R for R, _ in poses]), np.stack([t for _, t in poses]))


def render_pair(
    seed: int = 0, *, width: int = 640, height: int = 480, angle_deg: float = 12.0, scene: SceneName = "boxes"
) -> RenderedPair:
    """Render two views of a synthetic scene.

    Args:
        seed: seed of the scene and of the cameras.
        width: image width in pixels.
        height: image height in pixels.
        angle_deg: angle between the two cameras as seen from the scene, in degrees.
        scene: "boxes" or "courtyard", see `render_views`.
    """
    check_real(angle_deg, "angle_deg", -360, 360)
    views = render_views(2, width=width, height=height, seed=seed, arc_deg=angle_deg, scene=scene)
    return RenderedPair(views.images[0], views.images[1], views.camera, *views.relative_pose(0, 1))


def look_at(centre: ArrayLike, target: ArrayLike) -> tuple[Array, Array]:
    """Return R (3, 3) and t (3,), camera from world, of an upright camera at `centre` that faces `target`."""
    centre = np.asarray(centre, float)
    forward = np.asarray(target, float) - centre
    forward /= np.linalg.norm(forward)
    right = np.cross(forward, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    R = np.stack([right, np.cross(forward, right), forward])
    return R, -R @ centre
