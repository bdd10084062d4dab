"""All stored inputs of the fuzzers give a result or an allowed error, in plain Python."""

import importlib
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parent
HARNESSES = sorted(path.stem for path in FOLDER.glob("fuzz_*.py"))


@pytest.mark.parametrize("name", HARNESSES)
@pytest.mark.filterwarnings("ignore")  # libraries warn about unusual bytes
def test_kept_inputs_are_answered(name, monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    harness = importlib.import_module(name)
    inputs = sorted((FOLDER / "corpus" / name.removeprefix("fuzz_")).iterdir())
    assert inputs
    for path in inputs:
        try:
            harness.one_input(path.read_bytes())
        except Exception as error:
            raise AssertionError(f"{path}: {error!r}") from error
