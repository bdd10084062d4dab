"""Fixtures: a database and files of hloc that a test may change."""

import shutil

import pytest
from databases import make_database, some_pairs
from hloc_files import make_files


@pytest.fixture(scope="session")
def matched(tmp_path_factory):
    return make_database(tmp_path_factory.mktemp("colmap") / "matched.db", some_pairs(6))


@pytest.fixture
def database(matched, tmp_path):
    """A database of six pairs after feature matching."""
    return shutil.copyfile(matched, tmp_path / "database.db")


@pytest.fixture
def files(tmp_path):
    """A folder with five pairs in hloc's format."""
    return make_files(tmp_path)
