"""Fixtures of all tests: random numbers and a browser. Limits numerical libraries to one thread.

The name of a test is the seed of its random numbers, so that tests are independent and repeatable. The browser is
Chromium (`make browser`). Without it, its tests are skipped; if CI or CARANSAC_BROWSER is set, they fail.
"""

import os
import shutil
import zlib

# Set before numpy is imported, also for processes that tests start. With small matrices, several threads mostly wait
# for each other; this took half of the time of the training tests.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

import numpy as np
import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(request.node.name.encode()))


@pytest.fixture(scope="module")
def browser():
    path = os.environ.get("CARANSAC_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        message = "NOT TESTED IN A BROWSER: there is no Chromium; `make browser` installs it on Debian as root"
        pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        sandbox = [] if os.geteuid() else ["--no-sandbox"]  # Chromium has no sandbox for root
        browser = playwright.chromium.launch(executable_path=path, args=sandbox)
        yield browser
        browser.close()
