"""Where data comes from: folder, cache and download, checksums, and generated sets."""

import hashlib
import shutil

import numpy as np
import pytest
from scipy.special import expit

from corebayes.experiments import datasets
from corebayes.experiments.catalogue import find_sources, house_model
from corebayes.experiments.datasets import DATASETS, DataUnavailableError, locate


def test_every_set_has_a_source_a_checksum_and_a_licence():
    for name, dataset in DATASETS.items():
        assert len(bytes.fromhex(dataset.sha256)) == 32
        assert dataset.licence and dataset.description
        assert dataset.url is None or dataset.url.startswith("https://")
        assert dataset.url is not None or name == "king_county_sales"


def test_files_of_the_folder_are_the_published_ones(data_folder):
    for name in (*datasets.LOGISTIC, *datasets.POISSON):
        content = locate(name, data_folder).read_bytes()
        assert hashlib.sha256(content).hexdigest() == DATASETS[name].sha256


def test_a_changed_file_is_refused(tmp_path, data_folder):
    content = bytearray((data_folder / "ds1.npz").read_bytes())
    content[1000] ^= 1
    (tmp_path / "ds1.npz").write_bytes(content)
    with pytest.raises(ValueError, match="not the published file"):
        locate("ds1", tmp_path)


def test_a_named_folder_is_never_completed_by_download(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets, "_import_pooch", lambda: pytest.fail("no download was wanted"))
    with pytest.raises(DataUnavailableError, match=r"ds1\.npz is not in .* from https://"):
        locate("ds1", tmp_path)


def test_a_folder_that_is_none_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("COREBAYES_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(NotADirectoryError, match="nowhere"):
        datasets.data_folder()
    monkeypatch.delenv("COREBAYES_DATA")
    assert datasets.data_folder() is None
    assert datasets.data_folder(tmp_path) == tmp_path


class Pooch:
    """Downloads as told."""

    def __init__(self, outcome):
        self.outcome, self.asked = outcome, None

    def os_cache(self, name):
        return name

    def HTTPDownloader(self, timeout):
        return timeout

    def retrieve(self, url, **settings):
        self.asked = {"url": url, **settings}
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


def test_download_asks_for_the_registered_checksum(monkeypatch):
    pooch = Pooch("cached/phishing.npz")
    monkeypatch.setattr(datasets, "_import_pooch", lambda: pooch)
    assert locate("phishing", None).as_posix() == "cached/phishing.npz"
    assert pooch.asked["url"] == DATASETS["phishing"].url
    assert pooch.asked["known_hash"] == f"sha256:{DATASETS['phishing'].sha256}"


def test_without_a_network_the_error_says_what_to_do(monkeypatch):
    monkeypatch.setattr(datasets, "_import_pooch", lambda: Pooch(ConnectionError("no route")))
    with pytest.raises(DataUnavailableError, match=r"--data DIR or COREBAYES_DATA"):
        locate("phishing", None)
    said = []
    with pytest.raises(DataUnavailableError, match="ds1"):
        find_sources(["logistic"], None, said.append)
    assert "synth_lr is generated" in said[0]


def test_king_county_stands_in_for_the_uk(tmp_path, data_folder):
    shutil.copy(data_folder / "king_county_sales.npz", tmp_path)
    said = []
    sources = find_sources(["rbf"], tmp_path, said.append)
    assert sources.housing == "king_county_sales"
    assert sources.files == {"king_county_sales": tmp_path / "king_county_sales.npz"}
    assert "stands in for uk_prices" in said[0]


def test_whitening_keeps_the_intercept(data_folder):
    X, y = datasets.regression(data_folder / "airportdelays.npz")
    assert X.shape == (500, 16) and y.shape == (500,)
    assert np.all(X[:, -1] == 1.0)
    assert np.allclose(X[:, :-1].mean(axis=0), 0.0, atol=1e-10)
    assert np.allclose(np.cov(X[:, :-1], rowvar=False), np.eye(15), atol=1e-6)


def test_synthetic_logistic_rows_follow_the_likelihood():
    X, y = datasets.synthetic_logistic(np.random.default_rng(0), 200_000, (3.0, -1.0, 0.5))
    assert set(y) == {-1.0, 1.0}
    high = expit(X @ [3.0, -1.0, 0.5])
    for low, top in ((0.2, 0.3), (0.6, 0.7)):
        chosen = (high > low) & (high < top)
        assert np.mean(y[chosen] == 1.0) == pytest.approx(high[chosen].mean(), abs=0.015)


def test_synthetic_poisson_rows_follow_the_likelihood():
    X, y = datasets.synthetic_poisson(np.random.default_rng(0), 200_000, (1.0, 0.5))
    rate = np.logaddexp(0.0, X @ [1.0, 0.5])
    for low, top in ((0.3, 0.4), (1.8, 2.0)):
        chosen = (rate > low) & (rate < top)
        assert y[chosen].mean() == pytest.approx(rate[chosen].mean(), rel=0.04)
        assert y[chosen].var() == pytest.approx(rate[chosen].mean(), rel=0.06)


def test_generated_sets_are_like_the_stored_ones(data_folder):
    _, stored = datasets.regression(data_folder / "synth_poiss.npz")
    _, made = datasets.synthetic_poisson(np.random.default_rng(0))
    assert stored.mean() == pytest.approx(made.mean(), rel=0.3)


def test_house_prices_are_stretched_and_have_the_paper_basis(data_folder):
    path = data_folder / "king_county_sales.npz"
    plain = datasets.house_prices(path, 0, num_rows=500, per_scale=3)
    prices = datasets.house_prices(path, 0, num_rows=500, per_scale=3, extent=datasets.EXTENT)
    assert np.array_equal(plain.y, prices.y)
    assert prices.features.shape == (500, 19)
    ratio = np.ptp(prices.where, axis=0) / np.ptp(plain.where, axis=0)
    with np.load(path) as stored:
        full = [np.ptp(stored["latitude"]), np.ptp(stored["longitude"])]
    assert np.allclose(ratio, np.array(datasets.EXTENT) / full)
    model = house_model(prices.y)
    assert model.noise_sd**2 == pytest.approx(np.var(prices.y))
    assert np.asarray(model.prior.mean) == pytest.approx(prices.y.mean())


def test_the_published_table_of_prices_is_read_without_missing_postcodes(tmp_path):
    table = np.array([[51.0, -1.0, 2e5], [np.nan, np.nan, 1e5], [52.0, 0.5, 3e5]])
    np.save(tmp_path / "prices2018.npy", table)
    prices = datasets.house_prices(tmp_path / "prices2018.npy", 0, num_rows=2, per_scale=1)
    assert np.array_equal(prices.where, table[[0, 2], :2])
    assert np.allclose(prices.y, np.log([2e5, 3e5]))
