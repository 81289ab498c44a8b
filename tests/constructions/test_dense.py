"""GLMs of many parameters: skewness is seen, rare categories are kept, more rows help."""

import numpy as np
import pytest
from benchmarks.dense import normal_rows, rare_rows

import corebayes as cb
from corebayes.constructions.annealed.arrive import arrive
from corebayes.constructions.annealed.view import View
from corebayes.problem import Problem
from corebayes.rows import open_rows
from corebayes.samplers.laplace import full_posterior
from corebayes.tangent.hermite import Hermite


def problem_of(rows, model=None):
    data = open_rows(rows)
    return Problem((model or cb.LogisticRegression(prior=cb.Normal())).bind(data), data)


@pytest.mark.parametrize("sd", [1.0, 10.0])
def test_arriving_is_close_to_the_mode_of_all_rows(sd):
    model = cb.LogisticRegression(prior=cb.Normal(0.0, sd))
    problem = problem_of(rare_rows(3, 20_000, common=4, rare=5), model)
    view = View(np.random.default_rng(0), problem, 30, Hermite(), pool_rows=1000, total_rows=3.0)
    points = view.pool(problem.no_points(), 500)
    points = points.scaled(20_000 / points.weights.sum())
    arrival = arrive(view, points)
    full = full_posterior(problem.model, problem.data)
    away = np.linalg.solve(full.factor, arrival.look.space.location - full.mean)
    # The mean of a skewed posterior is not its mode.
    assert np.abs(away).max() < 1.0
    common = np.abs(away[:4])
    assert common.max() < 0.3


def test_a_space_centred_on_the_mean_is_where_the_draws_are():
    rng = np.random.default_rng(0)
    X = np.ones((40, 1))
    y = (np.arange(40) < 2).astype(float)
    problem = problem_of((X, y), cb.LogisticRegression(prior=cb.Normal(0.0, 3.0)))
    points = problem.points(np.arange(40), np.ones(40))
    grid = np.linspace(-15.0, 5.0, 20_001)
    heights = problem.model.sum_potentials(grid[:, None], points.rows, points.weights)
    heights += problem.model.log_prior(grid[:, None])
    density = np.exp(heights - heights.max())
    mean = density @ grid / density.sum()
    centred = Hermite(centred=True).space(rng, problem, points).location[0]
    mode = Hermite().space(rng, problem, points).location[0]
    assert abs(centred - mean) < 0.25 * abs(mode - mean)


@pytest.mark.slow
def test_more_rows_give_a_lower_kl_and_the_own_kl_is_the_certificates():
    rows = normal_rows(0, 6_000, 24)
    kls = []
    for size in (200, 400, 800):
        coreset = cb.build(cb.LogisticRegression(prior=cb.Normal()), rows, size=size)
        kl = cb.certify(coreset, rows).reverse_kl.value
        assert kl / 3.0 < coreset.trace[-1]["kl"] < 3.0 * kl
        kls.append(kl)
    assert kls[2] < 0.5 * kls[1] < 0.25 * kls[0]


@pytest.mark.slow
def test_rare_categories_are_certified_with_few_rows():
    rows = rare_rows(1, 30_000, common=5, rare=25)
    coreset = cb.build(cb.LogisticRegression(prior=cb.Normal()), rows, tol=0.02)
    assert coreset.reason.startswith("certified") and coreset.size <= 400


def test_many_parameters_with_as_many_rows_as_quadratics():
    rows = normal_rows(2, 30_000, 25)
    coreset = cb.build(cb.LogisticRegression(prior=cb.Normal()), rows, size=351)
    assert coreset.size <= 351
    assert cb.certify(coreset, rows).reverse_kl.value < 5e-3


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "rare", "ones"), [(4, 50, 5), (5, 50, 50), (0, 80, 20)])
def test_the_own_kl_of_rare_categories_is_the_certificates(seed: int, rare: int, ones: int) -> None:
    """Rows of a level of five are alike: an estimate for rows at random was nine times too high,
    and with 80 levels a build went on to all rows for it, and ran out of memory."""
    rows = rare_rows(seed, 100_000, rare=rare, ones=ones)
    coreset = cb.build(cb.LogisticRegression(prior=cb.Normal()), rows, tol=0.02)
    kl = cb.certify(coreset, rows).reverse_kl
    noise = 2.0 * kl.standard_error
    assert (kl.value - noise) / 3.0 < coreset.trace[-1]["kl"] < 3.0 * (kl.value + noise)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_levels_that_no_random_row_has_are_fetched_with_few_parameters_too(seed: int) -> None:
    """Random rows ran out with much left to match, and asking for more rows gave a higher KL."""
    method = cb.AnnealedSparseVI(geometry=Hermite(order=3))
    rows = rare_rows(seed, 30_000, common=8, rare=6)
    model = cb.LogisticRegression(prior=cb.Normal())
    coreset = cb.build(model, rows, size=300, method=method, progress=False)
    assert coreset.trace[-1]["kl"] < 5e-6
    assert coreset.provenance["passes"] <= 7.0
