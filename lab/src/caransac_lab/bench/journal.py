"""The resume file: one JSON line for every outcome, written immediately."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from caransac._support.files import make_folder, replacing
from caransac._support.untrusted import parse_json, read_text
from caransac_lab.bench.protocol import Outcome

Key = tuple[str, ...]


class Journal:
    """Outcomes by key, in memory and on disk. The first line records the versions that produced them."""

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        """Open or create a journal.

        Raises:
            ValueError: the journal has a different header. The message says what differs.
        """
        self.path, self.outcomes = path, dict[Key, Outcome]()
        make_folder(path.parent)
        kept = (self._read(header) if path.exists() else "") or json.dumps(header) + "\n"
        if not path.exists() or read_text(path) != kept:  # a new journal, or a run was killed while it wrote a line
            with replacing(path) as whole:
                whole.write_text(kept)
        self._file: TextIO = path.open("a")

    def add(self, key: Key, outcome: Outcome) -> None:
        """Store an outcome on disk, so that it survives if the process is killed."""
        self.outcomes[key] = outcome
        self._file.write(json.dumps([key, outcome.as_dict()]) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, header: Mapping[str, Any]) -> str:
        """Load existing outcomes. Return the text of the complete lines."""
        try:
            lines = [line for line in read_text(self.path).splitlines(keepends=True) if line.endswith("\n")]
            if not lines:
                return ""
            changed = sorted(_differences(parse_json(lines[0]), json.loads(json.dumps(header))))
            entries = [] if changed else [parse_json(line) for line in lines[1:]]
            outcomes = {tuple(key): Outcome(**outcome) for key, outcome in entries}
        except (AttributeError, TypeError, ValueError) as error:
            raise ValueError(f"{self.path} is not a journal of this benchmark: remove it ({error})") from error
        if changed:
            raise ValueError(
                f"out: {self.path.parent} contains results with another {', '.join(changed)}; choose another"
            )
        self.outcomes.update(outcomes)
        return "".join(lines)


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the entries that both headers have and that differ."""
    for name in before.keys() | now.keys():
        one, other = before.get(name), now.get(name)
        if isinstance(one, dict) and isinstance(other, dict):
            yield from (key for key in one.keys() & other.keys() if one[key] != other[key])
        elif one != other:
            yield name
