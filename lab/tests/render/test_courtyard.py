"""The courtyard: materials, light and shadow are plausible, and matched views give the true pose."""

import numpy as np
import pytest

import caransac
from caransac.geometry import pose_error_deg
from caransac_lab.render import render_pair
from caransac_lab.render.light import SUN, Surface, illuminate
from caransac_lab.render.materials import (
    FINE_TEXEL,
    Material,
    make_brick,
    make_leaves,
    make_paving,
    make_tiles,
    make_wood,
)
from caransac_lab.render.surfaces import texture_shape

X, Y, Z = np.eye(3)


def plain(corner, axes, lengths):
    """Create a surface of one grey level without relief."""
    shape = texture_shape(lengths, FINE_TEXEL)
    grey = Material(np.full((*shape, 3), 0.4, np.float32), np.zeros(shape, np.float32))
    return Surface(np.array(corner, float), np.stack(axes), np.array(lengths), grey)


@pytest.mark.parametrize("make", [make_brick, make_paving, make_wood, make_tiles, make_leaves])
def test_a_material_covers_its_rectangle_and_reflects_no_more_light_than_falls_on_it(rng, make):
    lengths = (1.1, 0.7)
    material = make(rng, lengths)
    assert material.albedo.shape == (*texture_shape(lengths, FINE_TEXEL), 3)
    assert 0 < material.albedo.min() < material.albedo.max() < 1
    assert material.relief.shape == material.albedo.shape[:2]
    assert np.ptp(material.relief) < 0.05


def test_a_wall_throws_its_shadow_away_from_the_sun(rng):
    floor, wall = plain([-3, -3, 0], [X, Y], (6.0, 6.0)), plain([0, -2, 0], [-Y, Z], (1.0, 1.0))
    lit, _ = illuminate(rng, [floor, wall])
    alone, _ = illuminate(rng, [floor, plain([9, 9, -9], [X, Y], (0.1, 0.1))])
    darkened = lit.texture[0].mean(axis=2) < 0.85 * alone.texture[0].mean(axis=2)
    dark = np.argwhere(darkened) * FINE_TEXEL - 3  # positions on the floor in metres
    tip = -SUN[:2] / SUN[2]  # tip of the shadow of a wall of height one
    assert np.all(dark.min(axis=0) > [-0.1, -3.1])
    assert dark[:, 0].max() == pytest.approx(tip[0], abs=0.08)
    assert dark[:, 1].max() == pytest.approx(-2 + tip[1], abs=0.08)
    assert len(dark) * FINE_TEXEL**2 == pytest.approx(tip[0] * 1.0, rel=0.15)  # the shadow is a parallelogram


def test_surfaces_that_face_the_sun_are_brighter(rng):
    towards, away = plain([0, 0, 0], [X, Z], (1.0, 1.0)), plain([1, 5, 0], [-X, Z], (1.0, 1.0))
    bright, dark = (face.texture[0].mean() for face in illuminate(rng, [towards, away]))
    assert bright > 1.5 * dark > 0


@pytest.mark.slow
def test_features_of_the_photographs_give_the_pose():
    images = pytest.importorskip("caransac.io.images")
    pytest.importorskip("cv2", reason="needs OpenCV")
    pair = render_pair(0, width=480, height=360, angle_deg=15, scene="courtyard")
    assert pair.image1.dtype == np.uint8
    assert pair.image1.shape == (360, 480, 3)
    sky, wall = pair.image1[:20, :100].mean(axis=(0, 1)), pair.image1[180:200, 220:230].mean(axis=(0, 1))
    assert sky[2] > sky[0]
    assert wall[0] > wall[2]
    points1, points2, ratios = images.match_images(pair.image1, pair.image2)
    result = caransac.estimate_relative_pose(
        points1, points2, pair.camera, pair.camera, scores=ratios, score_kind="ratio"
    )
    assert result.num_inliers > 200
    assert pose_error_deg(result.R, result.t, pair.R, pair.t) < 0.5


def test_an_unknown_scene_is_refused():
    with pytest.raises(ValueError, match="scene must be one of boxes, courtyard"):
        render_pair(scene="garden")
