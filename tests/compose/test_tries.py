"""A coreset of few rows is chosen again from its reserve by exchanges, and the closest is taken."""

import numpy as np
import pytest

import corebayes as cb
from corebayes.compose import tries
from corebayes.diagnostics import gaussian_kl
from corebayes.samplers.laplace import Laplace
from corebayes.samplers.posterior import Posterior


def _night(seed, num_rows=300):
    rng = np.random.default_rng([seed, 5])
    X = np.column_stack([rng.normal(size=(num_rows, 3)), np.ones(num_rows)])
    mean = np.exp(X @ [0.4, 0.0, -0.3, 0.4])
    return X, rng.gamma(2.0, mean / 2.0) + 1e-9


def test_the_distance_is_that_of_gaussians_where_potentials_are_quadratic():
    X, y = _night(0, 80)
    model = cb.LinearRegression(noise_sd=0.7, prior=cb.Normal())
    few, many = (cb.build(model, (X, y), size=size, seed=0) for size in (8, 80))
    fits = [Laplace().fit(Posterior.of(one)) for one in (few, many)]
    found = tries.distance(few.model, few.points, many.points)
    assert found == pytest.approx(gaussian_kl(*fits), rel=0.3) and found > 1e-3


@pytest.mark.parametrize(
    "model",
    [
        cb.GammaRegression(),
        pytest.param(cb.PoissonRegression(link="log"), marks=pytest.mark.slow),
    ],
)
def test_the_closest_to_the_reserve_is_taken(monkeypatch, model):
    nights = [_night(seed) for seed in range(3)]
    if isinstance(model, cb.PoissonRegression):
        nights = [(X, np.floor(y)) for X, y in nights]
    first = cb.update(cb.build(model, nights[0], size=9, seed=0), nights[1], seed=0)
    grown = cb.update(first, nights[2], seed=0)
    monkeypatch.setattr(tries, "ROUNDS", 0)
    once = cb.update(first, nights[2], seed=0)
    merged = cb.merge([first, cb.build(model, nights[2], size=9, seed=0)], reserve=0)
    assert np.array_equal(grown.reserve.indices, once.reserve.indices)
    near, far = (tries.distance(one.model, one.points, one.reserve) for one in (grown, once))
    # A greedy path of nine rows for fifteen quadratics ends several times as far away.
    assert near < 0.5 * far and grown.size <= 9 and merged.reserve is None
    assert grown.trace[-1]["kl"] == pytest.approx(near, rel=0.01)
    for place, (source, number) in enumerate(grown.origins):
        rows, _ = nights[int(source.removeprefix("source-"))]
        assert np.array_equal(rows[number], grown.rows.fields["X"][place])


@pytest.mark.filterwarnings("ignore:.*widths from where")
def test_what_was_asked_for_otherwise_is_left_alone():
    first = cb.build(cb.GammaRegression(), _night(0), size=9, seed=0)
    grown = cb.update(first, _night(1), method=cb.Uniform(), seed=0)
    assert grown.provenance["method"].startswith("Uniform") and len(grown.trace) == 1
