"""Coverage-guided fuzzing with atheris: `python tests/fuzz/<harness>.py [libFuzzer's options] [corpus]`.

A harness is a module with ``one_input(data)``, which gives some bytes to a part of caransac in its own way. Whatever
they are, the part must answer or raise what it promises, `REFUSALS`; anything else is a finding.
"""

import shutil
import struct
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

REFUSALS = (ValueError, OSError)
NUMBERS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-320, 1e308, -1e308, np.nan, np.inf, -np.inf, 2.0**31, 2.0**63, 800.0)
LENGTHS = (0, 1, 2, 3, 4, 5, 8, 9, 16, 60)
DTYPES = ("f8", "f4", "i4", "u4", "i8", "u8", "u1", "i2", "?", ">f8", "c16", "U3", "S4", "f2")
Choice = TypeVar("Choice")


class Decisions:
    """Bytes as a sequence of decisions; zeros when they are used up."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, count: int) -> bytes:
        """The next bytes."""
        taken = self._data[self._at : self._at + count]
        self._at += count
        return taken.ljust(count, b"\0")

    def rest(self) -> bytes:
        """All bytes that are left."""
        return self._data[self._at :]

    def number(self, below: int) -> int:
        """An integer from 0 on."""
        return self.take(1)[0] % below

    def choose(self, options: Sequence[Choice]) -> Choice:
        """One of them."""
        return options[self.number(len(options))]

    def real(self) -> float:
        """Any number, often a special one."""
        if self.number(2):
            return self.choose(NUMBERS)
        return float(struct.unpack("<d", self.take(8))[0])

    def text(self) -> str:
        """A few characters of any kind."""
        return self.take(self.number(12)).decode("utf-8", "replace")

    def array(self) -> np.ndarray:
        """An array of any type and a small shape."""
        dtype = np.dtype(self.choose(DTYPES))
        shape = tuple(self.choose(LENGTHS) for _ in range(self.number(4)))
        return np.frombuffer(self.take(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape).copy()

    def sensible_array(self, *shape: int) -> np.ndarray:
        """An array of single-precision numbers, few of them odd: a reader gets further with it."""
        count = int(np.prod(shape))
        values = np.frombuffer(self.take(2 * count), "<i2").astype(float).reshape(shape) / 16
        if count and self.number(2):
            values.flat[self.number(count)] = self.real()
        return values


def with_file(data: bytes, suffix: str, read: Callable[[Path], object]) -> None:
    """Read bytes as a file."""
    with folder() as place:
        path = place / f"input{suffix}"
        path.write_bytes(data)
        refusing(lambda: read(path))


def refusing(call: Callable[[], object]) -> None:
    """A call that may raise what is promised, and nothing else."""
    with np.errstate(all="ignore"):
        try:
            call()
        except np.linalg.LinAlgError:  # a ValueError that nobody has promised
            raise
        except REFUSALS:
            return


class folder:  # noqa: N801  # used like a function
    """A folder in memory where there is one, gone afterwards."""

    def __enter__(self) -> Path:
        fast = Path("/dev/shm")
        self._place = tempfile.mkdtemp(prefix="caransac-fuzz-", dir=fast if fast.is_dir() else None)
        return Path(self._place)

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._place, ignore_errors=True)


def fuzz(one_input: Callable[[bytes], None]) -> None:
    """Run a harness until the time is over or something is found."""
    import atheris

    # Where corpora are merged, libFuzzer starts the first argument again, in a shell.
    atheris.Setup([f"{sys.executable} {sys.argv[0]}", *sys.argv[1:]], one_input)
    atheris.Fuzz()


def instrument() -> object:
    """What to import the part under: its branches then guide the fuzzer. Without atheris, nothing."""
    try:
        import atheris
    except ImportError:
        from contextlib import nullcontext

        return nullcontext()
    return atheris.instrument_imports(include=["caransac"])
