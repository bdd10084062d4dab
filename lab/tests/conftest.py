"""Fixtures of all tests, from tests/fixtures.py."""

from fixtures import browser, rng  # noqa: F401  # pytest finds fixtures here
