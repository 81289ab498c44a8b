"""What every construction promises, on every model."""

import numpy as np
import pytest

import corebayes as cb
from corebayes.constructions import exported
from corebayes.samplers.laplace import full_posterior
from tests.contract.cases import CONSTRUCTIONS, products

SIZE = 8


@pytest.mark.parametrize(("case", "method"), products(CONSTRUCTIONS, models_each=1))
def test_promises(case, method):
    data = case.data()
    global_state = np.random.get_state()[1].copy()
    coreset = cb.build(case.model, data, size=SIZE, method=method, seed=3)
    again = cb.build(case.model, data, size=SIZE, method=method, seed=3)
    X = data if isinstance(data, np.ndarray) else data[0]

    assert 1 <= coreset.size <= SIZE
    assert np.all(np.isfinite(coreset.weights)) and np.all(coreset.weights > 0.0)
    assert np.all(np.diff(coreset.indices) > 0)
    if isinstance(method, cb.PseudoCoreset):
        assert np.all(coreset.indices < 0) and coreset.rows.X.shape == (coreset.size, X.shape[1])
    else:
        assert np.array_equal(coreset.rows.X, X[coreset.indices])
    assert np.array_equal(coreset.rows.X, again.rows.X)
    assert coreset.reason and coreset.trace[-1]["size"] == coreset.size
    assert [entry["step"] for entry in coreset.trace] == list(range(1, len(coreset.trace) + 1))
    assert np.array_equal(coreset.indices, again.indices)
    assert np.array_equal(coreset.weights, again.weights)
    assert np.array_equal(np.random.get_state()[1], global_state)


@pytest.mark.parametrize(("case", "method"), products(CONSTRUCTIONS, models_each=1, start=2))
def test_closer_to_the_posterior_than_the_prior(case, method):
    problem = case.problem()
    exact = full_posterior(problem.model, problem.data)
    coreset = cb.build(case.model, case.data(), size=40, method=method, seed=1)
    fit = cb.Laplace().fit(cb.Posterior.of(coreset))
    prior = cb.Laplace().fit(cb.Posterior(problem.model, problem.no_points().rows, np.empty(0)))
    assert cb.diagnostics.gaussian_kl(fit, exact) < 0.5 * cb.diagnostics.gaussian_kl(prior, exact)


@pytest.mark.parametrize(("case", "method"), products(CONSTRUCTIONS, models_each=1, start=4))
def test_duplicate_rows_and_counts(case, method):
    """Every row twice: no row number twice, and weights that stand for twice the data."""
    data, widths = case.data(num_rows=30), []
    for times in (1.0, 2.0):
        counts = np.full(30, times)
        coreset = cb.build(case.model, data, size=15, method=method, counts=counts, seed=2)
        assert coreset.total_count == times * 30.0
        assert np.unique(coreset.indices).size == coreset.size
        fit = cb.Laplace().fit(cb.Posterior.of(coreset))
        widths.append(np.linalg.slogdet(fit.factor)[1])
    # Twice the precision in 3 dimensions is 1.04 nats less entropy, but for the prior's share and
    # what a guard gives up of it.
    assert widths[0] - widths[1] > 0.1


@pytest.mark.parametrize(("case", "method"), products(CONSTRUCTIONS, models_each=1, start=6))
def test_rows_that_count_zero_are_never_taken(case, method):
    counts = np.ones(60)
    counts[::2] = 0.0
    coreset = cb.build(case.model, case.data(), size=12, method=method, counts=counts, seed=2)
    taken = coreset.indices[coreset.indices >= 0]
    assert np.all(taken % 2 == 1)


def test_every_exported_construction_is_in_the_suite():
    tried = {type(method) for _, method, *_ in CONSTRUCTIONS}
    # For models whose rows touch few parameters, which have a suite of their own: tests/mixed.
    assert set(exported().values()) - {cb.GroupedPursuit} == tried
