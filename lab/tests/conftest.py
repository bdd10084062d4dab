"""What all tests share; tests/fixtures.py has it."""

from fixtures import browser, rng  # noqa: F401  # pytest finds fixtures here
