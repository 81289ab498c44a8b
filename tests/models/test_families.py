"""Every family against scipy, autodiff and finite differences."""

from __future__ import annotations

import dataclasses
import textwrap
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest
from scipy import stats

import corebayes.models.families.glm as glm
from corebayes.models import GLM, LogisticRegression, NegativeBinomialRegression, Normal
from corebayes.models.custom.finite_differences import difference_gradient, difference_hessian
from corebayes.models.special import LARGEST_KEPT
from corebayes.rows import open_rows
from corebayes.types import Block
from tests.models.cases import FAMILIES, NAMES, Family

families = pytest.mark.parametrize("family", FAMILIES, ids=NAMES)


@pytest.fixture
def bound(family: Family):
    data = family.data()
    return family.model.bind(data), data.take(np.arange(0, data.num_rows))


@families
def test_potentials_and_base_are_the_log_density(family, bound):
    model, block = bound
    draws = np.random.default_rng(1).normal(size=(7, 3))
    expected = family.log_density(block.X @ draws.T, block.y[:, None])
    values = model.potentials(draws, block) + model.log_base(block)[:, None]
    np.testing.assert_allclose(values, expected, rtol=1e-11, atol=1e-12)


@families
def test_out_is_filled_and_returned(family, bound):
    model, block = bound
    draws = np.random.default_rng(1).normal(size=(7, 3))
    out = np.full((len(block), 7), np.nan)
    assert model.potentials(draws, block, out) is out
    np.testing.assert_array_equal(out, model.potentials(draws, block))
    before = block.X.copy(), block.y.copy()
    model.potentials(draws, block)
    assert np.array_equal(block.X, before[0]) and np.array_equal(block.y, before[1])


@families
def test_sums_are_of_the_potentials(family):
    data = family.data(num_rows=1300)
    model, block = family.model.bind(data), data.take(np.arange(1300))
    rng = np.random.default_rng(2)
    draws, weights = rng.normal(size=(6, 3)), rng.uniform(size=1300)
    potentials = model.potentials(draws, block)
    np.testing.assert_allclose(
        model.sum_potentials(draws, block), potentials.sum(axis=0), rtol=1e-12
    )
    np.testing.assert_allclose(
        model.sum_potentials(draws, block, weights), weights @ potentials, rtol=1e-12
    )
    few = block.take(slice(0, 9))
    np.testing.assert_allclose(
        model.sum_potentials(draws, few, weights[:9]), weights[:9] @ potentials[:9], rtol=1e-12
    )


@families
def test_derivatives_equal_autodiff(family):
    eta = np.linspace(-5.0, 5.0, 23)
    rng = np.random.default_rng(3)
    y = family.respond(rng, 0.3 * eta)
    y = np.where(y > 0, 1.0, -1.0) if family.name == "logistic" else y
    with jax.enable_x64(True):
        function = lambda e, t: family.jax(jax.numpy, e, t)  # noqa: E731
        for values in family.model.derivatives(eta, y):
            function = jax.grad(function)
            expected = np.asarray(jax.jit(jax.vmap(function))(eta, y))
            np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-12)


@families
def test_slopes_equal_autodiff(family, bound):
    model, block = bound
    rng = np.random.default_rng(4)
    theta, weights = np.array([0.5, -0.4, 1.1]), rng.uniform(0.0, 3.0, size=len(block))
    y = model.target(block)
    with jax.enable_x64(True):
        X = jax.numpy.asarray(block.X)
        log_density = lambda t: (weights * family.jax(jax.numpy, X @ t, y)).sum()  # noqa: E731
        gradient = np.asarray(jax.jit(jax.grad(log_density))(theta))
        hessian = np.asarray(jax.jit(jax.hessian(log_density))(theta))
    both = model.gradient_and_hessian(theta, block, weights)
    np.testing.assert_allclose(model.gradient(theta, block, weights), gradient, rtol=1e-10)
    np.testing.assert_allclose(both[0], gradient, rtol=1e-10)
    np.testing.assert_allclose(both[1], hessian, rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(model.hessian(theta, block, weights), both[1])


@families
def test_slopes_equal_differences_of_the_potentials(family, bound):
    model, block = bound
    weights = np.random.default_rng(5).uniform(0.0, 3.0, size=len(block))
    theta = np.array([-0.5, 0.2, 0.7])

    def log_density(draws):
        return model.sum_potentials(draws, block, weights)

    gradient, hessian = model.gradient_and_hessian(theta, block, weights)
    np.testing.assert_allclose(gradient, difference_gradient(log_density, theta), rtol=1e-8)
    np.testing.assert_allclose(
        hessian, difference_hessian(log_density, theta), rtol=1e-6, atol=1e-6
    )


@families
def test_derivatives_broadcast_and_stop_at_the_order(family):
    y = family.respond(np.random.default_rng(6), np.linspace(-1.0, 1.0, 4))
    y = np.where(y > 0, 1.0, -1.0) if family.name == "logistic" else y
    eta = np.linspace(-9.0, 3.0, 20).reshape(4, 5)
    whole = family.model.derivatives(eta, y[:, None])
    assert [values.shape for values in whole] == [(4, 5)] * 3
    for order in (1, 2, 3):
        some = family.model.derivatives(eta, y[:, None], order)
        assert len(some) == order
        for values, expected in zip(some, whole, strict=False):
            np.testing.assert_array_equal(values, expected)
    for row in range(4):
        for values, expected in zip(family.model.derivatives(eta[row], y[row]), whole, strict=True):
            np.testing.assert_array_equal(values, expected[row])


@families
def test_log_concave_says_the_sign_of_the_second_derivative(family):
    y = np.array(family.extreme_targets)[:, None]
    second = family.model.derivatives(np.linspace(-50.0, 50.0, 401), y)[1]
    assert family.model.log_concave == bool(np.all(second <= 0.0))


@families
def test_no_rows_have_no_slope(family, bound):
    model, block = bound
    nothing, theta = block.take(slice(0, 0)), np.ones(3)
    np.testing.assert_array_equal(model.sum_potentials(theta[None], nothing), [0.0])
    gradient, hessian = model.gradient_and_hessian(theta, nothing, np.empty(0))
    np.testing.assert_array_equal(gradient, np.zeros(3))
    np.testing.assert_array_equal(hessian, np.zeros((3, 3)))
    assert model.potentials(theta[None], nothing).shape == (0, 1)


@families
def test_an_intercept_is_a_last_column_of_ones(family, bound):
    _, block = bound
    prior = Normal([0.1, 0.2, 0.3, 0.4], [1.0, 2.0, 3.0, 4.0])
    without = dataclasses.replace(family.model, prior=prior, bound=None)
    appended = np.column_stack([block.X, np.ones(len(block))])
    wide = without.bind(open_rows((appended, block.y)))
    model = dataclasses.replace(without, intercept=True).bind(open_rows((block.X, block.y)))
    assert model.parameter_names == ("beta[0]", "beta[1]", "beta[2]", "intercept")
    rng = np.random.default_rng(7)
    draws, weights = rng.normal(size=(5, 4)), rng.uniform(size=len(block))
    wide_block = Block({"X": appended, "y": block.y})
    np.testing.assert_array_equal(model.design(block), appended)
    np.testing.assert_array_equal(
        model.potentials(draws, block), wide.potentials(draws, wide_block)
    )
    for ours, theirs in zip(
        model.gradient_and_hessian(draws[0], block, weights),
        wide.gradient_and_hessian(draws[0], wide_block, weights),
        strict=True,
    ):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(model.log_prior(draws), wide.log_prior(draws))


@families
def test_counts_are_repetitions(family, bound):
    model, block = bound
    rng = np.random.default_rng(8)
    counts = rng.integers(0, 4, size=len(block))
    repeated = block.take(np.repeat(np.arange(len(block)), counts))
    draws, ones = rng.normal(size=(5, 3)), np.ones(len(repeated))
    weights = counts.astype(float)
    np.testing.assert_allclose(
        model.sum_potentials(draws, block, weights),
        model.sum_potentials(draws, repeated),
        rtol=1e-12,
    )
    for one, other in zip(
        model.gradient_and_hessian(draws[0], block, weights),
        model.gradient_and_hessian(draws[0], repeated, ones),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)


@families
def test_threads_do_not_share_buffers(family):
    data = family.data(num_rows=512)
    model, block = family.model.bind(data), data.take(np.arange(512))
    many = [np.random.default_rng(seed).normal(size=(40, 3)) for seed in range(24)]
    alone = [model.sum_potentials(draws, block) for draws in many]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda draws: model.sum_potentials(draws, block), many))
    np.testing.assert_array_equal(together, alone)


def test_more_values_than_a_kept_buffer():
    rng = np.random.default_rng(9)
    X, y = rng.normal(size=(300, 2)), rng.integers(0, 2, size=300)
    model = LogisticRegression(prior=Normal()).bind(open_rows((X, y)))
    block = open_rows((X, y)).take(np.arange(300))
    draws = rng.normal(size=(LARGEST_KEPT // 300 + 100, 2))
    np.testing.assert_allclose(
        model.sum_potentials(draws, block)[-3:],
        model.potentials(draws[-3:], block).sum(axis=0),
        rtol=1e-12,
    )


def test_dispersion_is_the_excess_of_the_variance():
    draws = np.log(3.0) * np.ones((1, 1))
    y = np.arange(4000.0)
    block = Block({"X": np.ones((4000, 1)), "y": y})
    model = NegativeBinomialRegression(dispersion=0.5, prior=Normal()).bind(open_rows((block.X, y)))
    mass = np.exp(model.potentials(draws, block)[:, 0] + model.log_base(block))
    assert mass.sum() == pytest.approx(1.0)
    assert mass @ y == pytest.approx(3.0)
    assert mass @ (y - 3.0) ** 2 == pytest.approx(3.0 + 0.5 * 3.0**2)


def test_no_dispersion_is_poisson():
    y = np.array([0.0, 3.0, 40.0])
    block = Block({"X": np.ones((3, 1)), "y": y})
    model = NegativeBinomialRegression(dispersion=1e-9, prior=Normal()).bind(
        open_rows((block.X, y))
    )
    value = model.potentials(np.array([[1.5]]), block)[:, 0] + model.log_base(block)
    np.testing.assert_allclose(value, stats.poisson.logpmf(y, np.exp(1.5)), atol=1e-5)


def test_the_family_of_the_documentation_works():
    written = glm.__doc__.split("This one is complete:")[1]
    scope = {"GLM": GLM, "np": np, "dataclass": dataclasses.dataclass}
    exec(textwrap.dedent(written), scope)
    rng = np.random.default_rng(10)
    X, y = rng.normal(size=(30, 2)), rng.exponential(size=30)
    model = scope["RateRegression"]().bind(open_rows((X, y)))
    block, draws = open_rows((X, y)).take(np.arange(30)), rng.normal(size=(4, 2))
    expected = stats.expon.logpdf(y[:, None], scale=np.exp(-X @ draws.T))
    np.testing.assert_allclose(model.potentials(draws, block), expected, rtol=1e-12)
    weights = rng.uniform(size=30)
    numerical = difference_gradient(lambda t: model.sum_potentials(t, block, weights), draws[0])
    np.testing.assert_allclose(model.gradient(draws[0], block, weights), numerical, rtol=1e-8)
    with pytest.raises(ValueError, match=r"row 4, column 'y': -1.0 .* must be positive"):
        model.bind(open_rows((X, np.where(np.arange(30) == 4, -1.0, y))))
