"""Show results with a small picture in notebooks."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from caransac.plot.display import as_html
from caransac.plot.drawing import draw_matches

if TYPE_CHECKING:
    from caransac.results import Result  # results import `display`, and thereby this package


def summary(
    result: Result,
    points1: ArrayLike,
    points2: ArrayLike,
    *,
    image1: ArrayLike | None = None,
    image2: ArrayLike | None = None,
) -> Summary:
    """Combine a result with a small picture of its matches, for display in a notebook.

    Args:
        result: the result, successful or not.
        points1: (n, 2) pixels in image 1, as passed to the estimator.
        points2: (n, 2) pixels in image 2.
        image1: (H, W) or (H, W, 3) uint8, or None for an empty frame.
        image2: image 2 in the same form.
    """
    if not hasattr(result, "inliers") or not hasattr(result, "probabilities"):
        raise ValueError(f"result must be a result of caransac, not a {type(result).__name__}")
    shown = result.inliers if result.probabilities is None else result.probabilities
    file = BytesIO()
    draw_matches(file, points1, points2, shown, image1=image1, image2=image2)
    return Summary(result, file.getvalue())


@dataclass(frozen=True)
class Summary:
    """A result with a picture that notebooks display.

    Attributes:
        result: the result.
        picture: picture of its matches, as PNG.
    """

    result: Result
    picture: bytes

    def _repr_html_(self) -> str:
        return as_html(self.result, "data:image/png;base64," + base64.b64encode(self.picture).decode())

    def __repr__(self) -> str:
        return repr(self.result)
