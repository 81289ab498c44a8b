"""What the comparisons with posteriordb and with peers stand on: loaders, exact references, the
same model in two libraries, tables that go on where they end."""

from __future__ import annotations

import functools
import importlib
import json
import zipfile

import numpy as np
import pytest
from benchmarks.posteriordb import page
from benchmarks.posteriordb.catalogue import catalogue
from benchmarks.posteriordb.checkout import data_of, reference_of
from benchmarks.posteriordb.exact import exact_draws
from benchmarks.posteriordb.regression import Regression, Scale, Term
from benchmarks.rowwise import Table, commits, run_alone
from benchmarks.summaries import apart, summaries, summary
from scipy.special import gammaln


def zipped(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(path.name.removesuffix(".zip"), json.dumps(value))


@pytest.mark.parametrize(
    ("data", "draws"),
    [
        ("data", "draws"),
        ("posterior_database/data/data", "posterior_database/reference_posteriors/draws/draws"),
    ],
)
def test_either_layout_is_read(tmp_path, data, draws):
    zipped(tmp_path / data / "kidiq.json.zip", {"N": 2, "mom_iq": [1.5, 2.5]})
    zipped(tmp_path / draws / "a-b.json.zip", [{"x": [1.0, 2.0]}, {"x": [3.0, 4.0]}])
    assert data_of(tmp_path, "kidiq") == {"N": 2, "mom_iq": [1.5, 2.5]}
    found = reference_of(tmp_path, "a-b")
    assert found is not None and found["x"].tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert data_of(tmp_path, "wells") is None and reference_of(tmp_path, "kidiq-x") is None


def linear(num_rows: int = 60, **options) -> Regression:
    rng = np.random.default_rng(3)
    X = np.column_stack([np.ones(num_rows), 5.0 + 2.0 * rng.normal(size=num_rows)])
    y = X @ [1.0, -0.7] + 1.3 * rng.normal(size=num_rows)
    return Regression(X=X, y=y, names=("a", "b"), **options)


def test_exact_draws_have_the_known_moments():
    """Flat priors: σ² is inverse gamma, β is t around least squares."""
    model = linear(sigma=Scale("flat"))
    found = exact_draws(model, 0)
    solved, (rest,), *_ = np.linalg.lstsq(model.X, model.y)
    # p(σ) ∝ σ^{−(N − p)} e^{−rest / 2σ²}
    shape = (len(model.y) - 3) / 2.0
    sigma = np.exp(gammaln(shape - 0.5) - gammaln(shape)) * np.sqrt(rest / 2.0)
    sd = np.sqrt(rest / 2.0 / (shape - 1.0) - sigma**2)
    assert abs(found["sigma"].mean() - sigma) < 0.05 * sd
    assert found["sigma"].std() / sd == pytest.approx(1.0, abs=0.04)
    covariance = np.linalg.inv(model.X.T @ model.X) * rest / 2.0 / (shape - 1.0)
    for k, name in enumerate(model.names):
        width = np.sqrt(covariance[k, k])
        assert abs(found[name].mean() - solved[k]) < 0.05 * width
        assert found[name].std() / width == pytest.approx(1.0, abs=0.04)


@pytest.mark.parametrize(
    "kind",
    [
        "flat",
        "normal",
        "binary",
        pytest.param("cauchy", marks=pytest.mark.slow),
        pytest.param("t3", marks=pytest.mark.slow),
    ],
)
def test_a_regression_is_the_same_in_both_libraries(kind):
    jax = importlib.import_module("jax")
    utilities = importlib.import_module("numpyro.infer.util")
    model = linear(sigma=None if kind == "binary" else Scale(kind, 2.5), beta_sd=(3.0, 0.5))
    if kind == "binary":
        model = Regression(
            X=model.X, y=(model.y > -2.0) + 0.0, names=model.names, beta_sd=(3.0, 0.5)
        )
    ours, rows = model.in_corebayes()
    bound = ours.bind(rows)
    block = rows.take(np.arange(rows.num_rows))
    places = np.array([[0.5, -0.6, 0.1], [1.5, -0.9, 0.6], [-1.0, 0.2, 0.9]])[:, : bound.dim]
    expected = bound.sum_potentials(places, block) + bound.log_prior(places)
    named = [{"coefficients": place[:2], "sigma": place[-1]} for place in places]
    if kind == "binary":
        named = [{"coefficients": place} for place in places]
    with jax.enable_x64(True):
        energy = functools.partial(utilities.potential_energy, model.in_numpyro(), (), {})
        found = [-float(jax.jit(energy)(values)) for values in named]
    # A prior that is wide in one and flat in the other differs by a constant.
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-5)


def test_sizes_count_what_rows_touch():
    groups = np.repeat(np.arange(20), 60)
    term = Term("alpha", "g", groups, Scale("normal"))
    both = Term("beta", "g", groups, Scale("normal"), 1)
    rows = linear(1200, sigma=Scale("flat"))
    options = {"X": rows.X, "y": rows.y, "names": rows.names, "sigma": rows.sigma}
    # p = 3: twenty groups of 1 + 1 + 3, and 9 + 1.
    assert Regression(**options, terms=(term,)).size == 20 * 5 + 10
    # q = 2: 2 + 3 + 6 each.
    assert Regression(**options, terms=(term, both)).size == 20 * 11 + 10
    assert linear(sigma=Scale("flat")).size is None


def test_names_are_those_of_posteriordb():
    known = catalogue()
    assert len(known) > 45 and known["nes1976-nes"][0] == "nes1976"
    data = {"kid_score": [1, 2, 5], "mom_hs": [0, 1, 1], "mom_iq": [90.0, 100.0, 110.0], "N": 3}
    model = known["kidiq-kidscore_interaction_c2"][1](data)
    assert model.X[1].tolist() == [1.0, 0.5, 0.0, 0.0] and model.names[3] == "beta[4]"


def test_errors_of_summaries_are_those_of_repeated_runs():
    """Of the mean and the sd of autocorrelated draws, against what runs differ by."""
    rng = np.random.default_rng(0)
    values, errors = [], []
    for _ in range(60):
        noise = rng.normal(size=(4, 700))
        chain = np.zeros((4, 700))
        for k in range(1, 700):
            chain[:, k] = 0.6 * chain[:, k - 1] + 0.8 * noise[:, k]
        found = summary(chain[:, 100:])
        values.append(found["values"][:2])
        errors.append(found["errors"][:2])
    ratio = np.std(values, axis=0) / np.mean(errors, axis=0)
    assert np.all((ratio > 0.75) & (ratio < 1.3))


def test_differences_are_in_standard_deviations():
    rng = np.random.default_rng(1)
    draws = {"a": 3.0 * rng.normal(size=(4, 2000)), "b": rng.normal(size=(4, 2000))}
    other = {"a": draws["a"] + 1.5, "b": 2.0 * draws["b"]}
    found = apart(summaries(other), summaries(draws), ["a", "b", "not there"])
    assert found["mean"] == pytest.approx(0.5, abs=0.01) and found["worst"] == "a"
    assert found["sd"] == pytest.approx(2.0) and found["errors"] > 10.0


def test_a_table_goes_on_where_it_ended(tmp_path):
    path = tmp_path / "results" / "rows.jsonl"
    Table(path).add("one", {"seconds": 1.0})
    again = Table(path)
    assert "one" in again and "two" not in again
    again.add("one", {"seconds": 2.0})
    row = Table(path).rows["one"]
    assert row["seconds"] == 2.0 and row["load"] >= 0.0
    assert commits([row, row, {"commit": ""}]) == f"{row['commit']} (2), unknown (1)"


def test_a_process_that_fails_says_how():
    found = run_alone("benchmarks.peers.measure", ["nowhere", "coreset"], 60.0)
    assert "nowhere" in found["failed"]


def test_the_verdict_finds_what_is_wrong():
    def row(mean: float, certified: bool, seconds: float, noise: float = 0.02):
        ours = {"certified": certified, "build": seconds, "sample": 0.5, "kl": [0.001, 0.0]}
        shared = {"mean": mean, "noise": noise}
        return {"coreset": ours, "shared": shared, "nuts": {"seconds": 10.0}}

    rows = {
        "good": row(0.05, True, 1.0),
        "wrong": row(0.2, True, 1.0),
        "slow": row(0.2, False, 30),
        "noisy": row(0.3, True, 1.0, noise=0.35),
    }
    words = page.verdict(rows)
    assert "4 posteriors, 3 certified" in words
    assert "more than 0.1 standard deviations: wrong (not known" in words
    assert "few effective draws: noisy)" in words and "2 times: slow." in words
