"""Verify the matches of a COLMAP database or of hloc's files geometrically, on this machine or on a cluster."""

from caransac.verification.colmap import ColmapDatabase
from caransac.verification.executors import choose_workers, open_executor, verify
from caransac.verification.hloc import HlocFiles
from caransac.verification.pair_records import (
    BadPairError,
    CalibrationPolicy,
    Config,
    PairGeometry,
    PairMatches,
    PairReport,
    VerificationOptions,
)
from caransac.verification.provenance import describe_settings
from caransac.verification.source import Source

__all__ = [
    "BadPairError",
    "CalibrationPolicy",
    "ColmapDatabase",
    "Config",
    "HlocFiles",
    "PairGeometry",
    "PairMatches",
    "PairReport",
    "Source",
    "VerificationOptions",
    "choose_workers",
    "describe_settings",
    "open_executor",
    "verify",
]
