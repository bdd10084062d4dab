"""The extras: those named in messages and guides exist, and contain the required packages."""

import re
from pathlib import Path

import pytest

from caransac_lab.bench.adapters import ESTIMATORS

tomllib = pytest.importorskip("tomllib", reason="needs tomllib of Python 3.11")
ROOT = Path(__file__).parent.parent
PROJECTS = {
    name: tomllib.loads((ROOT / path / "pyproject.toml").read_text())["project"]
    for name, path in (("caransac", "."), ("caransac-lab", "lab"))
}
EXTRAS = PROJECTS["caransac"]["optional-dependencies"]
LAB_EXTRAS = PROJECTS["caransac-lab"]["optional-dependencies"]


def expand(requirements):
    """Yield requirements. Extras of caransac are replaced by their own requirements."""
    for requirement in requirements:
        inner = re.match(r"caransac\[(.*)\]", requirement)
        yield from (each for name in inner[1].split(",") for each in expand(EXTRAS[name])) if inner else (requirement,)


def of_lab(extra):
    """Return the requirements of the lab with an extra."""
    return list(expand([*PROJECTS["caransac-lab"]["dependencies"], *LAB_EXTRAS[extra]]))


def packages(requirements):
    return {re.match(r"[\w-]+", requirement)[0] for requirement in requirements}


def test_messages_and_guides_name_extras_that_exist():
    texts = [*(ROOT / "src").rglob("*.py"), *(ROOT / "lab/src").rglob("*.py")]
    texts += [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "lab" / "README.md"]
    named = {
        (part in ("caransac-lab", "./lab"), name)
        for path in texts
        for part, names in re.findall(
            r"install (?:\. )?'(caransac|caransac-lab|\.|\./lab)\[([a-z,]+)\]", path.read_text()
        )
        for name in names.split(",")
    }
    assert len(named) > 5
    assert named <= {(False, name) for name in EXTRAS} | {(True, name) for name in LAB_EXTRAS}


def test_guides_install_from_the_repository():
    """Readers may not have the package yet, and it may not be on PyPI."""
    for path in (*(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.ipynb")):
        assert "install 'caransac" not in path.read_text(), path


def test_the_readme_lists_the_extras():
    (listed,) = re.findall(r"an\s+extra: ([^.]*)\.", (ROOT / "README.md").read_text())
    assert set(re.findall(r"`(\w+)`", listed)) == set(EXTRAS) - {"dev", "docs"}


def test_an_extra_contains_the_imports_of_its_command():
    assert packages(EXTRAS["images"]) >= {"opencv-python-headless", "pillow"}
    assert packages(of_lab("bench")) >= {"h5py", "matplotlib", "opencv-python-headless", "rich"}
    assert packages(of_lab("train")) >= {"h5py", "matplotlib", "rich", "torch"}  # a run draws its curves


def test_the_package_needs_only_numpy():
    assert PROJECTS["caransac"]["dependencies"] == ["numpy>=1.24"]


OPTIONAL = {"pysuperansac"}  # has a single wheel; `missing` explains how to install it
PEERS = [e for e in ESTIMATORS.values() if e.module != "caransac" and e.package not in OPTIONAL]


@pytest.mark.parametrize("peer", PEERS, ids=lambda e: e.name)
def test_the_benchmark_requires_the_minimum_versions_of_the_adapters(peer):
    assert any(requirement.startswith(f"{peer.package}>={peer.min_version}") for requirement in of_lab("bench"))


def test_the_tests_run_against_every_peer_that_has_a_wheel():
    peers = {e.package for e in ESTIMATORS.values() if e.module not in ("caransac", "gcransac_interface")}
    assert peers <= packages([*expand(EXTRAS["dev"]), *of_lab("bench")])


def test_the_readme_installs_extras_without_compiling_again():
    readme = (ROOT / "README.md").read_text()
    blocks = re.findall(r"^    pip install (.+?)(?:  +#.*)?$", readme, re.MULTILINE)
    assert blocks[0] == "." and all(re.fullmatch(r"'(caransac|\./lab)\[\w+\]'", block) for block in blocks[1:])
    assert "without compiling again" in readme
