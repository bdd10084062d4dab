"""What the runner needs to know of the place that pairs come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from caransac.api.camera_pooling import CameraEstimate
from caransac.verification.pair_records import CameraFocal, PairGeometry, PairMatches, PairReport, UnknownCamera


class Source(Protocol):
    """Where pairs come from and geometries go to. Only the process that opened it uses it."""

    @property
    def batch_size(self) -> int:
        """Pairs that go to a worker at once and are then written together."""
        ...

    @property
    def pending(self) -> Sequence[int]:
        """Keys of the pairs to verify, in a fixed order."""
        ...

    @property
    def kept(self) -> Sequence[PairReport]:
        """What is known of the pairs that were verified before."""
        ...

    @property
    def kept_settings(self) -> Mapping[str | None, int]:
        """How many of these were verified with which settings; None stands for other software."""
        ...

    @property
    def unpooled(self) -> Mapping[int, UnknownCamera]:
        """Cameras whose focal lengths are unknown, by number, as far as they have pairs that may show it."""
        ...

    @property
    def pooled(self) -> Mapping[int, CameraEstimate]:
        """What was found out about the focal lengths of these."""
        ...

    def learn_focals(self, found: Mapping[int, CameraEstimate]) -> None:
        """Use pooled focal lengths from here on; called once, before any pair is verified."""
        ...

    def focals(self, key: int) -> tuple[CameraFocal, CameraFocal]:
        """What is known of the focal lengths of a pair."""
        ...

    def read(self, key: int) -> PairMatches:
        """A pair; a `BadPairError` if it cannot be read."""
        ...

    def write(self, found: Sequence[PairGeometry]) -> None:
        """Keep the geometries of a batch, all or none."""
        ...

    def finish(self) -> None:
        """Called once, after the last pair."""
        ...

    def close(self) -> None:
        """Called once, whatever happened."""
        ...
