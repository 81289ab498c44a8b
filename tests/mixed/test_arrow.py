"""The arrow's Gaussian and its tangent space against dense matrices, draws and brute force."""

import numpy as np
import pytest

from corebayes.arrow.expectation import sums_of
from corebayes.arrow.fit import Fitting, _gaussian, fit
from corebayes.arrow.gaussian import ArrowGaussian
from corebayes.arrow.start import fitting_of
from corebayes.tangent.arrow.implicit import ImplicitSpace
from corebayes.tangent.arrow.space import ArrowSpace
from tests.mixed.cases import NAMES, case


def fitted(name, **options):
    problem = case(name, **options).problem()
    model, fitting = problem.model, fitting_of(problem.model)
    block = problem.data.take(np.arange(problem.data.num_rows))
    found = fit(
        fitting,
        fitting.start(np.zeros(model.dim)),
        lambda q: sums_of(model, fitting.layout, q, block, None),
        tolerance=1e-10,
    )
    return model, fitting, block, found


@pytest.mark.parametrize("name", ["poisson", "student-t"])
def test_a_fit_that_is_cut_short_is_the_highest_so_far(name):
    problem = case(name).problem()
    model, fitting = problem.model, fitting_of(problem.model)
    block = problem.data.take(np.arange(problem.data.num_rows))
    seen = []

    def sums_at(q):
        return sums_of(model, fitting.layout, q, block, None)

    for most in range(1, 7):
        found = fit(
            fitting, fitting.start(np.zeros(model.dim)), sums_at, tolerance=0.0, max_steps=most
        )
        seen.append(found.bound)
    assert np.isfinite(seen[0]) and np.all(np.diff(seen) >= 0.0)


def test_only_what_bends_up_is_turned_over():
    _, fitting, _, found = fitted("slopes")
    gaussian = found.gaussian
    whole = found.sums.padded(fitting.layout.num_wide).plus(fitting.prior.sums(gaussian.mean))
    bends = whole.own_own.copy()
    # In group 0 the second effect rises as much as it should fall.
    bends[0, 1, 1] *= -1.0
    bent = whole._replace(own_own=bends)
    mended = _gaussian(fitting.layout, gaussian.wide_mean, gaussian.own_mean, bent)
    right = _gaussian(fitting.layout, gaussian.wide_mean, gaussian.own_mean, whole)
    np.testing.assert_allclose(mended.root[1:], right.root[1:], rtol=1e-12)
    precision = mended.root[0] @ mended.root[0].T
    assert np.all(np.linalg.eigvalsh(precision) > 0.0)
    assert precision[1, 1] == pytest.approx(-whole.own_own[0, 1, 1], rel=0.3)


def reach(gaussian: ArrowGaussian) -> float:
    """How far from zero the parameters of all rows are."""
    return float(np.max(np.abs(gaussian.wide_mean[: gaussian.layout.num_touched])))


class Walled:
    """A prior that has no numbers beyond some distance, as of the exponential of a parameter."""

    def __init__(self, prior, wall):
        self.prior, self.wall = prior, wall

    def __getattr__(self, name):
        return getattr(self.prior, name)

    def sums(self, theta, *, spread=None, coupled=None):
        found = self.prior.sums(theta, spread=spread, coupled=coupled)
        beyond = coupled is not None and reach(coupled) > self.wall
        return found._replace(wide_wide=np.nan * found.wide_wide) if beyond else found


def test_a_step_out_of_all_numbers_is_shortened():
    problem = case("student-t").problem()
    model, fitting = problem.model, fitting_of(problem.model)
    block = problem.data.take(np.arange(problem.data.num_rows))
    start = fitting.start(np.zeros(model.dim))
    at = fitting.at(start, sums_of(model, fitting.layout, start, block, None))
    length = reach(fitting.step(at).gaussian)
    walled = Fitting(fitting.layout, Walled(fitting.prior, 0.5 * length))
    assert 0.0 < reach(walled.step(at).gaussian) <= 0.5 * length
    with pytest.raises(FloatingPointError, match="no curvature"):
        Fitting(fitting.layout, Walled(fitting.prior, -1.0)).step(at)


def dense(gaussian: ArrowGaussian) -> np.ndarray:
    """The covariance, from the definition of the Gaussian."""
    layout = gaussian.layout
    p, (num_groups, q) = layout.num_wide, layout.own_positions.shape
    # θ = mean + T z, z standard normal
    T = np.zeros((layout.dim, layout.dim))
    T[layout.wide_positions, :p] = gaussian.factor
    for g in range(num_groups):
        own = layout.own_positions[g]
        T[own, :p] = -gaussian.slopes[g] @ gaussian.factor
        T[np.ix_(own, p + g * q + np.arange(q))] = np.linalg.inv(gaussian.root[g]).T
    return T @ T.T


# Constants beside the coefficients that are known here; the Gaussian one has learned noise.
SLOWER = ("negative-binomial", "student-t", "poisson")


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow if n in SLOWER else ()) for n in NAMES],
)
def test_the_fit_is_where_expected_slopes_vanish_and_curvatures_are_the_precision(name):
    model, _, block, found = fitted(name)
    gaussian = found.gaussian
    covariance = dense(gaussian)
    rng = np.random.default_rng(0)
    theta = gaussian.mean
    free = np.setdiff1d(np.arange(model.dim), model.structure.scales)
    # Expectations over rows' predictors with the scales where they are, by many draws.
    draws = theta + rng.multivariate_normal(
        np.zeros(model.dim), covariance, size=400, method="cholesky"
    )
    draws = np.concatenate([draws, 2.0 * theta - draws])
    weights = np.ones(len(block))
    parts = [model.gradient_and_hessian(draw, block, weights) for draw in draws]
    slopes = np.mean([gradient for gradient, _ in parts], axis=0)
    slopes = slopes + model.log_prior_gradient(theta)
    # In standard deviations of each parameter the shift that the slopes ask for is small.
    shift = covariance[np.ix_(free, free)] @ slopes[free]
    assert np.max(np.abs(shift) / np.sqrt(np.diag(covariance)[free])) < 0.15
    curvature = -np.mean([hessian for _, hessian in parts], axis=0)
    curvature = (curvature - model.log_prior_hessian(theta))[np.ix_(free, free)]
    precision = np.linalg.inv(covariance)[np.ix_(free, free)]
    scale = np.sqrt(np.outer(np.diag(curvature), np.diag(curvature)))
    assert np.max(np.abs(precision - curvature) / scale) < 0.15


@pytest.mark.parametrize("name", ["logistic", "slopes", "crossed"])
def test_draws_and_predictors_have_the_covariance(name):
    model, fitting, block, found = fitted(name)
    covariance = dense(found.gaussian)
    draws = found.gaussian.draw(np.random.default_rng(1), 40_000)
    sample = np.cov(draws, rowvar=False)
    sd = np.sqrt(np.diag(covariance))
    assert np.max(np.abs(sample - covariance) / np.outer(sd, sd)) < 0.04
    split = fitting.layout.split(model, block)
    whitened = found.gaussian.whiten(split)
    spread = np.sum(whitened.wide**2, axis=(1, 2)) + np.sum(whitened.own**2, axis=(1, 2))
    touch = model.touch(block)
    places = model.places(touch.groups)
    for row in (0, 7, 100):
        design = np.zeros(model.dim)
        design[places[row]] = touch.designs[row, 0]
        assert spread[row] == pytest.approx(design @ covariance @ design, rel=1e-8)
        assert whitened.mean[row, 0] == pytest.approx(design @ found.gaussian.mean, rel=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_sums_and_totals_and_vectors_agree(name):
    model, fitting, block, found = fitted(name)
    space = ArrowSpace(model, found.gaussian, fitting.prior)
    vectors = space.embed(block)
    ones = np.ones(len(block))
    total = space.total(block)
    size = np.abs(total.element).max()
    np.testing.assert_allclose(space.combine(vectors, ones), total.element, atol=1e-9 * size)
    from_sums = space.total_of(found.gaussian.whitened_sums(found.sums))
    np.testing.assert_allclose(from_sums.element, total.element, atol=1e-8 * size)
    assert from_sums.mean == pytest.approx(total.mean)
    gram = space.gram(vectors)
    np.testing.assert_allclose(np.diag(gram), space.squared_norms(vectors), rtol=1e-9)
    some = space.take(vectors, np.array([3, 50]))
    element = space.combine(some, np.array([0.5, 2.0]))
    np.testing.assert_allclose(
        space.project(vectors, element), gram[:, [3, 50]] @ [0.5, 2.0], atol=1e-12
    )


@pytest.mark.parametrize("name", NAMES)
def test_inner_products_are_covariances_of_the_potentials(name):
    # Of many rows, so that potentials are nearly quadratic where the posterior is.
    model, fitting, block, found = fitted(name, num_rows=4000)
    space = ArrowSpace(model, found.gaussian, fitting.prior)
    gram = space.gram(space.embed(block.take(slice(0, 40))))
    draws = found.gaussian.draw(np.random.default_rng(2), 20_000)
    sample = np.cov(model.potentials(draws, block.take(slice(0, 40))))
    sd = np.sqrt(np.diag(sample))
    assert np.max(np.abs(gram - sample) / np.outer(sd, sd)) < 0.1


@pytest.mark.parametrize("name", NAMES)
def test_rows_known_by_inner_products_alone_are_the_same(name):
    model, fitting, block, found = fitted(name)
    written = ArrowSpace(model, found.gaussian, fitting.prior)
    implicit = ImplicitSpace(model, found.gaussian, fitting.prior)
    vectors, others = written.embed(block), implicit.embed(block)
    weights = np.random.default_rng(0).uniform(size=len(block))
    element = written.combine(vectors, weights)
    size = np.abs(element).max()
    np.testing.assert_allclose(implicit.combine(others, weights), element, atol=1e-12 * size)
    np.testing.assert_allclose(
        implicit.project(others, element), written.project(vectors, element), atol=1e-12
    )
    np.testing.assert_allclose(implicit.gram(others), written.gram(vectors), atol=1e-12)
    np.testing.assert_allclose(
        implicit.squared_norms(others), written.squared_norms(vectors), atol=1e-12
    )


@pytest.mark.parametrize("name", ["crossed", "gaussian"])
def test_sums_that_leave_out_zeros_are_the_same(name, monkeypatch):
    model, fitting, block, found = fitted(name)
    weights = np.random.default_rng(0).uniform(size=len(block))
    dense_sums = sums_of(model, fitting.layout, found.gaussian, block, weights)
    monkeypatch.setattr("corebayes.arrow.layout.SPARSE", 0)
    sparse_sums = sums_of(model, fitting.layout, found.gaussian, block, weights)
    for one, other in zip(dense_sums, sparse_sums, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-11)
