"""Guards against spurious modes: what they add to a tangent space, and that they work."""

import numpy as np
import pytest

import corebayes as cb
from corebayes.problem import Problem
from corebayes.rows import open_rows
from corebayes.samplers.modes.places import Places
from corebayes.tangent import Guard, MonteCarlo, default_geometry
from corebayes.tangent.geometry import random_points
from corebayes.weights.pursuit import orthogonal_pursuit


def cauchy(draws, block):
    return -np.log1p(np.square(block["x"][:, None] - draws[:, 0]))


def wide_prior(draws):
    return -0.5 * np.square(draws[:, 0] / 10.0)


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=300), 40.0 * rng.standard_cauchy(20)])
    data = open_rows({"x": x}, counts=rng.integers(1, 4, size=320) * 1.0)
    return Problem(cb.CustomModel(cauchy, wide_prior, 1).bind(data), data)


def spaces(problem):
    geometry = MonteCarlo(num_draws=60)
    points = random_points(np.random.default_rng(1), problem, 30)
    arguments = (problem, points.at(np.full(30, 10.0)))
    plain = geometry.space(np.random.default_rng(2), *arguments)
    guarded = Guard(geometry=geometry, num_far=7).space(np.random.default_rng(2), *arguments)
    return plain, guarded, points


def test_elements_are_those_within_and_the_guards(problem):
    plain, guarded, points = spaces(problem)
    inner, outer = plain.embed(points.rows), guarded.embed(points.rows)
    ours = guarded.gram(outer)
    guards = np.stack([guarded.combine(outer, row)[60:] for row in np.eye(30)])
    # One mode, seven draws of the prior, and Σw.
    assert guards.shape == (30, 9)
    np.testing.assert_allclose(ours, plain.gram(inner) + guards @ guards.T)
    np.testing.assert_allclose(guarded.squared_norms(outer), np.diag(ours))
    element = np.random.default_rng(3).normal(size=69)
    expected = plain.project(inner, element[:60]) + guards @ element[60:]
    np.testing.assert_allclose(guarded.project(outer, element), expected)
    taken = guarded.take(outer, np.array([4, 2]))
    np.testing.assert_allclose(guarded.gram(taken), ours[np.ix_([4, 2], [4, 2])])


def test_the_total_is_the_sum_of_all_rows(problem):
    _, guarded, _ = spaces(problem)
    block = problem.data.take(np.arange(320))
    total = guarded.total(block)
    combined = guarded.combine(guarded.embed(block), block.counts)
    np.testing.assert_allclose(total.element, combined, rtol=1e-9, atol=1e-9)
    # Σw = Σc weighs FIRMNESS whatever the data.
    assert total.element[-1] == pytest.approx(5.0)


def test_weights_stay_near_the_number_of_rows(problem):
    """Fitted near the posterior alone, Σw is free; with guards it is that of the data."""
    plain, guarded, _ = spaces(problem)
    count = problem.data.total_count
    pool = problem.data.take(np.arange(320))
    off = {}
    for name, space in (("plain", plain), ("guarded", guarded)):
        total = space.total(pool).element
        (choice,) = orthogonal_pursuit(space, pool, total, [12])
        off[name] = abs(choice.weights.sum() / count - 1.0)
    assert off["guarded"] < 0.02 < off["plain"]


def test_only_models_that_are_not_log_concave_are_guarded(problem):
    assert isinstance(default_geometry(problem), Guard)
    concave = cb.CustomModel(cauchy, wide_prior, 1, log_concave=True).bind(problem.data)
    assert not isinstance(default_geometry(Problem(concave, problem.data)), Guard)


def test_many_parameters_are_looked_at_locally():
    """Chains in every mode of a network would take minutes a look, and so would as many draws as
    there are quadratics where fewer rows are asked for."""

    def likelihood(draws, block):
        return -np.log1p(np.square(block["x"][:, None] - draws.sum(axis=1)))

    data = open_rows({"x": np.linspace(-1.0, 1.0, 50)})
    for dim, chains, num_draws in ((20, 4, 4 * 230), (30, 1, 4 * 200)):
        model = cb.CustomModel(likelihood, lambda draws: -np.square(draws).sum(axis=1), dim)
        problem = Problem(model.bind(data), data)
        problem.known_places = Places(np.empty((0, dim)))
        inner = default_geometry(problem, 200, exact_draws=True).geometry
        assert inner.sampler.otherwise.chains == chains and inner.num_draws == num_draws
