"""Fixtures: photographs of a plane with a database of verified pairs."""

import pytest
from photographed import Photographed


@pytest.fixture(scope="session")
def plane():
    return Photographed()


@pytest.fixture
def photos(plane, tmp_path):
    return plane.write_photographs(tmp_path / "photos")


@pytest.fixture
def verified(plane, tmp_path):
    return plane.write_database(tmp_path / "verified.db")
