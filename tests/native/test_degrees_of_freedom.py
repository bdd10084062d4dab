"""The order of the degrees of freedom matches their names, in C++ and in Python."""

import numpy as np
import pytest

from caransac.geometry import rotation_from_vector
from caransac.kernels import ABSOLUTE, ABSOLUTE_FOCAL_POSES, FOCAL_POSES, RELATIVE, lens_information, pack

pytestmark = pytest.mark.kernels

MODEL = np.column_stack([rotation_from_vector(np.array([0.1, -0.2, 0.05])), [0.6, 0.0, 0.8], np.zeros((3, 2))])
STEP = 1e-4


def moved_by(kernels, place):
    """Return the columns of the model that a step in one degree of freedom changes."""
    step = np.zeros(kernels.degrees_of_freedom)
    step[place] = STEP
    return kernels.retract(MODEL, step) - MODEL


@pytest.mark.parametrize(("kernels", "layout"), [(FOCAL_POSES, RELATIVE), (ABSOLUTE_FOCAL_POSES, ABSOLUTE)])
def test_steps_change_the_parameters_named_by_the_layout(kernels, layout):
    for part, columns in ((layout.rotation, slice(0, 3)), (layout.translation, slice(3, 4))):
        for place in range(part.start, part.stop):
            change = moved_by(kernels, place)
            assert np.abs(change[:, columns]).max() > STEP / 2
            assert not np.delete(change, columns, axis=1).any()
    for camera in range(layout.cameras):
        changes = [moved_by(kernels, place) for place in range(kernels.degrees_of_freedom)[layout.camera(camera)]]
        np.testing.assert_allclose(np.array(changes)[:, :, 4 + camera], STEP * np.eye(3), atol=1e-15)
        assert not np.delete(np.array(changes), 4 + camera, axis=2).any()


def test_the_lens_of_an_absolute_pose_comes_last():
    assert ABSOLUTE_FOCAL_POSES.degrees_of_freedom == ABSOLUTE.with_lenses == ABSOLUTE.lenses.stop
    change = moved_by(ABSOLUTE_FOCAL_POSES, ABSOLUTE.lens())
    assert np.argwhere(change).tolist() == [[0, 5]]


def test_information_about_lenses_begins_with_the_information_of_the_model(rng):
    rays = pack(rng.uniform(-0.5, 0.5, (50, 2)), rng.uniform(-0.5, 0.5, (50, 2)))
    weights = np.ones(50)
    information = lens_information(MODEL, (0.0, 0.0), rays, weights)
    assert information.shape == (RELATIVE.with_lenses,) * 2
    model_only = slice(0, RELATIVE.with_intrinsics)
    np.testing.assert_allclose(
        information[model_only, model_only], FOCAL_POSES.information(MODEL, rays, weights), rtol=1e-6, atol=1e-9
    )
