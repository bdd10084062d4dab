"""Show the report in a notebook."""

from __future__ import annotations

import html
import sys
from io import StringIO
from typing import Any

from numpy.typing import ArrayLike

from caransac._support.arrays import check_whole
from caransac._support.files import Target, delivering
from caransac.results import GeometryResult
from caransac.viewer.content import DrawnResult
from caransac.viewer.report import write_report

HEIGHT_PX = 820
MOST_PX = 100_000  # larger than any screen


class InlineReport:
    """A report that notebooks display.

    Attributes:
        page: the complete report in HTML.
        height_px: height in a notebook, in pixels.
    """

    def __init__(self, page: str, height_px: int) -> None:
        self.page, self.height_px = page, height_px

    def save(self, path: Target) -> None:
        """Write the report to a path or to a file that is open for writing."""
        with delivering(path, ".html") as temporary:
            temporary.write_text(self.page, encoding="utf-8")

    def _repr_html_(self) -> str:
        # A separate frame isolates the styles of the report from those of the notebook.
        return (
            f'<iframe srcdoc="{html.escape(self.page)}" sandbox="allow-scripts" width="100%" height="{self.height_px}" '
            'style="border:0" title="Two-view report"></iframe>'
        )

    def __repr__(self) -> str:
        return f"InlineReport({len(self.page) / 1e6:.1f} MB of HTML; a notebook displays it, save(path) writes it)"


def show(
    result: DrawnResult | GeometryResult,
    points1: ArrayLike,
    points2: ArrayLike,
    *,
    height_px: int = HEIGHT_PX,
    **shown: Any,
) -> InlineReport | None:
    """Display the viewer's report in a notebook.

    Args:
        result: the result, successful or not.
        points1: (N, 2) pixels in image 1, as passed to the estimator.
        points2: (N, 2) pixels in image 2.
        height_px: height of the report in pixels.
        **shown: cameras, images and other arguments of `caransac.viewer.write_report`.

    Returns:
        None in IPython (Jupyter, Colab, ...), which displays the report at once, anywhere in a cell.
        Otherwise the report, which has ``_repr_html_()`` and ``save(path)``.
    """
    check_whole(height_px, "height_px", 1, MOST_PX)
    buffer = StringIO()
    write_report(buffer, result, points1, points2, **shown)
    report = InlineReport(buffer.getvalue(), int(height_px))
    ipython = sys.modules.get("IPython")  # code that runs in IPython has imported it
    if ipython is None or ipython.get_ipython() is None:
        return report
    ipython.display.display(report)
    return None
