"""What all tests share: random numbers, a browser, and libraries that use one thread.

Random numbers are seeded by the test's own name, so that tests are independent and repeatable. The browser is Chromium
(`make browser`). Where there is none its tests are skipped, but not where one must be: with CI or CARANSAC_BROWSER set,
its absence is a failure.
"""

import os
import shutil
import zlib

# Before numpy is imported, and for the processes that tests start: on small matrices, threads of matrix libraries do
# nothing but wait for each other, and that took half of the time of the training's tests.
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
        sandbox = [] if os.geteuid() else ["--no-sandbox"]  # Chromium has none for root
        browser = playwright.chromium.launch(executable_path=path, args=sandbox)
        yield browser
        browser.close()
