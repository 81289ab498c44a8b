"""What every adapted model promises, for models as users write them in each library."""

from __future__ import annotations

import functools
import pickle
from typing import Any

import numpy as np
import pytest

from corebayes.models.custom.finite_differences import difference_gradient, difference_hessian
from tests.adapters import numpyro_models, pymc_models
from tests.adapters.rows import Adapted, make_rows

# It says so once where pip installed it; nothing here uses its C code.
pytestmark = pytest.mark.filterwarnings("ignore:PyTensor could not link")

NUM_ROWS = 23
BUILDERS = {
    **{
        f"numpyro-{name}": functools.partial(numpyro_models.adapt, model, call)
        for name, model, call in numpyro_models.CASES
    },
    **{
        f"pymc-{name}": functools.partial(pymc_models.adapt, build)
        for name, build in pymc_models.CASES
    },
}

POSITIVE = {"sigma", "tau", "nu", "size", "scale", "rate_at_zero"}
SIMPLEX = {"probabilities", "weights"}


@functools.cache
def adapted(name: str) -> Adapted:
    return BUILDERS[name](make_rows(NUM_ROWS))


def points(model: Any, number: int = 5) -> Any:
    return np.random.default_rng(7).uniform(-1.2, 1.2, size=(number, model.dim))


# Compiling is what takes the time; one model of each library says most.
QUICK = {"numpyro-hierarchical", "pymc-poisson"}
each_model = pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in BUILDERS],
)


@each_model
def test_prior_and_potentials_add_up_to_the_librarys_log_density(name):
    model, data, log_density, _ = adapted(name)
    block, draws = data.take(np.arange(0, NUM_ROWS)), points(model)
    potentials = model.potentials(draws, block)
    assert potentials.shape == (NUM_ROWS, len(draws)) and potentials.dtype == np.float64
    ours = model.log_prior(draws) + potentials.sum(axis=0)
    np.testing.assert_allclose(ours, [log_density(theta) for theta in draws], rtol=1e-10, atol=1e-8)


@each_model
def test_a_subset_is_the_librarys_model_on_those_rows(name):
    model, data, *_ = adapted(name)
    chosen = np.array([1, 4, 5, 17, 20])
    rows = {field: values[chosen] for field, values in make_rows(NUM_ROWS).items()}
    # The number of groups is part of the model.
    _, _, log_density, _ = BUILDERS[name](rows)
    draws = points(model, 2)
    ours = model.log_prior(draws) + model.potentials(draws, data.take(chosen)).sum(axis=0)
    np.testing.assert_allclose(ours, [log_density(theta) for theta in draws], rtol=1e-10, atol=1e-8)


@each_model
def test_sums_and_gradients_agree_with_potentials(name):
    model, data, *_ = adapted(name)
    block = data.take(np.arange(0, NUM_ROWS))
    weights = np.random.default_rng(3).uniform(0.0, 4.0, size=NUM_ROWS)
    weights[2] = 0.0
    draws = points(model, 3)
    expected = weights @ model.potentials(draws, block)
    np.testing.assert_allclose(model.sum_potentials(draws, block, weights), expected, rtol=1e-12)
    np.testing.assert_allclose(
        model.sum_potentials(draws[1:2], block, weights), expected[1:2], rtol=1e-12
    )
    theta = draws[0]

    def likelihood(draws: Any) -> Any:
        return weights @ model.potentials(draws, block)

    scale = np.abs(expected).max()
    gradient, hessian = model.gradient_and_hessian(theta, block, weights)
    np.testing.assert_allclose(model.gradient(theta, block, weights), gradient, rtol=1e-9)
    np.testing.assert_allclose(gradient, difference_gradient(likelihood, theta), atol=1e-9 * scale)
    np.testing.assert_allclose(hessian, difference_hessian(likelihood, theta), atol=1e-6 * scale)
    prior_gradient = difference_gradient(model.log_prior, theta)
    np.testing.assert_allclose(model.log_prior_gradient(theta), prior_gradient, atol=1e-8)
    prior_hessian = difference_hessian(model.log_prior, theta)
    np.testing.assert_allclose(model.log_prior_hessian(theta), prior_hessian, atol=1e-5)


@each_model
def test_draws_come_back_under_the_models_names_and_constraints(name):
    model, _, _, own_values = adapted(name)
    draws = 3.0 * points(model)
    values = model.constrain(draws)
    for k, theta in enumerate(draws):
        own = own_values(theta)
        for variable, value in values.items():
            np.testing.assert_allclose(value[k], own[variable], rtol=1e-9, atol=1e-12)
    assert {parameter.name for parameter in model.parameters} <= set(values)
    # What has a value for each row is no parameter.
    assert "eta" not in values
    for variable in POSITIVE & set(values):
        assert np.all(values[variable] > 0.0)
    for variable in SIMPLEX & set(values):
        assert np.all(values[variable] > 0.0)
        np.testing.assert_allclose(values[variable].sum(axis=-1), 1.0, rtol=1e-12)
    if "upper" in values:
        assert np.all((values["mean"] > 0.05) & (values["mean"] < 0.95))
        assert np.all((values["upper"] > 0.0) & (values["upper"] < values["size"]))


@each_model
def test_no_rows_and_one_row(name):
    model, data, *_ = adapted(name)
    draws = points(model, 2)
    nothing = data.take(np.array([], dtype=np.int64))
    assert model.potentials(draws, nothing).shape == (0, 2)
    np.testing.assert_array_equal(model.sum_potentials(draws, nothing), 0.0)
    np.testing.assert_array_equal(model.gradient(draws[0], nothing, np.empty(0)), 0.0)
    np.testing.assert_array_equal(
        model.gradient_and_hessian(draws[0], nothing, np.empty(0))[1], 0.0
    )
    alone = model.potentials(draws, data.take(np.array([9])))
    together = model.potentials(draws, data.take(np.arange(0, NUM_ROWS)))
    np.testing.assert_allclose(alone[0], together[9], rtol=1e-12)


@pytest.mark.parametrize(
    "name",
    [
        "numpyro-hierarchical",
        "pymc-poisson",
        pytest.param("pymc-hierarchical", marks=pytest.mark.slow),
    ],
)
def test_a_model_can_be_sent_elsewhere(name):
    import cloudpickle

    model, data, *_ = adapted(name)
    dumps = pickle.dumps if name.startswith("numpyro") else cloudpickle.dumps
    again = pickle.loads(dumps(model))
    draws, block = points(model), data.take(np.arange(3, 9))
    np.testing.assert_array_equal(again.potentials(draws, block), model.potentials(draws, block))
    assert again.parameter_names == model.parameter_names


@each_model
def test_every_prior_is_told(name):
    model = adapted(name).model
    rows, first = model.priors(), model.statement().splitlines()[0]
    assert {row[0] for row in rows} >= {parameter.name for parameter in model.parameters}
    assert all(row[2] == f"the {model.library} model" for row in rows)
    told = {row[0]: row[1] for row in rows}
    if name == "numpyro-hierarchical":
        assert first.startswith("y ~ ")
        assert (told["tau"], told["effect"]) == ("HalfNormal(1)", "Normal(mu, tau)")
    if name == "pymc-hierarchical":
        assert first.startswith("y ~ ")
        assert told["tau"].startswith("Half")
