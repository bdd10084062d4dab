"""What is assumed of cameras that are not exactly known, and deviations as people write them."""

from __future__ import annotations

from math import isfinite
from typing import Any

from caransac._support.arrays import is_real, shorten

# The focal length of a camera of which nothing is known, in its longer side, and its relative deviation: phones have
# 0.7 to 0.85, most other lenses 0.6 to 1.2.
UNKNOWN_FOCAL, UNKNOWN_FOCAL_DEVIATION = 0.85, 0.15
UNKNOWN_ZOOM_DEVIATION = 0.25  # where two images are known not to share a focal length: one of them may be zoomed
EXIF_FOCAL_DEVIATION = 0.04  # cameras round what they write down, focus and crop
SMALLEST_DEVIATION = 1e-9  # of a focal length that is not exact: estimation divides by its square
LARGEST_DEVIATION = 1.0  # of a focal length, relative, or of k1: all that is known of nothing
# Deviation of k1 of a lens of which nothing is known: phones have up to 0.02, other cameras 0.05 to 0.1.
UNKNOWN_DISTORTION_DEVIATION = 0.05


def check_deviation(deviation: Any, name: str = "focal_deviation") -> None:
    """Raise a ValueError for what cannot be the deviation of that name, relative to a focal length or of k1."""
    if not is_real(deviation) or not (deviation == 0 or SMALLEST_DEVIATION <= deviation <= LARGEST_DEVIATION):
        allowed = f"0 (exact) or from {SMALLEST_DEVIATION:g} to {LARGEST_DEVIATION:g}"
        raise ValueError(f"{name} must be {allowed}, not {shorten(deviation)}")


def split_deviation(text: str) -> tuple[str, float]:
    """A text before ``±5%`` (or ``+-5%``, or ``±0.05``), and that deviation: 0 where there is none.

    Raises:
        ValueError: what follows is no number.
    """
    front, sign, behind = text.replace("+-", "±").partition("±")
    if not sign:
        return text, 0.0
    number = behind.strip()
    return front.strip(), float(number[:-1]) / 100 if number.endswith("%") else float(number)


def parse_lens(text: str) -> tuple[float | None, float]:
    """k1 and its deviation as written: ``k1=-0.05``, ``k1=-0.05±0.02``, ``k1±0.02`` or ``k1=unknown``.

    The name may be left out. k1 is None where the text has none. Unknown, it is 0 and as far off as lenses are.

    Raises:
        ValueError: the text is none of these.
    """
    plain = text.strip().removeprefix("k1").strip().removeprefix("=").strip()
    if plain.lower() == "unknown":
        return 0.0, UNKNOWN_DISTORTION_DEVIATION
    front, deviation = split_deviation(plain)
    if not front and deviation == 0:
        raise ValueError("no number")
    k1 = float(front) if front else None
    if not 0 <= deviation <= LARGEST_DEVIATION or (k1 is not None and not isfinite(k1)):
        raise ValueError("not a number, or beyond what lenses have")
    return k1, deviation


def usual_distortion(focal: float) -> float:
    """Standard deviation of k1 where only the focal length is known, in longer sides; smaller for long lenses."""
    return UNKNOWN_DISTORTION_DEVIATION * min(UNKNOWN_FOCAL / focal, 1.0)
