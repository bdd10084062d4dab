"""Coverage-guided fuzzing with atheris: `python tests/fuzz/<harness>.py [libFuzzer's options] [corpus]`.

A harness is a module with ``one_input(data)``, which passes bytes to one part of caransac. For any bytes, this part
must return a result or raise one of `REFUSALS`. Everything else is a finding.
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
        """Return the next bytes."""
        taken = self._data[self._at : self._at + count]
        self._at += count
        return taken.ljust(count, b"\0")

    def rest(self) -> bytes:
        """Return all remaining bytes."""
        return self._data[self._at :]

    def number(self, below: int) -> int:
        """Return an integer from 0 to `below` - 1."""
        return self.take(1)[0] % below

    def choose(self, options: Sequence[Choice]) -> Choice:
        """Return one of the options."""
        return options[self.number(len(options))]

    def real(self) -> float:
        """Return any number, often a special one."""
        if self.number(2):
            return self.choose(NUMBERS)
        return float(struct.unpack("<d", self.take(8))[0])

    def text(self) -> str:
        """Return a few characters of any kind."""
        return self.take(self.number(12)).decode("utf-8", "replace")

    def array(self) -> np.ndarray:
        """Return an array of any type with a small shape."""
        dtype = np.dtype(self.choose(DTYPES))
        shape = tuple(self.choose(LENGTHS) for _ in range(self.number(4)))
        return np.frombuffer(self.take(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape).copy()

    def sensible_array(self, *shape: int) -> np.ndarray:
        """Return an array of mostly ordinary numbers, which readers process further than arbitrary ones."""
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
    """Make a call that may raise only `REFUSALS`."""
    with np.errstate(all="ignore"):
        try:
            call()
        except np.linalg.LinAlgError:  # this subclass of ValueError is not an allowed error
            raise
        except REFUSALS:
            return


class folder:  # noqa: N801  # used like a function
    """A temporary folder, in memory if possible."""

    def __enter__(self) -> Path:
        fast = Path("/dev/shm")
        self._place = tempfile.mkdtemp(prefix="caransac-fuzz-", dir=fast if fast.is_dir() else None)
        return Path(self._place)

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._place, ignore_errors=True)


def fuzz(one_input: Callable[[bytes], None]) -> None:
    """Run a harness until the time limit or the first finding."""
    import atheris

    # When corpora are merged, libFuzzer starts the first argument again in a shell.
    atheris.Setup([f"{sys.executable} {sys.argv[0]}", *sys.argv[1:]], one_input)
    atheris.Fuzz()


def instrument() -> object:
    """Return a context for importing the tested part, so that its branches guide the fuzzer; empty without atheris."""
    try:
        import atheris
    except ImportError:
        from contextlib import nullcontext

        return nullcontext()
    return atheris.instrument_imports(include=["caransac"])
