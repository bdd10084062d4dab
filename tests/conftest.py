"""Fixtures of all tests; lab/tests has the same ones."""

from fixtures import browser, rng  # noqa: F401  # pytest finds fixtures here
