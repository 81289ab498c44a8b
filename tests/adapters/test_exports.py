"""Coresets handed over to other libraries have the same log density there."""

from __future__ import annotations

import csv
import functools
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pyarrow.parquet
import pytest
from numpyro.infer.util import potential_energy

import corebayes as cb
from corebayes.adapters.exports.density_check import log_density
from corebayes.adapters.exports.numpyro import to_numpyro
from corebayes.adapters.exports.pymc import to_pymc
from corebayes.adapters.exports.tables import to_columns, to_csv, to_parquet
from corebayes.rows import open_rows
from tests.adapters import numpyro_models, pymc_models
from tests.adapters.rows import make_rows
from tests.coresets import weighted
from tests.later import pymc as pm

# It says so once where pip installed it; nothing here uses its C code.
pytestmark = pytest.mark.filterwarnings("ignore:PyTensor could not link")

ROWS = [2, 3, 11, 17, 20]
WEIGHTS = [1.5, 0.0, 4.0, 0.25, 7.0]

# PyMC models that take long to compile and say no more than others.
SLOWER = ("hierarchical", "vector-valued")
HEAVY = [pytest.param(name, marks=pytest.mark.slow) for name in ("constrained", "mixture")]

PRIOR = cb.Normal([0.1, -0.2, 0.3], [[2.0, 0.5, 0.0], [0.5, 1.0, 0.1], [0.0, 0.1, 3.0]])
REGRESSIONS = {
    "logistic": (cb.LogisticRegression(prior=PRIOR), "binary"),
    "poisson-log": (cb.PoissonRegression(prior=PRIOR, link="log"), "count"),
    "poisson-softplus": (cb.PoissonRegression(prior=PRIOR, link="softplus"), "count"),
    "linear": (cb.LinearRegression(prior=PRIOR, noise_sd=0.7), "real"),
    "student-t": (cb.StudentTRegression(prior=PRIOR, df=3.0, scale=0.6), "heavy"),
    "negative-binomial": (cb.NegativeBinomialRegression(prior=PRIOR, dispersion=0.4), "count"),
}


@functools.cache
def regression(name: str) -> Any:
    model, target = REGRESSIONS[name]
    rows = make_rows(23)
    data = open_rows((rows["X"], rows[target]))
    return weighted(model.bind(data), data, ROWS, WEIGHTS)


@functools.cache
def numpyro_coreset(name: str) -> Any:
    cases = {case[0]: case[1:] for case in numpyro_models.CASES}
    model, data, *_ = numpyro_models.adapt(*cases[name], make_rows(23))
    return weighted(model, data, ROWS, WEIGHTS)


@functools.cache
def pymc_coreset(name: str) -> Any:
    model, data, *_ = pymc_models.adapt(dict(pymc_models.CASES)[name], make_rows(23))
    return weighted(model, data, ROWS, WEIGHTS)


def points(dim: int) -> Any:
    return np.random.default_rng(11).normal(size=(4, dim))


def same_up_to_a_constant(first: Any, second: Any) -> None:
    difference = np.asarray(first) - np.asarray(second)
    np.testing.assert_allclose(difference, difference[0], atol=1e-8)


def numpyro_density(model: Any, values: Any) -> float:
    with jax.enable_x64(True):
        values = {name: jnp.asarray(value) for name, value in values.items()}
        return -float(jax.jit(lambda v: potential_energy(model, (), {}, v))(values))


NOWHERE = {"beta": np.zeros(3)}


def traced_at(model: Any, values: Any) -> Any:
    """The model's sites, without random numbers, which take seconds to compile."""
    values = {name: jnp.asarray(value) for name, value in values.items()}
    return numpyro.handlers.trace(numpyro.handlers.substitute(model, values)).get_trace()


@pytest.mark.parametrize("name", ["hierarchical", "nested-plates", *HEAVY])
def test_numpyro_models_go_back_weighted(name):
    coreset = numpyro_coreset(name)
    exported = to_numpyro(coreset)
    draws = points(coreset.model.dim)
    theirs = [numpyro_density(exported, coreset.model.split(theta)) for theta in draws]
    same_up_to_a_constant(theirs, [log_density(coreset, theta) for theta in draws])


@pytest.mark.parametrize("name", REGRESSIONS)
def test_regressions_go_to_numpyro(name):
    coreset = regression(name)
    exported = to_numpyro(coreset)
    draws = points(3)
    theirs = [numpyro_density(exported, {"beta": theta}) for theta in draws]
    same_up_to_a_constant(theirs, [log_density(coreset, theta) for theta in draws])


@pytest.mark.parametrize(
    "coreset", [pytest.param(numpyro_coreset, marks=pytest.mark.slow), regression]
)
def test_numpyro_models_say_when_they_are_run_in_float32(coreset):
    ours = coreset("hierarchical" if coreset is numpyro_coreset else "linear")
    exported = to_numpyro(ours)
    at = ours.model.split(np.ones(ours.model.dim)) if coreset is numpyro_coreset else NOWHERE
    with jax.enable_x64(True):
        traced_at(exported, at)
    with pytest.warns(UserWarning, match=r"add up to 13 .*numpyro.enable_x64\(\)"):
        traced_at(exported, at)


def pymc_density(model: Any) -> Any:
    return model.compile_logp(mode="FAST_COMPILE")


@pytest.mark.parametrize(
    "name", ["poisson", *HEAVY, *(pytest.param(n, marks=pytest.mark.slow) for n in SLOWER)]
)
def test_pymc_models_go_back_weighted(name):
    coreset = pymc_coreset(name)
    exported = to_pymc(coreset)
    own = coreset.model.model
    density = pymc_density(exported)
    draws = points(coreset.model.dim)
    theirs = [
        density({own.rvs_to_values[own[k]].name: v for k, v in coreset.model.split(theta).items()})
        for theta in draws
    ]
    same_up_to_a_constant(theirs, [log_density(coreset, theta) for theta in draws])
    # An ordinary model: nothing is observed, and no array is as long as the data.
    assert exported.observed_RVs == [] and {"coreset_weight"} < set(exported.named_vars)
    assert all(23 not in np.shape(v.get_value()) for v in exported.data_vars)
    assert {rv.name for rv in exported.free_RVs} == {rv.name for rv in own.free_RVs}
    # The user's model is as it was.
    assert len(own.observed_RVs) >= 1 and "coreset_weight" not in own.named_vars


@pytest.mark.parametrize("name", REGRESSIONS)
def test_regressions_go_to_pymc(name):
    coreset = regression(name)
    exported = to_pymc(coreset)
    density, draws = pymc_density(exported), points(3)
    same_up_to_a_constant(
        [density({"beta": theta}) for theta in draws],
        [log_density(coreset, theta) for theta in draws],
    )


def test_named_coefficients_keep_their_names():
    import pandas

    rows = make_rows(23)
    frame = pandas.DataFrame(rows["X"], columns=["age", "height", "y0"]).assign(y=rows["binary"])
    data = open_rows(frame, target="y")
    coreset = weighted(
        cb.LogisticRegression(intercept=True, prior=cb.Normal()).bind(data), data, ROWS, WEIGHTS
    )
    with jax.enable_x64(True):
        trace = traced_at(to_numpyro(coreset), {"coefficients": jnp.zeros(4)})
    assert {"age", "height", "y0", "intercept"} < set(trace)
    assert list(to_pymc(coreset).coords["coefficient"]) == ["age", "height", "y0", "intercept"]


def test_an_export_that_is_wrong_is_not_handed_over(monkeypatch):
    right = cb.LogisticRegression.in_numpyro
    monkeypatch.setattr(
        cb.LogisticRegression, "in_numpyro", lambda *given: right(*given[:-1], 1.0001 * given[-1])
    )
    with pytest.raises(RuntimeError, match="NumPyro model does not have the coreset's log density"):
        to_numpyro(regression("logistic"))
    right_pymc = cb.LinearRegression.in_pymc
    monkeypatch.setattr(
        cb.LinearRegression, "in_pymc", lambda *given: right_pymc(*given[:-1], given[-1] + 1e-4)
    )
    with pytest.raises(RuntimeError, match="PyMC model does not have the coreset's log density"):
        to_pymc(regression("linear"))


def test_models_without_a_form_there_are_refused():
    data = open_rows(np.zeros((4, 1)))
    model = cb.CustomModel(
        lambda draws, block: np.zeros((len(block), len(draws))),
        lambda draws: -(draws[:, 0] ** 2),
        1,
    )
    coreset = weighted(model.bind(data), data, [0], [4.0])
    for export in (to_numpyro, to_pymc):
        with pytest.raises(TypeError, match="CustomModel has no form there"):
            export(coreset)
    with pytest.raises(TypeError, match="NumpyroModel has no form there"):
        to_pymc(numpyro_coreset("nested-plates"))


def test_tables_keep_every_digit(tmp_path):
    coreset = regression("linear")
    columns = to_columns(coreset)
    assert list(columns) == ["row_id", "weight", "x0", "x1", "x2", "y"]
    to_csv(coreset, tmp_path / "coreset.csv")
    with open(tmp_path / "coreset.csv", newline="") as file:
        header, *lines = csv.reader(file)
    assert header == list(columns)
    table = pyarrow.parquet.read_table(_written(coreset, tmp_path))
    for k, (name, values) in enumerate(columns.items()):
        np.testing.assert_array_equal([float(line[k]) for line in lines], values)
        np.testing.assert_array_equal(table[name].to_numpy(), values)
    np.testing.assert_array_equal(columns["row_id"], ROWS)
    np.testing.assert_array_equal(columns["weight"], WEIGHTS)


def _written(coreset: Any, folder: Any) -> Any:
    to_parquet(coreset, folder / "coreset.parquet")
    return folder / "coreset.parquet"


@pytest.mark.slow
def test_numpyro_and_pymc_sample_the_same_posterior():
    """The point of handing over: their own samplers, our posterior."""
    rows = make_rows(400)
    data = open_rows((rows["X"], rows["binary"]))
    coreset = cb.build(cb.LogisticRegression(prior=cb.Normal()), data, size=30, seed=0)
    ours = cb.sample(coreset, draws=1000, chains=2, seed=1).posterior["beta"].values
    with jax.enable_x64(True):
        kernel = numpyro.infer.NUTS(to_numpyro(coreset))
        run = numpyro.infer.MCMC(kernel, num_warmup=300, num_samples=2000, progress_bar=False)
        run.run(jax.random.PRNGKey(0))
        theirs = np.asarray(run.get_samples()["beta"])
    spread = ours.std(axis=(0, 1))
    assert np.all(np.abs(theirs.mean(axis=0) - ours.mean(axis=(0, 1))) < 0.15 * spread)
    np.testing.assert_allclose(theirs.std(axis=0), spread, rtol=0.15)
    # PyTensor says that it found no BLAS, once, wherever it was installed by pip.
    with to_pymc(coreset), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trace = pm.sample(500, tune=300, chains=2, cores=1, progressbar=False, random_seed=1)
    found = trace.posterior["beta"].values
    assert np.all(np.abs(found.mean(axis=(0, 1)) - ours.mean(axis=(0, 1))) < 0.2 * spread)
