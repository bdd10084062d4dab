"""Pictures of two-view geometry with matplotlib, the extra 'plot'.

Every function returns its figure, which notebooks show, and writes it to `path` unless that is None. A path's ending
chooses the format; a file that is open for writing gets PNG. With `ax` it draws on axes of yours.
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
