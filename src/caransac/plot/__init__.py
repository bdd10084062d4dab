"""Draw two-view geometry with matplotlib (extra 'plot').

Every function returns its figure, which notebooks show. It also writes the figure to `path`, unless that is None. The
suffix of a path selects the format; a file that is open for writing receives PNG. With `ax`, the function draws on your
axes.
"""

from caransac.plot.drawing import draw_epipolar_lines, draw_flow, draw_matches, draw_points3d, draw_progression
from caransac.plot.figures import new_figure, save
from caransac.plot.summaries import Summary, summary

__all__ = [
    "Summary",
    "draw_epipolar_lines",
    "draw_flow",
    "draw_matches",
    "draw_points3d",
    "draw_progression",
    "new_figure",
    "save",
    "summary",
]
