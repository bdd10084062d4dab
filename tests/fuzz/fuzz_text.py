"""Text files: matches, pair lists, and hloc's cameras."""

from pathlib import Path

import h5py
import harness

with harness.instrument():
    from caransac.io.matches import read_matches
    from caransac.verification.hloc import read_cameras, read_pairs
    from caransac_lab.datasets.pair_list import read_pair_list


def _read_list(path: Path) -> None:
    h5py.File(path.with_suffix(".h5"), "w").close()  # no matches, so the first valid line ends the run
    list(read_pair_list(path))


READERS = (read_matches, read_cameras, read_pairs, _read_list)


def one_input(data: bytes) -> None:
    decisions = harness.Decisions(data)
    reader = decisions.choose(READERS)
    harness.with_file(decisions.rest(), ".txt", reader)


if __name__ == "__main__":
    harness.fuzz(one_input)
