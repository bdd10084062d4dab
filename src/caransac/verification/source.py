"""Interface between the runner and a source of pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from caransac.api.camera_pooling import CameraEstimate
from caransac.verification.pair_records import CameraFocal, PairGeometry, PairMatches, PairReport, UnknownCamera


class Source(Protocol):
    """A source of pairs and store of geometries. Only the process that opened it uses it."""

    @property
    def batch_size(self) -> int:
        """Number of pairs that are sent to a worker, and later written, together."""
        ...

    @property
    def pending(self) -> Sequence[int]:
        """Keys of the pairs to verify, in a fixed order."""
        ...

    @property
    def kept(self) -> Sequence[PairReport]:
        """Reports of the pairs that were verified before."""
        ...

    @property
    def kept_settings(self) -> Mapping[str | None, int]:
        """Number of kept pairs by their settings; None stands for other software."""
        ...

    @property
    def unpooled(self) -> Mapping[int, UnknownCamera]:
        """Cameras by number whose focal lengths are unknown and that have pairs for estimating them."""
        ...

    @property
    def pooled(self) -> Mapping[int, CameraEstimate]:
        """Estimated focal lengths of these cameras, by number."""
        ...

    def learn_focals(self, found: Mapping[int, CameraEstimate]) -> None:
        """Use pooled focal lengths from now on. Called once, before any pair is verified."""
        ...

    def focals(self, key: int) -> tuple[CameraFocal, CameraFocal]:
        """Return the known focal lengths of a pair."""
        ...

    def read(self, key: int) -> PairMatches:
        """Read a pair. Raise a `BadPairError` if that is impossible."""
        ...

    def write(self, found: Sequence[PairGeometry]) -> None:
        """Store the geometries of a batch in one transaction."""
        ...

    def finish(self) -> None:
        """Finish the run. Called once, after the last pair."""
        ...

    def close(self) -> None:
        """Close the source. Called once, even after errors."""
        ...
