"""Cameras from a text, a dictionary, a matrix or a COLMAP database, and the methods of accepted cameras."""

import harness
import numpy as np

with harness.instrument():
    from caransac import Camera
    from caransac.camera import PARAMETERS
    from caransac.given_cameras import as_camera
    from caransac.verification.colmap_cameras import read_camera

MODELS = (*PARAMETERS, "NONE", "")
POINTS = np.array([[0.0, 0.0], [320.0, 240.0], [1e9, -1e9], [700.5, 3.25]])


def one_input(data: bytes) -> None:
    decisions = harness.Decisions(data)
    make = decisions.choose((_from_text, _from_dict, _from_numbers, _from_matrix, _from_row))
    harness.refusing(lambda: _use(make(decisions)))


def _from_text(decisions: harness.Decisions) -> Camera:
    return Camera.from_text(decisions.rest().decode("utf-8", "replace"))


def _from_dict(decisions: harness.Decisions) -> Camera:
    values = (decisions.array, decisions.real, decisions.text, lambda: [decisions.real() for _ in range(4)])
    names = ("model", "params", "width", "height", "focal_deviation", decisions.text())
    given = {name: decisions.choose(values)() for name in names if decisions.number(3)}
    return as_camera(given | {"model": decisions.choose(MODELS)}, "camera1")


def _from_numbers(decisions: harness.Decisions) -> Camera:
    model = decisions.choose(MODELS)
    params = tuple(decisions.real() for _ in PARAMETERS.get(model, ()))
    return Camera(model, params, decisions.number(256), decisions.number(256), focal_deviation=decisions.real())


def _from_matrix(decisions: harness.Decisions) -> Camera:
    K = decisions.array() if decisions.number(2) else decisions.sensible_array(3, 3)
    return Camera.from_opencv(K, decisions.array() if decisions.number(2) else None)


def _from_row(decisions: harness.Decisions) -> Camera:
    size = decisions.number(256), decisions.number(256)
    return read_camera(1, decisions.number(20), *size, decisions.take(decisions.number(120)))


def _use(camera: Camera) -> None:
    assert np.isfinite(camera.params).all()
    rays = camera.pixels_to_rays(POINTS)
    assert rays.shape == POINTS.shape
    camera.rays_to_pixels(np.nan_to_num(rays))
    assert Camera.from_dict(camera.to_dict()) == camera


if __name__ == "__main__":
    harness.fuzz(one_input)
