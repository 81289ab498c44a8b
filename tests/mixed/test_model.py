"""Mixed regressions: potentials and priors against SciPy, derivatives against differences."""

import numpy as np
import pytest
from scipy import stats

import corebayes as cb
from corebayes.models import from_config
from corebayes.rows import open_rows
from tests.mixed.cases import NAMES, case


def value(model, theta, block, weights):
    draws = theta[None]
    return model.sum_potentials(draws, block, weights)[0] + model.log_prior(draws)[0]


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_are_those_of_the_density(name):
    problem = case(name).problem()
    model, block = problem.model, problem.data.take(np.arange(60))
    rng = np.random.default_rng(1)
    theta, weights = 0.3 * rng.normal(size=model.dim), rng.uniform(0.0, 2.0, size=60)
    gradient, hessian = model.gradient_and_hessian(theta, block, weights)
    np.testing.assert_allclose(model.gradient(theta, block, weights), gradient, atol=1e-10)
    gradient = gradient + model.log_prior_gradient(theta)
    hessian = hessian + model.log_prior_hessian(theta)
    h = 1e-5
    steps = h * np.eye(model.dim)
    by_value = [
        (value(model, theta + e, block, weights) - value(model, theta - e, block, weights))
        / (2.0 * h)
        for e in steps
    ]
    np.testing.assert_allclose(gradient, by_value, rtol=1e-5, atol=1e-5)

    def slope(at):
        return model.gradient(at, block, weights) + model.log_prior_gradient(at)

    by_slope = [(slope(theta + e) - slope(theta - e)) / (2.0 * h) for e in steps]
    np.testing.assert_allclose(hessian, by_slope, rtol=1e-5, atol=1e-5)


def test_log_density_is_scipys():
    problem = case("gaussian").problem()
    model, block = problem.model, problem.data.take(np.arange(30))
    theta = 0.4 * np.random.default_rng(2).normal(size=model.dim)
    named = dict(zip(model.parameter_names, theta, strict=True))
    g, h = block.X[:, 2].astype(int), block.X[:, 3].astype(int)
    effects = [named[f"1|g[{one}]"] + named[f"1|h[{two}]"] for one, two in zip(g, h, strict=True)]
    eta = named["one"] + named["x"] * block.X[:, 1] + np.array(effects)
    sigma = np.exp(named["log sigma"] if "log sigma" in named else named["log noise_sd"])
    expected = stats.norm.logpdf(block.y, eta, sigma)
    found = model.potentials(theta[None], block)[:, 0] + model.log_base(block)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    u, v = np.log(sigma), (named["log 1|g_sigma"], named["log 1|h_sigma"])
    log_prior = stats.norm.logpdf(theta[:2], [0.1, -0.2], [1.5, 2.0]).sum()
    log_prior += stats.halfnorm.logpdf(sigma, scale=2.0) + u
    log_prior += stats.halfnorm.logpdf(np.exp(v[0])) + v[0]
    log_prior += np.log(2.0) + stats.t.logpdf(np.exp(v[1]), 3.0) + v[1]
    for scale, letter in zip(v, "gh", strict=True):
        own = [x for name, x in named.items() if name.startswith(f"1|{letter}[")]
        log_prior += stats.norm.logpdf(own, 0.0, np.exp(scale)).sum()
    assert model.log_prior(theta[None])[0] == pytest.approx(log_prior, rel=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_a_model_is_rebuilt_from_its_config(name):
    problem = case(name).problem()
    again = from_config("MixedRegression", problem.model.config())
    draws = np.random.default_rng(3).normal(size=(3, again.dim))
    block = problem.data.take(np.arange(20))
    assert again.parameter_names == problem.model.parameter_names
    np.testing.assert_array_equal(
        again.potentials(draws, block), problem.model.potentials(draws, block)
    )
    np.testing.assert_array_equal(again.log_prior(draws), problem.model.log_prior(draws))


def test_what_rows_touch_is_counted():
    structure = case("slopes", num_groups=7).problem().model.structure
    assert structure.describe() == (
        "18 parameters: 2 shared by all rows, 2 of the prior only, "
        "14 of the 7 groups of g, 2 for each"
    )
    # p = 2, q = 2: G (q + q(q + 1)/2 + pq) + p(p + 3)/2 + 1
    assert structure.num_matched == 7 * (2 + 3 + 4) + 5 + 1


def bound(**changes):
    some = case("logistic")
    X = some.X.copy()
    for (row, column), number in changes.pop("entries", {}).items():
        X[row, column] = number
    return some._replace(X=X)


def test_a_measurement_is_no_group():
    with pytest.raises(ValueError, match=r"row 5, column 'g': 2\.5 is not the number of a group"):
        bound(entries={(5, 2): 2.5}).problem()


def test_a_group_column_that_is_not_there_is_named():
    some = case("logistic")
    model = cb.MixedRegression(
        family=cb.LogisticRegression(prior=cb.Normal()), terms=[cb.GroupTerm(group="county")]
    )
    with pytest.raises(ValueError, match="no column 'county'"):
        model.bind(open_rows(some.frame(), target="y"))


def test_a_row_of_a_group_that_the_model_does_not_know():
    problem = case("logistic").problem()
    block = problem.data.take(np.arange(3))
    block.X[1, 2] = 99.0
    with pytest.raises(ValueError, match="the group 99 in column 'g'"):
        problem.model.potentials(np.zeros((1, problem.model.dim)), block)


def test_bad_terms_are_refused():
    with pytest.raises(ValueError, match="has an effect twice"):
        cb.GroupTerm(group="g", effects=("x", "x"))
    with pytest.raises(TypeError, match="must be a prior such as HalfNormal"):
        cb.GroupTerm(group="g", scale=2.0)
    with pytest.raises(ValueError, match="no constant that could be learned"):
        cb.MixedRegression(
            family=cb.LogisticRegression(prior=cb.Normal()), learned=cb.HalfNormal(1.0)
        )
    with pytest.raises(ValueError, match="in two group terms"):
        cb.MixedRegression(
            family=cb.LogisticRegression(prior=cb.Normal()),
            terms=[cb.GroupTerm(group="g"), cb.GroupTerm(group="g")],
        )
