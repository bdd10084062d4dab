"""Results with a small picture, for notebooks."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from caransac.plot.display import as_html
from caransac.plot.drawing import draw_matches

if TYPE_CHECKING:
    from caransac.results import Result  # which shows itself with `display`, and so loads this package


def summary(
    result: Result,
    points1: ArrayLike,
    points2: ArrayLike,
    *,
    image1: ArrayLike | None = None,
    image2: ArrayLike | None = None,
) -> Summary:
    """The result with a small picture of its matches, for a notebook to display.

    Args:
        result: what was estimated, successful or not.
        points1: (n, 2) pixels in image 1, as given to the estimation.
        points2: (n, 2) pixels in image 2.
        image1: (H, W) or (H, W, 3) uint8, or None for an empty frame.
        image2: the same of image 2.
    """
    if not hasattr(result, "inliers") or not hasattr(result, "probabilities"):
        raise ValueError(f"result must be what caransac estimated, not a {type(result).__name__}")
    shown = result.inliers if result.probabilities is None else result.probabilities
    file = BytesIO()
    draw_matches(file, points1, points2, shown, image1=image1, image2=image2)
    return Summary(result, file.getvalue())


@dataclass(frozen=True)
class Summary:
    """A result with a picture, which notebooks display.

    Attributes:
        result: what was estimated.
        picture: its matches, as PNG.
    """

    result: Result
    picture: bytes

    def _repr_html_(self) -> str:
        return as_html(self.result, "data:image/png;base64," + base64.b64encode(self.picture).decode())

    def __repr__(self) -> str:
        return repr(self.result)
