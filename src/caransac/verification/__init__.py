"""Geometric verification of the matches of a COLMAP database or of hloc's files, here or on a cluster."""

from caransac.verification.colmap import ColmapDatabase
from caransac.verification.hloc import HlocFiles
from caransac.verification.records import Config, Geometry, PairMatches, Row, Settings, Source
from caransac.verification.runner import open_executor, verify

__all__ = [
    "ColmapDatabase",
    "Config",
    "Geometry",
    "HlocFiles",
    "PairMatches",
    "Row",
    "Settings",
    "Source",
    "open_executor",
    "verify",
]
