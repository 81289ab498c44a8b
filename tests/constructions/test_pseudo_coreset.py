"""Learned points: their gradient, what they reach, and that they are coresets like any other."""

import numpy as np
import pytest

import corebayes as cb
from corebayes.constructions.pseudo_coreset import row_gradients
from corebayes.diagnostics import dense_weights, gaussian_kl, laplace_kl
from corebayes.rows import open_rows
from corebayes.tangent.monte_carlo import MonteCarloSpace
from corebayes.types import Block, WeightedPoints
from tests.contract.cases import MODELS

CASES = {case.name: case for case in MODELS}


def gaussian_nodes(fit):
    """Draws whose averages are exact for polynomials of degree five: −√3, 0 (4 times), √3."""
    one = np.sqrt(3.0) * np.array([-1.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    z = np.stack(np.meshgrid(*[one] * fit.mean.size, indexing="ij"), axis=-1)
    return fit.mean + z.reshape(-1, fit.mean.size) @ fit.factor.T


@pytest.mark.parametrize("name", ["gaussian", "linear"])
def test_gradients_are_derivatives_of_the_exact_kl(name):
    problem = CASES[name].problem(num_rows=40)
    model = problem.model
    points = Block({k: v.copy() for k, v in problem.data.take(np.array([4, 9])).fields.items()})
    weights = np.array([7.0, 19.0])

    def kl(rows, weights):
        return gaussian_kl(model.posterior(model.statistics(rows, weights)), problem.full_posterior)

    space = MonteCarloSpace(
        model, gaussian_nodes(model.posterior(model.statistics(points, weights)))
    )
    vectors = space.embed(points)
    residual = space.total(problem.data.take(np.arange(40))).element - space.combine(
        vectors, weights
    )
    weighted = WeightedPoints(np.array([-1, -2]), points, weights)
    found = row_gradients(model, space.draws, weighted, residual)
    assert set(found) == set(points.fields)
    for field, gradient in found.items():
        for place in np.ndindex(gradient.shape):
            sides = []
            for step in (1e-5, -1e-5):
                moved = points[field].copy()
                moved[place] += step
                sides.append(kl(Block({**points.fields, field: moved}), weights))
            difference = (sides[0] - sides[1]) / 2e-5
            assert gradient[place] == pytest.approx(difference, rel=1e-5, abs=1e-6), (field, place)
    steps = 1e-5 * np.eye(2)
    by_weight = [(kl(points, weights + s) - kl(points, weights - s)) / 2e-5 for s in steps]
    assert np.allclose(-space.project(vectors, residual), by_weight, rtol=1e-5)


@pytest.mark.parametrize("name", ["gaussian", "logistic", "poisson", "student-t"])
@pytest.mark.parametrize("intercept", [False, True])
def test_row_gradients_by_differences(name, intercept):
    case = CASES[name]
    if name == "gaussian" and intercept:
        return
    prior = cb.Normal()
    options = {} if name == "gaussian" else {"intercept": intercept, "prior": prior}
    if name == "student-t":
        options |= {"scale": 1.0, "df": 4.0}
    kind = type(case.model)
    model = case.model if name == "gaussian" else kind(**options)
    data = open_rows(case.data())
    model = model.bind(data)
    rows, rng = data.take(np.array([3, 8])), np.random.default_rng(0)
    draws, amounts = rng.normal(size=(9, model.dim)), rng.normal(size=9)
    for field, gradient in model.row_gradients(draws, rows, amounts).items():
        for place in np.ndindex(gradient.shape):
            sides = []
            for step in (1e-6, -1e-6):
                moved = rows[field].copy()
                moved[place] += step
                moved_rows = Block({**rows.fields, field: moved})
                sides.append(model.potentials(draws, moved_rows)[place[0]] @ amounts)
            difference = (sides[0] - sides[1]) / 2e-6
            assert gradient[place] == pytest.approx(difference, rel=1e-5, abs=1e-6)


def test_few_points_in_many_dimensions_beat_every_subset():
    rng = np.random.default_rng(0)
    data = open_rows(rng.normal(size=20) + rng.normal(size=(500, 20)))
    method = cb.PseudoCoreset(update=cb.Adam(num_steps=400, rate=lambda t: 0.2 / np.sqrt(t)))
    learned = cb.build(cb.GaussianMean(1.0), data, size=4, method=method)
    chosen = cb.build(cb.GaussianMean(1.0), data, size=4, method=cb.SparseVI())
    assert laplace_kl(learned, data) < 0.02 < 0.01 * laplace_kl(chosen, data)


def test_much_closer_than_uniform_with_labels_that_stay():
    case = CASES["logistic"]
    data = open_rows(case.data(num_rows=400))
    method = cb.PseudoCoreset(update=cb.Adam(num_steps=300, rate=lambda t: 0.2 / np.sqrt(t)))
    learned = cb.build(case.model, data, size=12, method=method, seed=1)
    uniform = cb.build(case.model, data, size=12, method=cb.Uniform(), seed=1)
    assert laplace_kl(learned, data) < 0.05 * laplace_kl(uniform, data)
    assert set(np.unique(learned.rows.y)) <= {0.0, 1.0}


def test_a_subsample_of_rows_is_enough():
    case = CASES["linear"]
    data = open_rows(case.data(num_rows=400))
    update = cb.Adam(num_steps=300, rate=lambda t: 0.2 / np.sqrt(t))
    method = cb.PseudoCoreset(update=update, gradient_rows=100)
    learned = cb.build(case.model, data, size=12, method=method, seed=1)
    uniform = cb.build(case.model, data, size=12, method=cb.Uniform(), seed=1)
    assert laplace_kl(learned, data) < 0.1 * laplace_kl(uniform, data)
    assert learned.rows.y.min() not in data.take(np.arange(400)).y, "targets of a line are learned"


def test_saves_loads_certifies_and_samples_like_any_coreset(tmp_path):
    case = CASES["linear"]
    data = open_rows(case.data(num_rows=200))
    update = cb.Adam(num_steps=300, rate=lambda t: 0.2 / np.sqrt(t))
    coreset = cb.build(case.model, data, size=12, method=cb.PseudoCoreset(update=update))
    assert np.array_equal(coreset.indices, np.arange(-12, 0))
    coreset.save(tmp_path / "learned.parquet")
    loaded = cb.load(tmp_path / "learned.parquet")
    assert np.array_equal(loaded.indices, coreset.indices)
    assert np.array_equal(loaded.rows.X, coreset.rows.X)
    assert np.array_equal(loaded.rows.y, coreset.rows.y)
    certificate = cb.certify(loaded, data)
    exact = laplace_kl(coreset, data)
    estimate, error = certificate.reverse_kl
    assert estimate == pytest.approx(exact, abs=5 * error + 1e-3)
    draws = cb.sample(coreset, draws=200, chains=2, tune=100, seed=0, progress=False)
    fit = cb.Exact().fit(cb.Posterior.of(coreset))
    means = draws.posterior.mean(("chain", "draw"))["beta"].values
    assert np.allclose(means, fit.mean, atol=5 * np.sqrt(np.diag(fit.factor @ fit.factor.T) / 100))
    assert np.array_equal(draws["coreset"]["row_id"].values, coreset.indices)


def test_other_data_is_still_refused():
    case = CASES["linear"]
    method = cb.PseudoCoreset(update=cb.Adam(num_steps=3))
    coreset = cb.build(case.model, case.data(num_rows=50), size=5, method=method)
    with pytest.raises(ValueError, match="built from 50 rows"):
        cb.certify(coreset, case.data(num_rows=60))
    with pytest.raises(ValueError, match="none of the data's"):
        dense_weights(coreset)


def test_models_without_derivatives_in_the_rows_are_refused():
    case = CASES["custom"]
    with pytest.raises(TypeError, match="CustomModel has no method row_gradients"):
        cb.build(case.model, case.data(), size=5, method=cb.PseudoCoreset())
    problem = CASES["linear"].problem()
    with pytest.raises(ValueError, match="PseudoCoreset needs a size"):
        cb.PseudoCoreset().init(np.random.default_rng(0), problem, None)
