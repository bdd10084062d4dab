"""The viewer: one HTML file that shows an estimation round by round and needs no network."""

from caransac.viewer.notebook import InlineReport, show
from caransac.viewer.report import write_report

__all__ = ["InlineReport", "show", "write_report"]
