"""The identity of a build: the version, and a digest of everything that affects results."""

import re

import caransac
from caransac.verification.build_identity import build_identity, digest_of_package


def test_identity_names_version_package_and_kernels():
    pattern = re.escape(caransac.__version__) + r"\+[0-9a-f]{12}\.[0-9a-f]{12}"
    assert re.fullmatch(pattern, build_identity())


def test_changes_that_affect_results_change_the_digest(tmp_path):
    (tmp_path / "weights").mkdir()
    files = {"a.py": b"x = 1\n", "weights/w.npz": b"\0\1", "weights/w.json": b"{}\n"}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    before = digest_of_package(tmp_path)
    (tmp_path / "a.pyc").write_bytes(b"compiled")
    (tmp_path / "a.py").write_bytes(b"x = 1\r\n")
    assert digest_of_package(tmp_path) == before
    for name, content in files.items():
        (tmp_path / name).write_bytes(content + b"2")
        assert digest_of_package(tmp_path) != before
        (tmp_path / name).write_bytes(content)
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    assert digest_of_package(tmp_path) != before
