"""A Dask cluster behind certificates: the same coreset through it, and nobody in without them."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest

import corebayes as cb
from corebayes.cli import app as cli
from corebayes.scan.dask import certificates
from tests.coresets import logistic

# Starting and closing a cluster leaves sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


def make_certificates(folder):
    """A key, its self-signed certificate, and that as the authority."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make certificates with")
    folder.mkdir()
    line = "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=corebayes"
    files = ["-keyout", folder / "key.pem", "-out", folder / "cert.pem"]
    subprocess.run([*line.split(), *files], check=True, capture_output=True)
    shutil.copy(folder / "cert.pem", folder / "ca.pem")
    return folder


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    return make_certificates(tmp_path_factory.mktemp("tls") / "keys")


@pytest.fixture(scope="module")
def address(keys):
    """A scheduler on the loopback and one worker process."""
    distributed = pytest.importorskip("distributed")
    pair = {
        f"tls_{role}_{part}": str(keys / f"{part}.pem")
        for role in ("scheduler", "worker", "client")
        for part in ("cert", "key")
    }
    security = distributed.Security(
        tls_ca_file=str(keys / "ca.pem"), require_encryption=True, **pair
    )
    with distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        protocol="tls://",
        host="127.0.0.1",
        security=security,
        dashboard_address=":0",
        silence_logs=50,
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, data = logistic()
    block = data.take(np.arange(data.num_rows))
    np.savez("rows.npz", X=block.X, y=block.y)
    return block.X, block.y


@pytest.fixture
def call(capsys):
    def call(line):
        with pytest.raises(SystemExit) as exit_:
            cli.run(line.split())
        return exit_.value.code, capsys.readouterr().err

    return call


BUILD = "build rows.npz --model logistic --size 4 --out c.parquet"


def test_a_build_goes_through_tls_to_the_same_bits(address, keys, rows, call):
    assert address.startswith("tls://127.0.0.1")
    expected = cb.build(cb.LogisticRegression(), rows, size=4)
    executor = cb.dask(address, security=certificates(keys))
    with executor.client:
        ours = cb.build(cb.LogisticRegression(), rows, size=4, executor=executor)
    assert np.array_equal(ours.weights, expected.weights)
    assert call(f"{BUILD} --dask {address} --tls {keys}") == (0, "")
    assert np.array_equal(cb.load("c.parquet").weights, expected.weights)


def test_without_certificates_it_is_refused_in_one_sentence(address, rows, call):
    code, err = call(f"{BUILD} --dask {address}")
    assert code == 2 and err.count("\n") == 1
    assert f"{address} asks for certificates" in err and "--tls" in err


@pytest.mark.parametrize("way", ["plain", "other"])
def test_the_cluster_lets_nobody_else_in(address, rows, call, tmp_path, monkeypatch, way):
    import dask.config

    options = f"--dask {address} --tls {make_certificates(tmp_path / 'other')}"
    if way == "plain":
        options = f"--dask {address.replace('tls:', 'tcp:')}"
    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
        code, err = call(f"{BUILD} {options}")
    assert code == 2 and "no Dask scheduler answers at t" in err, err
    assert not (tmp_path / "c.parquet").exists()


def test_certificates_are_only_for_encryption(keys, rows, call, tmp_path):
    distributed = pytest.importorskip("distributed")
    with pytest.raises(ValueError, match=r"tcp://127.0.0.1:1 is not encrypted"):
        cb.dask("tcp://127.0.0.1:1", security=certificates(keys))
    with pytest.raises(TypeError, match=r"distributed.Security, got str"):
        cb.dask("tls://127.0.0.1:1", security="ca.pem")
    with pytest.raises(ValueError, match="a client has its own"):
        cb.dask(object(), security=distributed.Security())
    code, err = call(f"{BUILD} --tls {keys}")
    assert code == 2 and "give both" in err
    code, err = call(f"{BUILD} --dask tls://127.0.0.1:1 --tls {tmp_path}")
    assert code == 2 and f"there is no {tmp_path}/ca.pem" in err
