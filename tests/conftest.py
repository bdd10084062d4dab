"""What all tests share; lab/tests has the same fixtures."""

from fixtures import browser, rng  # noqa: F401  # pytest finds fixtures here
