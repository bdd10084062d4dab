"""The documentation builds without warnings, covers all public names, can be searched, and fetches nothing."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import caransac

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def headings(page):
    return set(re.findall(r'<h\d id="([^"]+)"', page.read_text()))


def test_every_guide_is_a_page(site):
    linked = set(re.findall(r'href="([^"#/]+)\.html', (site / "index.html").read_text()))
    assert {path.stem for path in (ROOT / "docs").glob("*.md")} <= linked


def test_the_guide_and_the_lab_are_two_parts(site):
    text = (site / "index.html").read_text()
    parts = [text.index(f"\n    {part}\n") for part in ("Guide", "Lab", "Reference")]
    assert parts == sorted(parts)
    assert parts[0] < text.index('href="paper.html"') < parts[1] < text.index('href="training.html"') < parts[2]


def test_the_files_that_contributors_look_for_exist():
    roots = [ROOT, ROOT / "src/caransac", ROOT / "src/native", ROOT / "lab/src/caransac_lab"]
    for name in ("CONTRIBUTING.md", "docs/training.md", "docs/benchmark.md", "docs/algorithm.md", "docs/formats.md"):
        named = re.findall(
            r"`((?:src|tests|lab|caransac_lab|training|bench|learned|robust|verification)/[\w/]+\.\w+)",
            (ROOT / name).read_text(),
        )
        assert not [path for path in named if not any((root / path).exists() for root in (*roots, ROOT / "lab/src"))], (
            name
        )


def test_everything_public_is_documented(site):
    documented = headings(site / "reference" / "caransac.html")
    assert {f"caransac.{name}" for name in caransac.__all__ if name != "__version__"} <= documented
    assert "caransac.results.Result" in documented
    for name, calls in {
        "opencv": ("findEssentialMat", "findFundamentalMat", "findHomography"),
        "poselib": ("estimate_relative_pose", "estimate_fundamental", "estimate_homography"),
        "pycolmap": ("estimate_essential_matrix", "estimate_two_view_geometry", "verify_matches"),
    }.items():
        documented = headings(site / "reference" / f"integrations.{name}.html")
        assert {f"caransac.integrations.{name}.{call}" for call in calls} <= documented


def test_the_reference_begins_with_the_calls(site):
    listed = re.findall(r'<h2 id="caransac\.(\w+)"', (site / "reference" / "caransac.html").read_text())
    calls = [name for name in caransac.__all__ if name.startswith("estimate")]
    assert sorted(listed[: len(calls)]) == sorted(calls)
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize("page", ["index.html", "reference/caransac.html"])
def test_the_search_works_from_the_disk(site, browser, page):
    opened = browser.new_page()
    requests, errors = [], []
    opened.on("request", lambda request: requests.append(request.url))
    opened.on("pageerror", lambda error: errors.append(error))
    opened.goto((site / page).as_uri())
    field = opened.get_by_role("textbox", name="Search")
    field.click()
    field.press_sequentially("cheirality")
    found = opened.locator(".md-search-result__link").first
    found.wait_for()
    assert "algorithm.html" in found.get_attribute("href")
    field.fill("")
    field.press_sequentially("qwertz")
    opened.get_by_text("No matching documents").wait_for()
    assert not errors
    assert all(url.startswith("file:") for url in requests)
    opened.close()


def test_nothing_is_fetched(site):
    pages = [*site.rglob("*.html")]
    assert len(pages) > 10
    for page in pages:
        assert not re.findall(r'<(?:script|img|link|iframe)[^>]*(?:src|href)="(?:https?:)?//', page.read_text()), page
