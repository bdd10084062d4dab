"""Hot kernels export no symbols: code for one CPU must never be linked into code for another."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WEAK = re.compile(r"^[0-9a-f]* +[VvWwu] +(.*)$")


def newest_archives():
    """Return the static library of each instruction set from the last build of this tree."""
    found = {}
    built = [path for path in ROOT.glob("build/*/libcaransac_*.a") if path.parent.name != "sanitize"]
    for path in sorted(built, key=lambda path: path.stat().st_mtime):
        found[path.stem.removeprefix("libcaransac_")] = path
    return {name: path for name, path in found.items() if name != "core"}


def test_weak_symbols_stay_in_the_namespace_of_their_instruction_set():
    archives = newest_archives()
    if shutil.which("nm") is None or not archives:
        assert "CI" not in os.environ, "continuous integration builds in this tree and has nm"
        pytest.skip("nm is missing, or this tree was built elsewhere")
    for name, path in archives.items():
        listed = subprocess.run(["nm", "-C", "--defined-only", path], capture_output=True, text=True, check=True).stdout
        assert f"caransac::{name}::five_point(" in listed
        weak = [match[1] for line in listed.splitlines() if (match := WEAK.match(line))]
        foreign = [symbol for symbol in weak if f"caransac::{name}::" not in symbol]
        assert not foreign, f"{path.name} shares {foreign[:3]} with code for other CPUs"
