"""Predictions of models of other libraries, against those of the built-in model or their own."""

import numpy as np
import pandas as pd
import pytest

import corebayes as cb

pytestmark = pytest.mark.filterwarnings("ignore:For backward compatibility, .str. dtypes")

NEW = np.array([[0.4, -0.2], [1.0, 0.5], [-0.7, 1.3]])


def counts(num_rows=1500):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(num_rows, 2))
    return X, rng.poisson(np.exp(X @ [0.5, -0.3] + 0.8)).astype(float)


@pytest.fixture(scope="module")
def built_in():
    model = cb.PoissonRegression(link="log", intercept=True, prior=cb.Normal(0.0, 1.0))
    return cb.predict(cb.build(model, counts(), size=60, method=cb.Uniform()), NEW, num_draws=4000)


def close(found, known):
    np.testing.assert_allclose(found.mean, known.mean, rtol=0.01)
    np.testing.assert_allclose(found["mean_upper"], known["mean_upper"], rtol=0.03)
    np.testing.assert_allclose(found["sd"], known["sd"], rtol=0.08)
    np.testing.assert_allclose(found.upper, known.upper, atol=1.0)


@pytest.mark.slow
def test_numpyro_predicts_by_its_own_distribution(built_in):
    numpyro = pytest.importorskip("numpyro")
    dist = numpyro.distributions
    import jax.numpy as jnp

    def model(X, y=None):
        slopes = numpyro.sample("slopes", dist.Normal(0.0, 1.0).expand([2]))
        start = numpyro.sample("start", dist.Normal(0.0, 1.0))
        with numpyro.plate("rows", X.shape[0]):
            numpyro.sample("y", dist.Poisson(jnp.exp(X @ slopes + start)), obs=y)

    coreset = cb.build(*cb.from_numpyro(model, *counts()), size=60, method=cb.Uniform())
    close(cb.predict(coreset, {"X": NEW}, num_draws=2000), built_in)
    with pytest.raises(TypeError, match="a mapping of names to arrays"):
        cb.predict(coreset, NEW)
    with pytest.raises(ValueError, match="no 'X'"):
        cb.predict(coreset, {"x": NEW})


@pytest.mark.slow
def test_pymc_predicts_by_its_own_graph(built_in):
    pm = pytest.importorskip("pymc")
    X, y = counts()
    with pm.Model() as model:
        slopes = pm.Normal("slopes", 0.0, 1.0, shape=2)
        start = pm.Normal("start", 0.0, 1.0)
        pm.Poisson("y", pm.math.exp(pm.Data("X", X) @ slopes + start), observed=y)
    coreset = cb.build(*cb.from_pymc(model), size=60, method=cb.Uniform())
    found = cb.predict(coreset, {"X": NEW}, num_draws=2000, keep_draws=True)
    close(found, built_in)
    assert abs(np.corrcoef(found.draws[0, :-1], found.draws[0, 1:])[0, 1]) < 0.1


@pytest.mark.slow
def test_bambi_predicts_by_itself():
    bambi = pytest.importorskip("bambi")
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"x": rng.gamma(2.0, 2.0, 2000), "k": rng.choice(list("abc"), 2000)})
    frame["y"] = rng.gamma(3.0, np.exp(0.2 * frame.x + 0.5 * (frame.k == "b")) / 3.0)
    # A prior that no built-in regression has, so that the model stays PyMC's.
    priors = {"x": bambi.Prior("Laplace", mu=0.0, b=1.0)}
    own = bambi.Model("y ~ x + k", frame, family="gamma", link="log", priors=priors)
    coreset = cb.build(*cb.from_bambi(own), size=40)
    new = pd.DataFrame({"x": [1.0, 2.0, 6.0], "k": ["a", "b", "c"]})
    drawn = cb.sample(coreset)
    theirs = own.predict(drawn, data=new, inplace=False, kind="response", random_seed=1)
    found = cb.predict(coreset, new, draws=drawn, num_draws=4000)
    np.testing.assert_allclose(
        found.mean, theirs.posterior["mu"].mean(("chain", "draw")), rtol=1e-6
    )
    spread = theirs.posterior_predictive["y"].quantile([0.05, 0.95], dim=("chain", "draw"))
    np.testing.assert_allclose([found.lower, found.upper], spread, rtol=0.1)


@pytest.mark.slow
def test_the_built_in_regression_agrees_with_bambis_predict():
    bambi = pytest.importorskip("bambi")
    rng = np.random.default_rng(4)
    g, x = rng.integers(0, 6, 1500), rng.normal(size=1500)
    y = 1.0 + 0.5 * x + np.linspace(-1, 1, 6)[g] + 0.4 * rng.normal(size=1500)
    frame = pd.DataFrame({"x": x, "g": [f"g{k}" for k in g], "y": y})
    own = bambi.Model("y ~ x + (1|g)", frame)
    own.build()
    coreset = cb.build(*cb.from_bambi(own), size=100)
    drawn = cb.sample(coreset)
    new = pd.DataFrame({"x": [0.0, 1.0], "g": ["g0", "g5"]})
    theirs = own.predict(drawn, data=new, inplace=False, kind="response", random_seed=1)
    columns = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 5.0]])
    found = cb.predict(coreset, columns, draws=drawn, num_draws=4000)
    mean = theirs.posterior["mu"].mean(("chain", "draw"))
    np.testing.assert_allclose(found.mean, mean, rtol=1e-6)
    spread = theirs.posterior_predictive["y"].quantile([0.05, 0.95], dim=("chain", "draw"))
    np.testing.assert_allclose([found.lower, found.upper], spread, atol=0.05)
    np.testing.assert_allclose(
        cb.predict(coreset, new, draws=drawn, num_draws=4000).mean, mean, rtol=1e-6
    )
