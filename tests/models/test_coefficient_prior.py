"""Priors of coefficients that are not Normal: densities, averages, and posteriors with them."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

import corebayes as cb
from corebayes.cli.priors import given_prior, parse_prior
from corebayes.rows import open_rows

PRIORS = [
    (cb.StudentT(3.5, 0.7, 2.0), stats.t(3.5, 0.7, 2.0)),
    (cb.DoubleExponential(-0.4, 0.3), stats.laplace(-0.4, 0.3)),
]


@pytest.mark.parametrize(("prior", "reference"), PRIORS)
def test_densities_and_slopes(prior, reference):
    at = np.array([-3.0, -0.2, 0.1, 5.0])
    np.testing.assert_allclose(prior.log_density(at), reference.logpdf(at), rtol=1e-12)
    step = 1e-5
    slopes = (prior.log_density(at + step) - prior.log_density(at - step)) / (2.0 * step)
    np.testing.assert_allclose(prior.gradient(at), slopes, rtol=1e-6, atol=1e-8)
    bends = (prior.gradient(at + step) - prior.gradient(at - step)) / (2.0 * step)
    np.testing.assert_allclose(prior.hessian(at), bends, rtol=1e-6, atol=1e-8)
    draws = prior.draw(np.random.default_rng(0), 4000)
    assert stats.kstest(draws, reference.cdf).pvalue > 1e-3


@pytest.mark.parametrize(("prior", "reference"), PRIORS)
@pytest.mark.parametrize(
    ("mean", "sd"),
    [
        (-0.4, 0.05),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in ((0.3, 0.5), (4.0, 1.0))),
    ],
)
def test_averages_under_a_gaussian(prior, reference, mean, sd):
    def average(middle):
        places = np.sort([middle, prior.mean])
        return integrate.quad(
            lambda b: reference.logpdf(b) * stats.norm(middle, sd).pdf(b),
            min(places[0], middle) - 12.0 * sd,
            max(places[1], middle) + 12.0 * sd,
            points=list(places),
            epsabs=1e-12,
            limit=400,
        )[0]

    found, step = prior.averages(mean, sd), 0.02 * sd
    values = [average(mean + k * step) for k in (-1, 0, 1)]
    assert found.value == pytest.approx(values[1], abs=1e-7)
    assert found.first == pytest.approx((values[2] - values[0]) / (2 * step), rel=1e-3, abs=1e-5)
    second = (values[2] - 2 * values[1] + values[0]) / step**2
    assert found.second == pytest.approx(second, rel=2e-3, abs=1e-4)


def logistic_rows(num_rows=60):
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.normal(size=num_rows), rng.uniform(size=num_rows) < 0.3])
    y = (rng.uniform(size=num_rows) < 1.0 / (1.0 + np.exp(-X[:, 0] + 0.5))) * 1.0
    return X, y


@pytest.mark.parametrize(
    "prior",
    [
        {"beta[0]": cb.StudentT(2.0, 0.5, 0.2), "beta[1]": cb.DoubleExponential(0.0, 0.3)},
        cb.Flat(),
    ],
)
def test_posteriors_are_those_of_a_grid(prior):
    """All rows, two coefficients: the density on a grid, against draws and a certificate."""
    X, y = logistic_rows()
    model = cb.LogisticRegression(prior=prior)
    coreset = cb.build(model, (X, y), size=len(y), seed=0)
    assert cb.certify(coreset, (X, y)).certified
    axes = np.linspace(-3.5, 4.0, 301), np.linspace(-5.0, 4.0, 301)
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    eta = grid @ X.T
    logs = (y * eta - np.logaddexp(0.0, eta)).sum(axis=1)
    if isinstance(prior, dict):
        logs += stats.t(2.0, 0.5, 0.2).logpdf(grid[:, 0]) + stats.laplace(0, 0.3).logpdf(grid[:, 1])
    shares = np.exp(logs - logs.max())
    shares /= shares.sum()
    means = shares @ grid
    deviations = np.sqrt(shares @ np.square(grid - means))
    posterior = cb.sample(coreset, draws=2000, chains=2, tune=500, seed=1).posterior
    draws = posterior["beta"].values.reshape(-1, 2) if "beta" in posterior else np.column_stack(
        [posterior[name].values.ravel() for name in posterior.data_vars]
    )  # fmt: skip
    np.testing.assert_allclose((draws.mean(axis=0) - means) / deviations, 0.0, atol=0.12)
    np.testing.assert_allclose(draws.std(axis=0) / deviations, 1.0, atol=0.08)


def test_flat_priors_need_rows_that_know():
    X, y = logistic_rows(300)
    separated = np.where(X[:, 1] == 1.0, 1.0, y)
    with pytest.raises(ValueError, match=r"'beta\[1\]' is flat and the rows are separated"):
        cb.build(cb.LogisticRegression(prior={"beta[1]": cb.Flat()}), (X, separated), size=9)
    # The proper prior of the other coefficient does not help, one row of the other kind does.
    separated[np.flatnonzero(X[:, 1])[5]] = 0.0
    cb.LogisticRegression(prior=cb.Flat()).bind(open_rows((X, separated)))
    none = np.where(X[:, 1] == 1.0, 0.0, 2.0)
    with pytest.raises(ValueError, match=r"'beta\[1\]' is flat and the rows are separated"):
        cb.build(cb.PoissonRegression(prior=cb.Flat(), intercept=True), (X, none), size=9)


@pytest.mark.filterwarnings("ignore:column")
def test_flat_priors_need_columns_that_differ():
    X, _ = logistic_rows()
    X = np.column_stack([X, X.sum(axis=1)])
    y = np.random.default_rng(0).normal(size=len(X))
    with pytest.raises(ValueError, match=r"is flat and columns .*'beta\[2\]' are linearly dep"):
        cb.LinearRegression(prior=cb.Flat()).bind(open_rows((X, y)))
    two = {"beta[0]": cb.Flat(), "beta[1]": cb.Flat()}
    cb.LinearRegression(prior=two).bind(open_rows((X, y)))


def test_noise_of_an_exact_fit_has_no_posterior():
    X, _ = logistic_rows()
    with pytest.raises(ValueError, match=r"exact linear function .* give noise_sd a number"):
        cb.LinearRegression(intercept=True).bind(open_rows((X, 2000.0 + X @ [1.0, -2.0])))
    nearly = 2000.0 + X @ [1.0, -2.0] + 1e-4 * np.random.default_rng(0).normal(size=len(X))
    cb.LinearRegression(intercept=True).bind(open_rows((X, nearly)))


def test_priors_of_the_command_line_are_read():
    assert parse_prior("student_t(3, 0, 10)") == cb.StudentT(3.0, 0.0, 10.0)
    assert parse_prior(" HalfNormal( 2 ) ") == cb.HalfNormal(2.0)
    assert parse_prior("laplace(0,1e3)") == cb.DoubleExponential(0.0, 1e3)
    assert parse_prior("flat") == cb.Flat()
    named = given_prior(["a=b=normal(0,10)", "Intercept=cauchy(0,5)"], None)
    assert str(named["a=b"]) == "Normal(0, 10)"
    assert named["Intercept"] == cb.StudentT(1.0, 0.0, 5.0)
    assert str(given_prior(None, 2.0)) == "Normal(0, 2)"
    assert given_prior(None, None) is None


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["x=norml(0,1)"], "did you mean normal"),
        (["x=normal(0,__import__)"], "needs numbers"),
        (["x=normal(0,1,2,3)"], "does not take 4 numbers"),
        (["x=normal(0"], "cannot be read"),
        (["x=normal(0,-1)"], "must be positive"),
        (["normal(0,1)", "x=flat"], "give no others"),
        (["x=flat", "x=normal"], "twice"),
    ],
)
def test_what_cannot_be_read_is_refused(texts, message):
    with pytest.raises(ValueError, match=message):
        given_prior(texts, None)


@pytest.mark.slow
@pytest.mark.parametrize("library", ["numpyro", "pymc"])
def test_exports_have_the_same_density(library):
    """The exporters compare their density with ours and raise where it differs."""
    pytest.importorskip(library)
    rng = np.random.default_rng(0)
    X = rng.normal([0.0, 5.0, 0.0, 0.0], size=(200, 4))
    y = X @ [1.0, 2.0, 0.0, 0.3] + 0.3 * rng.normal(size=200)
    prior = {
        "beta[0]": cb.StudentT(3.0, 0.2, 2.0),
        "beta[2]": cb.DoubleExponential(0.1, 0.5),
        "beta[3]": cb.Flat(),
    }
    model = cb.LinearRegression(intercept=True, prior=prior)
    coreset = cb.build(model, (X, y), size=30, seed=0)
    (cb.to_numpyro if library == "numpyro" else cb.to_pymc)(coreset)


def test_stan_has_every_prior():
    X, y = logistic_rows()
    prior = {"beta[0]": cb.StudentT(3.0, 0.2, 2.0), "beta[1]": cb.DoubleExponential(0.1, 0.5)}
    coreset = cb.build(cb.LogisticRegression(prior=prior), (X, y), size=20, seed=0)
    program = cb.to_stan(coreset).program
    assert "beta[1] ~ student_t(3.0, 0.2, 2.0);" in program
    assert "beta[2] ~ double_exponential(0.1, 0.5);" in program


def test_the_prior_that_others_call_laplace():
    assert cb.Laplace(1.0, 2.0) == cb.Laplace(mean=1.0, scale=2.0) == cb.DoubleExponential(1.0, 2.0)
    assert isinstance(pickle.loads(pickle.dumps(cb.Laplace())), cb.Laplace)


def grouped_rows():
    """Level c alone has no count, no event, one category and the last of an order."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=300), "g": rng.choice(list("abc"), 300)})
    alone = (frame["g"] == "c").to_numpy()
    frame["count"] = np.where(alone, 0, rng.poisson(2.0, 300))
    frame["seen"] = np.where(alone, 0, rng.integers(0, 2, 300))
    frame["kind"] = np.where(alone, "u", rng.choice(["u", "v", "w"], 300))
    frame["rank"] = np.where(alone, 3, rng.integers(1, 4, 300))
    frame["time"] = rng.exponential(size=300)
    return frame


IMPROPER = [
    ("count", "negativebinomial"),
    ("count", "zero_inflated_poisson"),
    ("count", "hurdle_poisson"),
    ("Surv(time, seen)", "weibull"),
    ("Surv(time, seen)", "lognormal"),
    ("kind", "categorical"),
    ("rank", "cumulative"),
]


@pytest.mark.parametrize(("left", "family"), IMPROPER)
def test_improper_posteriors_of_every_kind_of_family_are_named(left, family):
    frame = grouped_rows()
    model, rows = cb.from_formula(f"{left} ~ x + g", frame, family=family, prior=cb.Flat())
    with pytest.raises(ValueError, match=r"'g\[T\.c\].* is flat and the rows are separated"):
        model.bind(rows)
    both = frame[frame["g"] != "c"]
    model, rows = cb.from_formula(f"{left} ~ x + g", both, family=family, prior=cb.Flat())
    model.bind(rows)


def test_a_term_stands_for_all_its_levels():
    frame = grouped_rows()
    given = {"g": cb.Normal(0.0, 0.5), "x": cb.StudentT(4.0, 0.0, 1.0)}
    model, rows = cb.from_formula("count ~ x * g", frame, family="poisson", prior=given)
    priors = {row[0]: row[1] for row in model.bind(rows).priors()}
    assert priors["g[T.b]"] == priors["g[T.c]"] == "Normal(0, 0.5)"
    assert priors["x:g[T.b]"] != "Normal(0, 0.5)" and priors["x"].startswith("StudentT")
