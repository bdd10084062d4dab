"""Priors of cameras that are not exactly known, and a parser of deviations."""

from __future__ import annotations

from math import isfinite
from typing import Any

from caransac._support.arrays import is_real, shorten

# Focal length of an unknown camera, divided by the longer side of the image, and its relative deviation. Phones have
# 0.7 to 0.85, most other lenses 0.6 to 1.2.
UNKNOWN_FOCAL, UNKNOWN_FOCAL_DEVIATION = 0.85, 0.15
UNKNOWN_ZOOM_DEVIATION = 0.25  # if the focal lengths of two images may differ, because one may be zoomed
EXIF_FOCAL_DEVIATION = 0.04  # cameras round the value; focusing and cropping change it
SMALLEST_DEVIATION = 1e-9  # of an uncertain camera; estimation divides by its square
LARGEST_DEVIATION = 1.0  # for focal lengths (relative) and k1: no knowledge at all
# Deviation of k1 of an unknown lens. Phones have a k1 of up to 0.02, other cameras of 0.05 to 0.1.
UNKNOWN_DISTORTION_DEVIATION = 0.05
IGNORED_DISTORTION_DEVIATION = 0.03  # of k1 of an ordinary lens that the caller gave as undistorted


def check_deviation(deviation: Any, name: str = "focal_deviation") -> None:
    """Raise a ValueError if a deviation, of a focal length (relative) or of k1, is out of range."""
    if not is_real(deviation) or not (deviation == 0 or SMALLEST_DEVIATION <= deviation <= LARGEST_DEVIATION):
        allowed = f"0 (exact) or from {SMALLEST_DEVIATION:g} to {LARGEST_DEVIATION:g}"
        raise ValueError(f"{name} must be {allowed}, not {shorten(deviation)}")


def split_deviation(text: str) -> tuple[str, float]:
    """Split a text such as ``1200±5%`` into the text before the sign and the deviation, or 0 without a sign.

    The sign may also be ``+-``, and the deviation a fraction: ``±0.05``.

    Raises:
        ValueError: the text after the sign is not a number.
    """
    front, sign, behind = text.replace("+-", "±").partition("±")
    if not sign:
        return text, 0.0
    number = behind.strip()
    return front.strip(), float(number[:-1]) / 100 if number.endswith("%") else float(number)


def parse_lens(text: str) -> tuple[float | None, float]:
    """Return k1 and its deviation from ``k1=-0.05``, ``k1=-0.05±0.02``, ``k1±0.02`` or ``k1=unknown``.

    The prefix ``k1`` is optional. k1 is None if the text has only a deviation. An unknown k1 is 0, with the usual
    deviation of lenses.

    Raises:
        ValueError: the text has another form.
    """
    plain = text.strip().removeprefix("k1").strip().removeprefix("=").strip()
    if plain.lower() == "unknown":
        return 0.0, UNKNOWN_DISTORTION_DEVIATION
    front, deviation = split_deviation(plain)
    if not front and deviation == 0:
        raise ValueError("no number")
    k1 = float(front) if front else None
    if not 0 <= deviation <= LARGEST_DEVIATION or (k1 is not None and not isfinite(k1)):
        raise ValueError("not a number, or too large for a lens")
    return k1, deviation


def usual_distortion(focal: float) -> float:
    """Return the standard deviation of k1 for a known focal length, which is divided by the longer side.

    Long lenses have less distortion.
    """
    return UNKNOWN_DISTORTION_DEVIATION * min(UNKNOWN_FOCAL / focal, 1.0)
