"""Adapted models in everything that takes a model."""

from __future__ import annotations

import functools
import threading
from typing import Any

import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import corebayes as cb
from corebayes.adapters.numpyro import adapter as numpyro_adapter
from corebayes.report.summary import summarise
from corebayes.rows import open_rows
from tests.adapters import numpyro_models, pymc_models
from tests.adapters.rows import make_rows
from tests.coresets import weighted
from tests.later import arviz_base
from tests.later import pymc as pm

pytestmark = pytest.mark.filterwarnings("ignore:PyTensor could not link")


@functools.cache
def adapted(library: str, name: str, num_rows: int) -> Any:
    if library == "numpyro":
        cases = {case[0]: case[1:] for case in numpyro_models.CASES}
        return numpyro_models.adapt(*cases[name], make_rows(num_rows))
    return pymc_models.adapt(dict(pymc_models.CASES)[name], make_rows(num_rows))


@functools.cache
def coreset(library: str) -> Any:
    model, data, *_ = adapted(library, "linear", 60)
    return weighted(model, data, np.arange(0, 60, 3), 3.0, provenance={"target_name": "y"})


@functools.cache
def trace(library: str) -> Any:
    return cb.sample(coreset(library), draws=100, chains=2, tune=200, log_likelihood=True)


@pytest.mark.slow
def test_draws_have_the_models_names_dimensions_and_labels():
    posterior = trace("pymc").posterior
    assert set(posterior.data_vars) == {"beta", "sigma"}
    assert posterior["beta"].dims == ("chain", "draw", "feature")
    assert list(posterior["feature"].values) == ["a", "b", "c"]
    assert posterior["beta"].shape == (2, 100, 3) and np.all(posterior["sigma"] > 0.0)
    names = [line["name"] for line in summarise(posterior)]
    assert names == ["beta[a]", "beta[b]", "beta[c]", "sigma"]
    assert list(trace("pymc")["coreset"]["row_id"].values[:3]) == [0, 3, 6]
    # NumPyro gives its axes no names.
    assert trace("numpyro").posterior["beta"].dims == ("chain", "draw", "beta_dim_0")


@pytest.mark.slow
@pytest.mark.parametrize("library", ["numpyro", "pymc"])
def test_log_likelihoods_and_log_densities_agree(library):
    ours, drawn = coreset(library), trace(library)
    log_likelihood = drawn.coreset_log_likelihood["y"]
    assert log_likelihood.dims == ("chain", "draw", "row")
    beta, sigma = drawn.posterior["beta"].values, drawn.posterior["sigma"].values[..., None]
    rows = {name: values[::3] for name, values in make_rows(60).items()}
    residual = (rows["real"] - beta @ rows["X"].T) / sigma
    expected = -0.5 * residual**2 - np.log(sigma) - 0.5 * np.log(2.0 * np.pi)
    np.testing.assert_allclose(log_likelihood.values, expected, rtol=1e-9)
    # lp = log π_0 + Σ w log p, the prior on log σ: log p(σ) + log σ.
    theta = np.concatenate([beta, np.log(sigma)], axis=-1).reshape(-1, 4)
    prior = ours.model.log_prior(theta).reshape(2, 100)
    lp = prior + (expected * ours.weights).sum(axis=-1)
    np.testing.assert_allclose(drawn.sample_stats["lp"].values, lp, rtol=1e-9)


def test_with_arviz_1_the_same_groups_come_as_a_tree(monkeypatch):
    data = open_rows((make_rows(60)["X"], make_rows(60)["real"]))
    ours = weighted(
        cb.LinearRegression(noise_sd=1.0, prior=cb.Normal()).bind(data),
        data,
        np.arange(0, 60, 3),
        3.0,
        provenance={"target_name": "y"},
    )
    how = {"draws": 100, "chains": 2, "tune": 200, "log_likelihood": True}
    plain = cb.sample(ours, **how)
    # ArviZ 1 has no InferenceData; its data are trees, which arviz_base and arviz_stats take.
    monkeypatch.delattr("arviz.InferenceData")
    tree = cb.sample(ours, **how)
    assert type(tree).__name__ == "DataTree"
    groups = {"posterior", "sample_stats", "coreset", "coreset_log_likelihood", "model"}
    assert set(tree.children) == groups
    assert arviz_base.extract(tree, var_names=["beta"]).shape == (3, 200)
    assert tree["coreset"].attrs["size"] == 20
    np.testing.assert_array_equal(tree.posterior["beta"], plain.posterior["beta"])


def test_jax_stays_as_the_user_set_it():
    import jax

    before = jax.config.jax_enable_x64
    for library, name in (("numpyro", "linear"), ("pymc", "linear")):
        model, data, *_ = adapted(library, name, 60)
        assert (
            model.potentials(np.zeros((2, model.dim)), data.take(np.arange(5))).dtype == np.float64
        )
    assert jax.config.jax_enable_x64 == before and not before
    assert jax.numpy.zeros(1).dtype == np.float32


def test_a_growing_coreset_compiles_nothing_new():
    model, data, *_ = adapted("numpyro", "hierarchical", 60)
    runs: list[int] = []
    kernel, theta = model.function, np.zeros(model.dim)

    def counted(*args: Any, **kwargs: Any) -> Any:
        runs.append(len(args[0]))
        return kernel(*args, **kwargs)

    fresh = numpyro_adapter.NumpyroModel(
        counted, model.arguments, model.sites, model.fields, model.template
    )
    for size in range(1, 60):
        rows = data.take(np.arange(size))
        fresh.gradient(theta, rows, np.ones(size))
        fresh.potentials(np.zeros((7, model.dim)), rows)
    # On one row for the prior, which needs none.
    assert set(runs) == {1, 64} and len(runs) <= 8


def test_what_is_remembered_is_remembered_in_every_thread():
    """A sampler of another language calls from what Python takes for a new thread each time."""
    model, data, *_ = adapted("numpyro", "hierarchical", 60)
    rows, weights = data.take(np.arange(40)), np.full(40, 2.0)
    theta = np.linspace(-0.5, 0.5, model.dim)
    expected = model.sum_potentials(np.stack([theta, theta]), rows, weights)[0]
    parts: list[Any] = []
    kernel = type(model).part

    class Counted(type(model)):
        def part(self, block: Any, rows: Any) -> Any:
            parts.append(block)
            return kernel(self, block, rows)

    counted = Counted(model.function, model.arguments, model.sites, model.fields, model.template)
    values: list[float] = []

    def ask() -> None:
        values.append(counted.sum_potentials(theta[None], rows, weights)[0])
        counted.gradient(theta + 0.1 * len(values), rows, weights)

    for _ in range(4):
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
    assert len(parts) == 1
    np.testing.assert_allclose(values, expected, rtol=1e-12)


def test_the_prior_comes_with_the_rows():
    model, data, *_ = adapted("numpyro", "hierarchical", 60)
    rows, other = data.take(np.arange(5)), np.full(model.dim, 0.3)
    theta = np.linspace(-0.5, 0.5, model.dim)
    alone = model.prior_value_gradient(theta)
    model.gradient(theta, rows, np.ones(5))
    assert model.log_prior(theta[None])[0] == pytest.approx(alone[0], rel=1e-13)
    np.testing.assert_allclose(model.log_prior_gradient(theta), alone[1], rtol=1e-12)
    assert model.log_prior(other[None])[0] == pytest.approx(model.prior_value_gradient(other)[0])
    # Weights that change in place are another question.
    weights = np.ones(5)
    before = model.gradient(theta, rows, weights)
    weights *= 2.0
    np.testing.assert_allclose(model.gradient(theta, rows, weights), 2.0 * before, rtol=1e-12)


def test_a_model_needs_the_data_that_came_with_it():
    model, data, *_ = adapted("numpyro", "hierarchical", 60)
    other = adapted("numpyro", "logistic", 60).data
    with pytest.raises(ValueError, match="takes 'group' with the shape"):
        cb.build(model, other, size=5)
    assert model.bind(data) is model


def test_files_hold_the_rows_and_not_the_model(tmp_path):
    ours = coreset("numpyro")
    ours.save(tmp_path / "coreset.parquet")
    with pytest.raises(ValueError, match=r"a NumpyroModel, whose functions .*model="):
        cb.load(tmp_path / "coreset.parquet")
    loaded = cb.load(tmp_path / "coreset.parquet", model=ours.model)
    theta = np.full((1, ours.model.dim), 0.3)
    np.testing.assert_array_equal(
        loaded.model.sum_potentials(theta, loaded.rows, loaded.weights),
        ours.model.sum_potentials(theta, ours.rows, ours.weights),
    )


@pytest.mark.slow
def test_a_prior_with_a_kink_is_certified():
    rows = make_rows(2000)
    with pm.Model() as sparse:
        beta = pm.Laplace("beta", 0.0, 1.0, shape=3)
        pm.Bernoulli("y", logit_p=rows["X"] @ beta, observed=rows["binary"])
    model, data = cb.from_pymc(sparse)
    certificate = cb.certify(cb.build(model, data, size=40, seed=0), data)
    assert certificate.certified, str(certificate)


@pytest.mark.slow
def test_a_hierarchy_whose_prior_has_no_mode_is_certified():
    rows = make_rows(4000)

    def model(X: Any, group: Any, y: Any) -> None:
        beta = numpyro.sample("beta", dist.Normal(0.0, 1.0).expand([3]).to_event(1))
        scale = numpyro.sample("scale", dist.HalfNormal(1.0))
        with numpyro.plate("groups", 4):
            level = numpyro.sample("level", dist.Normal(0.0, scale))
        with numpyro.plate("rows", X.shape[0]):
            numpyro.sample("y", dist.Bernoulli(logits=X @ beta + level[group]), obs=y)

    centred, data = cb.from_numpyro(model, rows["X"], rows["group"], rows["grouped"])
    certificate = cb.certify(cb.build(centred, data, size=80, seed=0), data)
    assert certificate.certified, str(certificate)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("library", "name"), [("numpyro", "linear"), ("pymc", "logistic"), ("pymc", "linear")]
)
def test_build_and_certify(library, name):
    model, data, *_ = adapted(library, name, 2000)
    built = cb.build(model, data, size=40, seed=0)
    assert built.size <= 40
    certificate = cb.certify(built, data, seed=1)
    assert certificate.certified, str(certificate)
