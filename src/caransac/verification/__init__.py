"""Geometric verification of the matches of a COLMAP database or of hloc's files, here or on a cluster."""

from caransac.verification.colmap import ColmapDatabase
from caransac.verification.hloc import HlocFiles
from caransac.verification.records import (
    CalibrationPolicy,
    Config,
    PairGeometry,
    PairMatches,
    PairReport,
    Source,
    VerificationOptions,
)
from caransac.verification.runner import open_executor, verify

__all__ = [
    "CalibrationPolicy",
    "ColmapDatabase",
    "Config",
    "HlocFiles",
    "PairGeometry",
    "PairMatches",
    "PairReport",
    "Source",
    "VerificationOptions",
    "open_executor",
    "verify",
]
