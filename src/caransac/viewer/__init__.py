"""The viewer: one HTML file that shows what an estimation saw, round by round, and needs no network."""

from caransac.viewer.report import write_report

__all__ = ["write_report"]
