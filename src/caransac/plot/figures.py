"""Create matplotlib figures or use the caller's axes, write them to files, and show them in notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from caransac._support.arrays import shorten
from caransac._support.files import delivering

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI = 100
PictureTarget = str | Path | IO[bytes]  # where to write a picture: a path, or a file that is open for writing


def new_figure(size: tuple[float, float]) -> Figure:
    """Create an empty figure of a size in inches that needs no screen."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure  # noqa: F401  # or the message below
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'caransac[plot]'") from error

    figure: Figure = _figure_type()(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


@overload
def save(figure: Figure, path: str | Path) -> Path: ...
@overload
def save(figure: Figure, path: IO[bytes]) -> IO[bytes]: ...
def save(figure: Figure, path: PictureTarget) -> Path | IO[bytes]:
    """Write a figure to a path, whose suffix selects the format, or as PNG to a file that is open for writing.

    Returns:
        The path, or the file.
    """
    with delivering(path, ".png") as temporary:
        figure.savefig(temporary, dpi=DPI)
    return Path(path) if isinstance(path, str | Path) else path


@cache
def _figure_type() -> Any:
    """Return a figure class that notebooks display, even if matplotlib's notebook support is off."""
    from matplotlib.figure import Figure

    class NotebookFigure(Figure):
        def _repr_png_(self) -> bytes:
            buffer = BytesIO()
            save(self, buffer)
            return buffer.getvalue()

    return NotebookFigure


def axes_of(
    ax: Any, size: tuple[float, float], shape: tuple[int, int], heights: Sequence[float] | None = None
) -> NDArray[Any]:
    """Return axes (rows, columns): the caller's, or those of a new figure.

    Args:
        ax: one of the caller's axes, or a sequence or array of them; None for a new figure.
        size: size of the figure in inches.
        shape: number of rows and columns.
        heights: relative heights of the rows; None for equal heights.
    """
    if ax is None:
        grid = new_figure(size).subplots(*shape, squeeze=False, height_ratios=heights)
        return np.asarray(grid)
    given = np.asarray(ax, dtype=object)
    if given.size != shape[0] * shape[1]:
        raise ValueError(f"ax must be {shape[0]} x {shape[1]} axes, got {given.size}")
    if not all(hasattr(each, "plot") and hasattr(each, "figure") for each in given.flat):
        raise ValueError(f"ax must be matplotlib's axes, not {shorten(ax)}")
    return given.reshape(shape)


def set_title(axes: Axes, title: str, ax: object) -> None:
    """Put a title above a new figure, or above the first of the caller's axes."""
    if ax is None:
        axes.figure.suptitle(title)
    elif title:
        axes.set_title(title)


def deliver(axes: Axes, path: PictureTarget | None) -> Figure:
    """Return the figure of the axes. Write it to the path if there is one."""
    figure = axes.figure.figure  # for a subfigure, the figure that contains it
    if path is not None:
        save(figure, path)
    return figure
