"""Descriptions of cameras for the commands, the viewer and notebooks."""

from __future__ import annotations

from caransac.camera import Camera
from caransac.camera_priors import UNKNOWN_FOCAL_DEVIATION

HARDLY_SEEN = 0.6 * UNKNOWN_FOCAL_DEVIATION  # above this deviation, the matches hardly constrain a focal length


def is_hardly_seen(camera: Camera) -> bool:
    """Return True if the focal length comes mostly from the prior of an unknown camera."""
    return camera.focal_deviation > HARDLY_SEEN


def describe_focal(found: Camera, given: Camera | None = None, source: str = "") -> str:
    """Describe a focal length and k1, their deviations, and their origin.

    Args:
        found: the camera of the answer.
        given: the camera before the estimation, or None if it was unknown.
        source: origin of the given camera, such as "from EXIF"; empty if it is not known.
    """
    if found.focal_deviation == 0:
        origin = f"taken as exact, {source}" if source else "taken as exact"
    elif is_hardly_seen(found):
        origin = "assumed: the matches hardly constrain it"
    elif given is None:
        origin = source or "estimated from the matches"
    elif found.mean_focal != given.mean_focal:
        origin = f"refined; {_numbers(given)} {source or 'as given'}"
    else:
        origin = source or "as given"
    return f"{_numbers(found)}, {origin}"


def _numbers(camera: Camera) -> str:
    """Return focal length and k1 with their deviations."""
    deviation = f" ± {100 * camera.focal_deviation:.2g} %" if camera.focal_deviation else ""
    bent = camera.distortion_deviation > 0 and camera.k1 != 0
    lens = f", k1 {camera.k1:.3f} ± {camera.distortion_deviation:.2g}" if bent else ""
    return f"{camera.mean_focal:.1f} px{deviation}{lens}"
