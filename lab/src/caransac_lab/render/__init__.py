"""A small renderer of textured rectangles with exact cameras, for demonstrations and tests.

Pixels follow OpenCV: the centre of the top-left pixel is (0, 0), so the principal point of a centred lens is
((width - 1) / 2, (height - 1) / 2). Add 0.5 to points and principal point for COLMAP.

The world is metric with z up. Cameras look along +z with x right and y down, as everywhere in this package. Each
surface is a rectangle with its own fixed texture, which is smooth at the scale of a pixel. Features therefore repeat
between views and can be localised to a small fraction of a pixel.
"""

from caransac_lab.render.boxes import make_face, make_scene
from caransac_lab.render.courtyard import make_courtyard
from caransac_lab.render.renderer import render, render_depth
from caransac_lab.render.surfaces import (
    TEXEL,
    Face,
    Image,
    make_noise,
    make_pyramid,
    make_smooth,
    texture_shape,
)
from caransac_lab.render.views import TARGET, RenderedPair, RenderedViews, SceneName, look_at, render_pair, render_views

__all__ = [
    "TARGET",
    "TEXEL",
    "Face",
    "Image",
    "RenderedPair",
    "RenderedViews",
    "SceneName",
    "look_at",
    "make_courtyard",
    "make_face",
    "make_noise",
    "make_pyramid",
    "make_scene",
    "make_smooth",
    "render",
    "render_depth",
    "render_pair",
    "render_views",
    "texture_shape",
]
