"""Releases: minimal permissions of workflows, a single version, and complete licences and pins."""

import json
import os
import re
import shutil
import struct
import subprocess
import sys
import time
from importlib.metadata import distribution
from pathlib import Path

import pytest
import yaml

import caransac
import caransac_lab
from caransac import _native

tomllib = pytest.importorskip("tomllib", reason="needs tomllib of Python 3.11")

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
MORE_PERMISSIONS = {  # by workflow, of its jobs: for publishing on PyPI and on GitHub Pages
    "wheels": [{"id-token": "write"}],
    "docs": [{"pages": "write", "id-token": "write"}],
}
EMBEDDED = {"eigen": "MPL-2.0", "nanobind": "BSD-3-Clause", "robin-map": "MIT"}  # libraries compiled into the module


def jobs(workflow):
    return yaml.safe_load(workflow.read_text())["jobs"].values()


def steps(workflow):
    return [step for job in jobs(workflow) for step in job["steps"]]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_may_do_as_little_as_possible(workflow):
    assert yaml.safe_load(workflow.read_text())["permissions"] == {"contents": "read"}
    beyond = [job["permissions"] for job in jobs(workflow) if "permissions" in job]
    assert beyond == MORE_PERMISSIONS.get(workflow.stem, [])
    for job in jobs(workflow):  # a job with more permissions runs no code of the repository
        assert "permissions" not in job or not any("checkout" in step.get("uses", "") for step in job["steps"])
    checkouts = [step for step in steps(workflow) if step.get("uses", "").startswith("actions/checkout@")]
    assert checkouts
    assert not any(step["with"]["persist-credentials"] for step in checkouts)


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_use_few_actions_pinned_by_commit(workflow):
    """A tag can be moved to other code, so a commit is given. The comment shows the tag to people and Dependabot."""
    used = re.findall(r"uses: *(.*)", workflow.read_text())
    assert len(used) == sum("uses" in step for step in steps(workflow))
    pinned = r"(actions/[\w-]+|pypa/gh-action-pypi-publish)@[0-9a-f]{40}  # v\d+\.\d+\.\d+"
    assert [action for action in used if not re.fullmatch(pinned, action)] == []


def test_an_action_is_the_same_commit_everywhere():
    used = {action for path in WORKFLOWS for action in re.findall(r"uses: *(.*)", path.read_text())}
    assert len({action.partition("@")[0] for action in used}) == len(used)


def test_the_pythons_that_the_metadata_name_have_wheels():
    named = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["project"]["classifiers"]))
    assert PROJECT["project"]["requires-python"] == f">={named[0]}"
    wheels = PROJECT["tool"]["cibuildwheel"]["build"]
    assert {f"cp{version.replace('.', '')}-*" for version in named} == {wheel for wheel in wheels if "t-" not in wheel}


def test_the_version_is_the_same_everywhere():
    """Every other place takes it from the package."""
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["scikit-build"]["metadata"]["version"]["input"] == "src/caransac/__init__.py"
    assert "version" not in yaml.safe_load((ROOT / "CITATION.cff").read_text())
    lab = tomllib.loads((ROOT / "lab" / "pyproject.toml").read_text())["project"]
    (own,) = (each for each in lab["dependencies"] if each.startswith("caransac["))
    (newest, *_) = re.findall(r"^## (?!Unreleased$)(.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    found = {
        "the lab": lab["version"],
        "the module of the lab": caransac_lab.__version__,
        "the requirement of the lab": own.partition("==")[2],
        "the recipe": yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text())["context"]["version"],
        "the changelog": re.fullmatch(r"(\S+) \(\d{4}-\d\d-\d\d\)", newest)[1],
        "the installed package": distribution("caransac").version,
    }
    assert found == dict.fromkeys(found, caransac.__version__)


def test_the_address_of_the_project_is_the_same_everywhere():
    home = PROJECT["project"]["urls"]["Repository"]
    texts = [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / ".github").rglob("*.yml"),
        ROOT / "pyproject.toml",
        ROOT / "CITATION.cff",
    ]
    found = {url for path in texts for url in re.findall(r"https://github\.com/[\w-]*/caransac\b", path.read_text())}
    assert found == {home}


def test_the_documentation_is_where_the_workflow_puts_it():
    """The address of a repository's GitHub Pages follows from the address of the repository."""
    owner, name = PROJECT["project"]["urls"]["Repository"].split("/")[-2:]
    address = PROJECT["project"]["urls"]["Documentation"]
    assert address == f"https://{owner}.github.io/{name}/"
    assert yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text())["about"]["documentation"] == address
    assert f'Documentation = "{address}' in (ROOT / "lab" / "pyproject.toml").read_text()
    (upload,) = (step for step in steps(ROOT / ".github/workflows/docs.yml") if "upload" in step.get("uses", ""))
    assert upload["with"]["path"] == yaml.safe_load((ROOT / "mkdocs.yml").read_text())["site_dir"]


def test_compiled_libraries_have_a_licence_and_an_inventory_entry():
    inventory = json.loads((ROOT / "cmake" / "sbom.cdx.json.in").read_text())
    assert {part["name"]: part["licenses"][0]["license"]["id"] for part in inventory["components"]} == EMBEDDED
    assert {path.stem for path in (ROOT / "LICENSES").glob("*.txt")} == set(EMBEDDED)
    assert set(PROJECT["project"]["license"].split(" AND ")) == {"BSD-3-Clause", *EMBEDDED.values()}


def test_an_installed_wheel_has_licences_and_inventory():
    files = {str(path): path for path in distribution("caransac").files or ()}
    licences = {path.rsplit("/", 1)[1] for path in files if ".dist-info/licenses/" in path}
    assert licences == {"LICENSE", *(f"{name}.txt" for name in EMBEDDED)}
    (path,) = (path for name, path in files.items() if name.endswith(".dist-info/sboms/caransac.cdx.json"))
    inventory = json.loads(path.locate().read_text())
    versions = {part["name"]: part["version"] for part in inventory["components"]}
    assert inventory["metadata"]["component"]["version"] == caransac.__version__
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions.values())
    assert "@@" not in str(inventory)


def pins(name):
    """Return the lines of a file of pinned requirements, each with its hashes."""
    text = (ROOT / "requirements" / name).read_text().replace("\\\n", " ")
    return [line for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize("name", ["build.txt", "release.txt"])
def test_requirements_of_releases_are_pinned_with_hashes(name):
    for line in pins(name):
        assert re.match(r"[\w.-]+==[\w.]+ .*--hash=sha256:[0-9a-f]{64}", line), line


def test_build_requirements_are_pinned():
    pinned = {line.split("==")[0] for line in pins("build.txt")}
    required = {re.match(r"[\w-]+", requirement)[0] for requirement in PROJECT["build-system"]["requires"]}
    assert required | {"cmake", "ninja"} <= pinned
    tools = {re.match(r"[\w-]+", requirement)[0] for requirement in PROJECT["dependency-groups"]["release"]}
    lab = tomllib.loads((ROOT / "lab" / "pyproject.toml").read_text())["build-system"]["requires"]
    tools |= {re.match(r"[\w-]+", requirement)[0] for requirement in lab}
    assert tools <= {line.split("==")[0] for line in pins("release.txt")}
    for command in re.findall(r"-m build .*", (ROOT / "Makefile").read_text()):
        assert "--no-isolation" in command, "pip would download other versions"


@pytest.mark.slow
def test_core_tests_need_only_numpy():
    """Wheels are tested with the core tests, also on platforms without the extras."""
    code = "import sys; sys.modules.update(dict.fromkeys(sys.argv[1:])); import pytest; "
    code += "sys.exit(pytest.main(['--collect-only', '-p', 'no:cacheprovider', '@tests/core.txt']))"
    extras = ["cv2", "distributed", "h5py", "matplotlib", "PIL", "poselib", "pyarrow", "pycolmap", "rich", "torch"]
    command = [sys.executable, "-c", code, *extras]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]


def test_the_limits_that_users_can_set_exist():
    sources = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    named = re.findall(r"`(CARANSAC_\w+)`", (ROOT / "SECURITY.md").read_text())
    assert named
    assert all(f'"{name}"' in sources for name in named)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs ELF, the format of Linux")
def test_the_compiled_module_is_hardened():
    data = Path(_native.__file__).read_bytes()
    assert b"__stack_chk_fail" in data, "the stack is protected against overflows"
    start, size, count = *struct.unpack_from("<Q", data, 32), *struct.unpack_from("<HH", data, 54)
    headers = [struct.unpack_from("<IIQQQQ", data, start + size * number) for number in range(count)]
    kinds = {kind: (offset, length) for kind, _, offset, _, _, length in headers}
    assert 0x6474E552 in kinds, "tables of addresses are read-only after loading"
    offset, length = kinds[2]  # the dynamic section
    dynamic = dict(struct.iter_unpack("<qQ", data[offset : offset + length]))
    assert dynamic.get(30, 0) & 8, "all tables, because all functions are resolved when loading"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX paths")
def test_without_a_compiler_the_message_names_the_remedy(tmp_path):
    if not (cmake := shutil.which("cmake") or shutil.which("cmake", path=str(Path(sys.executable).parent))):
        pytest.skip("needs cmake")
    for name, target in {"cmake": cmake, "make": "/bin/true"}.items():
        (tmp_path / name).symlink_to(target)
    command = [
        cmake,
        "-S",
        ROOT,
        "-B",
        tmp_path / "build",
        f"-DPython_EXECUTABLE={sys.executable}",
        "-G",
        "Unix Makefiles",
    ]
    done = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    message = " ".join(done.stderr.split())
    assert "needs a C++17 compiler, and there is none" in message
    assert "apt install g++" in message and "--only-binary=caransac" in message


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_the_package_is_compiled_once_for_demo_tests_and_docs(tmp_path):
    """Recorded calls replace pip and other tools, so that only the decisions of make are tested."""
    for name in ("Makefile", "pyproject.toml", "CMakeLists.txt", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("lab/pyproject.toml", "requirements/build.txt", "src/caransac/camera.py", "src/native/camera.h"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    tools = tmp_path / ".venv" / "bin"
    tools.mkdir(parents=True)
    build = "mkdir -p build/venv-wheel; touch build/venv-wheel/a.whl"
    record = f'echo "$(basename $0) $*" >> calls\ncase "$*" in *" wheel "*) {build};; esac\n'
    for name in ("python", "caransac", "mkdocs", "chromium"):
        (tools / name).write_text(f"#!/bin/sh\n{record}")
        (tools / name).chmod(0o755)

    def calls_of(target):
        (tmp_path / "calls").write_text("")
        environment = os.environ | {"PATH": f"{tools}:{os.environ['PATH']}"}
        subprocess.run(["make", target], cwd=tmp_path, env=environment, check=True, capture_output=True)
        return (tmp_path / "calls").read_text().splitlines()

    assert sum(" wheel " in call for call in calls_of("demo")) == 1
    tested = calls_of("pytest")
    assert any("[dev]" in call for call in tested) and not any(" wheel " in call for call in tested)
    assert [call.split()[0] for call in calls_of("docs")] == ["mkdocs"]
    assert [call.split()[0] for call in calls_of("demo")] == ["caransac"]
    later = time.time() + 5
    os.utime(tmp_path / "src/native/camera.h", (later, later))
    assert sum(" wheel " in call for call in calls_of("docs")) == 1
