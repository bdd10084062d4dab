"""The extras: what messages and guides tell users to install exists, and holds what is needed."""

import re
from pathlib import Path

import pytest

from caransac.bench.adapters import ESTIMATORS

tomllib = pytest.importorskip("tomllib", reason="in the standard library from Python 3.11 on")
ROOT = Path(__file__).parent.parent
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def required(extra):
    """Requirements of an extra, those of the extras it is made of included."""
    for requirement in EXTRAS[extra]:
        inner = re.fullmatch(r"caransac\[(.*)\]", requirement)
        yield from (each for name in inner[1].split(",") for each in required(name)) if inner else (requirement,)


def packages(extra):
    return {re.match(r"[\w-]+", requirement)[0] for requirement in required(extra)}


def test_messages_and_guides_name_extras_that_exist():
    texts = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    named = {
        name
        for path in texts
        for names in re.findall(r"(?:install '(?:caransac|\.)\[|the extra ['`])([a-z,]+)", path.read_text())
        for name in names.split(",")
    }
    assert len(named) > 5
    assert named <= set(EXTRAS)


def test_guides_install_from_the_repository():
    """Whoever reads them need not have the package yet, and it may be nowhere but here."""
    for path in (*(ROOT / "docs").glob("*.md"), *(ROOT / "examples").glob("*.ipynb")):
        assert "install 'caransac" not in path.read_text(), path


def test_the_readme_lists_the_extras():
    (listed,) = re.findall(r"an\s+extra: ([^.]*)\.", (ROOT / "README.md").read_text())
    assert set(re.findall(r"`(\w+)`", listed)) == set(EXTRAS) - {"dev", "docs"}


@pytest.mark.parametrize(
    ("extra", "needed"),
    [
        ("images", {"opencv-python-headless", "pillow"}),
        ("bench", {"h5py", "matplotlib", "opencv-python-headless", "rich"}),
        ("train", {"h5py", "matplotlib", "rich", "torch"}),  # the run draws its curves
    ],
)
def test_an_extra_holds_what_its_command_imports(extra, needed):
    assert needed <= packages(extra)


OPTIONAL = {"pysuperansac"}  # has one wheel: whoever wants it installs it as `missing` says
PEERS = [e for e in ESTIMATORS.values() if e.module != "caransac" and e.package not in OPTIONAL]


@pytest.mark.parametrize("peer", PEERS, ids=lambda e: e.name)
def test_the_benchmark_asks_for_peers_as_new_as_the_adapters_want(peer):
    assert any(requirement.startswith(f"{peer.package}>={peer.min_version}") for requirement in required("bench"))


def test_the_tests_run_against_every_peer_that_has_a_wheel():
    assert {e.package for e in ESTIMATORS.values() if e.module not in ("caransac", "gcransac_interface")} <= packages(
        "dev"
    )


def test_the_readme_installs_extras_without_compiling_again():
    readme = (ROOT / "README.md").read_text()
    blocks = re.findall(r"^    pip install (.+?)(?:  +#.*)?$", readme, re.MULTILINE)
    assert blocks[0] == "." and all(re.fullmatch(r"'caransac\[\w+\]'", block) for block in blocks[1:])
    assert "does not compile again" in readme


def test_the_readme_says_where_vector_instructions_are_used():
    assert re.search(
        r"SIMD kernels for three instruction sets \(on\s+Windows only the baseline\)",
        (ROOT / "README.md").read_text(),
    )
