"""Verification on a real Dask cluster of two worker processes, one of which crashes."""

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import dask
import pytest
from databases import make_database, read_geometries, some_pairs
from distributed import Client, LocalCluster, Security

import caransac
from caransac.cli import main
from caransac.verification import ColmapDatabase, VerificationOptions, open_executor, verify
from caransac.verification.build_identity import build_identity
from caransac.verification.cluster import BUILD, check_versions

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster:
        yield cluster


def test_a_cluster_that_loses_a_worker_gives_the_same_database(cluster, tmp_path):
    here = make_database(tmp_path / "here.db", some_pairs(40, num_points=150))
    there = shutil.copyfile(here, tmp_path / "there.db")
    assert main(["verify", str(here), "--workers", "1"]) == 0

    source = ColmapDatabase(there)
    source.batch_size = 2
    with Client(cluster.scheduler_address, set_as_default=False) as client:
        workers = list(client.run(os.getpid).values())
    assert len(set(workers)) == 2 and os.getpid() not in workers
    victims, written = [workers[0]], []

    def on_batch(found):
        written.append(len(found))
        if victims:
            os.kill(victims.pop(), signal.SIGKILL)

    with open_executor(scheduler=cluster.scheduler_address) as (executor, in_flight):
        verify(source, executor, VerificationOptions(), in_flight=in_flight, on_batch=on_batch)
    source.close()
    assert not victims and len(written) == 20
    assert read_geometries(there) == read_geometries(here)


def test_the_command_runs_on_a_cluster(cluster, tmp_path, capsys):
    here = make_database(tmp_path / "here.db", some_pairs(3, num_points=150))
    there = shutil.copyfile(here, tmp_path / "there.db")
    assert main(["verify", str(here)]) == 0
    assert main(["verify", str(there), "--scheduler", cluster.scheduler_address]) == 0
    assert "Verified 3 pairs" in capsys.readouterr().out
    assert read_geometries(there) == read_geometries(here)


def test_a_cluster_that_vanishes_is_an_error(tmp_path):
    path = make_database(tmp_path / "database.db", some_pairs(30, num_points=150))
    source = ColmapDatabase(path)
    source.batch_size = 1
    cluster = LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0")
    with (
        pytest.raises(OSError, match="was lost: start it again, then continue"),
        open_executor(scheduler=cluster.scheduler_address) as (executor, in_flight),
    ):
        verify(source, executor, VerificationOptions(), in_flight=in_flight, on_batch=lambda _: cluster.close())
    source.close()
    assert 0 < len(read_geometries(path)) < 30


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A self-signed certificate and its key."""
    folder = tmp_path_factory.mktemp("tls")
    paths = folder / "cert.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=caransac"]
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    subprocess.run([*command, "-out", paths[0], "-keyout", paths[1]], check=True, capture_output=True)
    return paths


def test_a_cluster_with_certificates_accepts_only_clients_with_one(certificate, tmp_path, capsys):
    cert, key = map(str, certificate)
    path = make_database(tmp_path / "database.db", some_pairs(2, num_points=150))
    names = (f"{role}_{part}" for role in ("client", "worker", "scheduler") for part in ("cert", "key"))
    files = {f"tls_{name}": cert if name.endswith("cert") else key for name in names}
    security = Security(require_encryption=True, tls_ca_file=cert, **files)
    here = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with LocalCluster(**here, host="127.0.0.1", protocol="tls://", security=security) as cluster:
        command = ["verify", str(path), "--scheduler", cluster.scheduler_address]
        assert cluster.scheduler_address.startswith("tls://127.0.0.1")
        assert main(command) == 2
        assert "with certificates in Dask's settings" in capsys.readouterr().err
        told = {"ca-file": cert, "client.cert": cert, "client.key": key}
        with dask.config.set({f"distributed.comm.tls.{name}": value for name, value in told.items()}):
            assert main(command) == 0
    assert len(read_geometries(path)) == 2


def test_workers_of_other_versions_are_refused(cluster, tmp_path, capsys, monkeypatch):
    path = make_database(tmp_path / "database.db", some_pairs(2, num_points=150))
    monkeypatch.setattr(caransac, "__version__", "9.9")
    assert main(["verify", str(path), "--scheduler", cluster.scheduler_address]) == 2
    assert re.search(r"the worker at tcp://.* has caransac \d.*, but this process has 9\.9", capsys.readouterr().err)
    # Simulate a worker that joins later.
    monkeypatch.setattr("caransac.verification.cluster.check_versions", lambda *_: None)
    assert main(["verify", str(path), "--scheduler", cluster.scheduler_address]) == 2
    assert "a worker has caransac" in capsys.readouterr().err
    assert read_geometries(path) == []


def test_the_guide_starts_no_open_cluster():
    text = (Path(__file__).parents[2] / "docs" / "colmap.md").read_text()
    started = re.findall(r"^ +(dask (?:scheduler|worker) .*)$", text, re.MULTILINE)
    assert len(started) == 4
    for command in started:
        assert "--host 127.0.0.1" in command or "--tls-ca-file" in command, command
    assert "can run any code there" in text


def test_workers_without_caransac_are_refused():
    with pytest.raises(ImportError, match="the worker at tcp://there:1 has no caransac: install version"):
        check_versions({"tcp://there:1": ModuleNotFoundError("caransac")}, "1.0")


def test_workers_of_another_build_are_refused():
    check_versions({"tcp://there:1": build_identity()}, build_identity())
    with pytest.raises(OSError, match=r"the worker at tcp://there:1 has caransac .*: they must be the same"):
        check_versions({"tcp://there:1": build_identity()[:-1] + "x"}, build_identity())
    assert eval(BUILD) == build_identity()


@pytest.mark.parametrize("address", ["", "host", "tcp://host", "bogus://host:1"])
def test_invalid_addresses_are_refused_at_once(address):
    with pytest.raises(ValueError, match="scheduler must be an address like tcp://host:8786"):
        open_executor(1, address).__enter__()
