"""Derivatives of custom models by JAX: found by trying, in float64, equal to the closed form."""

import pickle
import sys

import numpy as np
import pytest

from corebayes.models import CustomModel
from corebayes.rows import open_rows

jnp = pytest.importorskip("jax.numpy")


def logistic_in_jax(draws, block):
    return -jnp.logaddexp(0.0, -block.y[:, None] * (block.X @ draws.T))


def normal_in_jax(draws):
    return -0.5 * jnp.sum(jnp.square(draws) / jnp.array([1.0, 4.0, 0.25]), axis=1)


def logistic_in_numpy(draws, block):
    return -np.logaddexp(0.0, -block.y[:, None] * (block.X @ draws.T))


def normal_in_numpy(draws):
    return -0.5 * np.sum(np.square(draws) / np.array([1.0, 4.0, 0.25]), axis=1)


def some_rows():
    rng = np.random.default_rng(0)
    return open_rows((rng.normal(size=(40, 3)), np.where(rng.random(40) < 0.3, -1.0, 1.0)))


@pytest.fixture
def rows():
    return some_rows()


@pytest.fixture(scope="module")
def compiled():
    return CustomModel(logistic_in_jax, normal_in_jax, 3).bind(some_rows())


@pytest.mark.parametrize("num_rows", [1, 31, 33, 40])
def test_slopes_equal_the_closed_form(rows, compiled, num_rows):
    model = compiled
    block = rows.take(np.arange(num_rows))
    weights = np.random.default_rng(1).gamma(0.5, size=num_rows) * 100.0
    theta = np.array([0.3, -1.2, 2.0])
    gradient, hessian = model.gradient_and_hessian(theta, block, weights)
    misses = 1.0 / (1.0 + np.exp(block.y * (block.X @ theta)))
    np.testing.assert_allclose(gradient, (weights * block.y * misses) @ block.X, rtol=1e-13)
    curvature = weights * misses * (1.0 - misses)
    np.testing.assert_allclose(hessian, -(block.X.T * curvature) @ block.X, rtol=1e-12)
    np.testing.assert_allclose(model.log_prior_gradient(theta), -theta / [1.0, 4.0, 0.25])
    np.testing.assert_allclose(model.log_prior_hessian(theta), -np.diag([1.0, 0.25, 4.0]))


def test_potentials_are_in_double_precision_and_the_users_setting_stays(rows):
    import jax

    before = jax.config.jax_enable_x64
    model = CustomModel(logistic_in_jax, normal_in_jax, 3).bind(rows)
    draws, block = np.random.default_rng(2).normal(size=(7, 3)), rows.take(np.arange(40))
    np.testing.assert_allclose(
        model.potentials(draws, block), logistic_in_numpy(draws, block), rtol=1e-14
    )
    assert jax.config.jax_enable_x64 == before
    model.potentials(draws, block)[0] = 0.0  # a copy of one's own, as of any model


def test_numpy_functions_fall_back_to_differences(rows):
    by_numpy = CustomModel(logistic_in_numpy, normal_in_numpy, 3).bind(rows)
    by_jax = CustomModel(logistic_in_jax, normal_in_jax, 3).bind(rows)
    theta, block = np.array([0.3, -1.2, 2.0]), rows.take(np.arange(40))
    exact = by_jax.gradient(theta, block, np.ones(40))
    differences = by_numpy.gradient(theta, block, np.ones(40))
    np.testing.assert_allclose(differences, exact, rtol=1e-7)
    assert not np.array_equal(differences, exact)


def test_a_copy_in_another_process_has_the_same_bits(rows):
    model = CustomModel(logistic_in_jax, normal_in_jax, 3).bind(rows)
    theta, block = np.array([0.3, -1.2, 2.0]), rows.take(np.arange(40))
    gradient = model.gradient(theta, block, np.ones(40))
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.gradient(theta, block, np.ones(40)), gradient)


@pytest.mark.parametrize(
    ("num_rows", "num_draws"),
    [
        # Every number of rows and of draws once, the others with each other.
        pytest.param(rows, draws, marks=() if m == n else pytest.mark.slow)
        for m, rows in enumerate([1, 5, 33, 40])
        for n, draws in enumerate([1, 3, 9, 70])
    ],
)
def test_values_at_any_number_of_rows_and_draws(rows, num_rows, num_draws):
    """Both are filled up to the sizes that JAX compiles for; nothing of that is seen."""
    model = CustomModel(logistic_in_jax, normal_in_jax, 3).bind(rows)
    rng = np.random.default_rng(3)
    draws, block = rng.normal(size=(num_draws, 3)), rows.take(np.arange(num_rows))
    weights = rng.gamma(0.5, size=num_rows) * 100.0
    potentials = logistic_in_numpy(draws, block)
    np.testing.assert_allclose(model.potentials(draws, block), potentials, rtol=1e-13)
    np.testing.assert_allclose(
        model.sum_potentials(draws, block, weights), weights @ potentials, rtol=1e-12
    )
    np.testing.assert_allclose(
        model.sum_potentials(draws, block), potentials.sum(axis=0), rtol=1e-12
    )
    np.testing.assert_allclose(model.log_prior(draws), normal_in_numpy(draws), rtol=1e-13)
    out = np.empty((num_rows, num_draws))
    assert model.potentials(draws, block, out) is out
    np.testing.assert_allclose(out, potentials, rtol=1e-13)


def test_few_shapes_are_compiled(rows):
    """Each compilation traces the function: as many times as there are sizes."""
    traced = []

    def counted(draws, block):
        traced.append(draws.shape)
        return logistic_in_jax(draws, block)

    model = CustomModel(counted, normal_in_jax, 3).bind(rows)
    traced.clear()
    for num_draws in range(1, 30):
        draws = np.full((num_draws, 3), 0.1)
        for num_rows in range(1, 40, 3):
            block = rows.take(np.arange(num_rows))
            model.sum_potentials(draws, block, np.ones(num_rows))
    assert len(traced) <= 6


def test_jax_that_functions_import_only_when_they_are_called(monkeypatch):
    jax = sys.modules["jax"]
    monkeypatch.delitem(sys.modules, "jax")

    def likelihood(draws, block):
        # What `import jax` does here the first time.
        sys.modules["jax"] = jax
        return logistic_in_jax(draws, block)

    assert CustomModel(likelihood, normal_in_jax, 3).bind(some_rows()).is_traced
