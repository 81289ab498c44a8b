"""The paper's lemma and propositions, and KL between Gaussians, against closed forms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from corebayes.diagnostics import (
    dense_weights,
    fisher_metric,
    gaussian_kl,
    hilbert_objective,
    laplace_kl,
    log_ratios,
    metric_constant,
    path_kl,
)
from corebayes.models import CustomModel
from corebayes.problem import Problem
from corebayes.rows import open_rows
from corebayes.samplers.draws import Draws
from corebayes.samplers.exact import Exact
from corebayes.samplers.laplace import Laplace, full_posterior
from corebayes.samplers.posterior import Posterior
from corebayes.tangent.monte_carlo import MonteCarlo
from corebayes.types import Gaussian
from tests.coresets import (
    exact_kl,
    gaussian_mean,
    linear,
    logistic,
    near,
    posteriors,
    standard_normals,
    weighted,
)

DIRECTIONS = ("reverse", "forward", "symmetric")


def dense_kl(p: Gaussian, q: Gaussian) -> float:
    """The textbook formula with inverses and determinants."""
    cov_p, cov_q = p.factor @ p.factor.T, q.factor @ q.factor.T
    shift = q.mean - p.mean
    ratio = np.linalg.slogdet(cov_q)[1] - np.linalg.slogdet(cov_p)[1]
    trace = np.trace(np.linalg.solve(cov_q, cov_p))
    return 0.5 * (trace - p.mean.size + shift @ np.linalg.solve(cov_q, shift) + ratio)


def random_gaussian(rng: np.random.Generator, dim: int) -> Gaussian:
    return Gaussian(rng.normal(size=dim), rng.normal(size=(dim, dim)) + 2.0 * np.eye(dim))


class TestGaussianKl:
    @given(dim=st.integers(1, 6), seed=st.integers(0, 10_000))
    @settings(max_examples=60, deadline=None)
    def test_equals_the_textbook_formula(self, dim: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        p, q = random_gaussian(rng, dim), random_gaussian(rng, dim)
        assert gaussian_kl(p, q) == pytest.approx(dense_kl(p, q), rel=1e-7, abs=1e-9)

    @given(dim=st.integers(1, 6), seed=st.integers(0, 10_000))
    @settings(max_examples=30, deadline=None)
    def test_does_not_depend_on_the_choice_of_factor(self, dim: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        p, q = random_gaussian(rng, dim), random_gaussian(rng, dim)
        rotation = np.linalg.qr(rng.normal(size=(dim, dim))).Q
        turned = Gaussian(p.mean, p.factor @ rotation)
        assert gaussian_kl(turned, q) == pytest.approx(gaussian_kl(p, q), rel=1e-9)
        assert abs(gaussian_kl(turned, p)) < 1e-25

    def test_is_exactly_zero_for_equal_arguments(self) -> None:
        p = random_gaussian(np.random.default_rng(0), 5)
        assert gaussian_kl(p, p) == 0.0

    @pytest.mark.parametrize("size", [1e-3, 1e-6, 1e-9])
    def test_keeps_its_digits_for_close_arguments(self, size: float) -> None:
        # KL(N(0, (1 + e)²) ‖ N(0, 1)) = e + e²/2 − log(1 + e) = e² − e³/3 + e⁴/4 − …
        sizes = size * np.array([1.0, -2.0, 0.5])
        p = Gaussian(np.zeros(3), np.diag(1.0 + sizes))
        q = Gaussian(np.zeros(3), np.eye(3))
        true = np.diag(p.factor) - 1.0
        expected = np.sum(true**2 - true**3 / 3 + true**4 / 4 - true**5 / 5)
        assert gaussian_kl(p, q) == pytest.approx(expected, rel=1e-9)

    def test_knows_which_argument_is_first(self) -> None:
        wide, narrow = Gaussian(np.zeros(1), np.eye(1) * 3.0), Gaussian(np.zeros(1), np.eye(1))
        assert gaussian_kl(wide, narrow) == pytest.approx(4.0 - np.log(3.0))
        assert gaussian_kl(narrow, wide) == pytest.approx(np.log(3.0) - 4.0 / 9.0)


class TestLaplaceKl:
    @pytest.mark.parametrize("make", [gaussian_mean, linear])
    def test_is_exact_for_conjugate_models(self, make: Any) -> None:
        model, data = make()
        coreset = near(model, data, share=0.6)
        for direction, value in exact_kl(coreset, data).items():
            assert laplace_kl(coreset, data, direction=direction) == pytest.approx(value, rel=1e-6)

    def test_is_normalised_by_the_prior(self) -> None:
        model, data = logistic()
        coreset = near(model, data)
        prior = weighted(model, data, [], [])
        expected = laplace_kl(coreset, data) / laplace_kl(prior, data)
        assert laplace_kl(coreset, data, normalise=True) == pytest.approx(expected, rel=1e-9)
        assert laplace_kl(prior, data, normalise=True) == pytest.approx(1.0)

    def test_is_zero_for_all_rows(self) -> None:
        model, data = logistic()
        everything = weighted(model, data, np.arange(data.num_rows), 1.0)
        assert 0.0 <= laplace_kl(everything, data) < 1e-12


class TestLogRatios:
    def test_are_log_density_ratios_up_to_a_constant(self) -> None:
        model, data = logistic()
        coreset = near(model, data, share=0.5)
        draws = standard_normals(50, model.dim)
        block = data.take(np.arange(0, data.num_rows))
        direct = model.potentials(draws, block).sum(axis=0)
        direct -= coreset.weights @ model.potentials(draws, coreset.rows)
        np.testing.assert_allclose(
            log_ratios(coreset, data, draws), direct - direct.mean(), atol=1e-10
        )

    def test_parts_of_a_long_run_agree(self) -> None:
        model, data = linear(num_rows=20)
        coreset = near(model, data)
        draws = standard_normals(9000, model.dim)
        all_at_once = model.sum_potentials(draws, data.take(np.arange(0, data.num_rows)))
        all_at_once -= model.sum_potentials(draws, coreset.rows, coreset.weights)
        np.testing.assert_allclose(
            log_ratios(coreset, data, draws), all_at_once - all_at_once.mean(), atol=1e-8
        )

    def test_counts_repeat_rows(self) -> None:
        model, data = linear(num_rows=20)
        block = data.take(np.arange(20))
        counts = np.arange(20.0) % 4
        counted = open_rows((block.X, block.y), counts=counts)
        times = np.repeat(np.arange(20), counts.astype(int))
        repeated = open_rows((block.X[times], block.y[times]))
        draws = standard_normals(30, model.dim)
        nothing = weighted(model, counted, [], [])
        np.testing.assert_allclose(
            log_ratios(nothing, counted, draws), log_ratios(nothing, repeated, draws), atol=1e-9
        )


class TestPathKl:
    @pytest.mark.parametrize("make", [gaussian_mean, pytest.param(linear, marks=pytest.mark.slow)])
    @pytest.mark.parametrize("direction", DIRECTIONS)
    def test_is_unbiased(self, make: Any, direction: Any) -> None:
        model, data = make()
        coreset = near(model, data, share=0.5)
        truth = exact_kl(coreset, data)
        # A swapped Beta or a wrong factor is far outside what 100 seeds allow.
        assert abs(truth["reverse"] - truth["forward"]) > 0.1 * truth["reverse"]
        scores, values = [], []
        for seed in range(100):
            estimate = path_kl(
                np.random.default_rng(seed), coreset, data, direction=direction, num_draws=16
            )
            scores.append((estimate.value - truth[direction]) / estimate.standard_error)
            values.append(estimate.value)
        assert np.mean(np.abs(scores) < 3.0) >= 0.97
        assert 0.8 < np.std(scores) < 1.3
        error = np.std(values) / np.sqrt(len(values))
        assert abs(np.mean(values) - truth[direction]) < 3.5 * error
        assert error < 0.02 * truth[direction]

    def test_laplace_draws_over_all_rows_agree_for_a_gaussian_posterior(self) -> None:
        model, data = linear()
        coreset = near(model, data, share=0.5)
        truth = exact_kl(coreset, data)["reverse"]
        for sampler in (Exact(), Laplace()):
            estimate = path_kl(np.random.default_rng(0), coreset, data, sampler=sampler)
            assert abs(estimate.value - truth) < 3.0 * estimate.standard_error

    def test_follows_the_laplace_kl_of_a_logistic_model(self) -> None:
        model, data = logistic()
        coreset = near(model, data, share=0.7)
        estimate = path_kl(np.random.default_rng(0), coreset, data)
        assert estimate.value == pytest.approx(laplace_kl(coreset, data), rel=0.15)

    def test_is_zero_for_all_rows(self) -> None:
        model, data = linear()
        everything = weighted(model, data, np.arange(data.num_rows), 1.0)
        assert path_kl(np.random.default_rng(0), everything, data).value < 1e-20

    def test_needs_two_of_each(self) -> None:
        model, data = linear()
        with pytest.raises(ValueError, match="num_draws must be at least 2"):
            path_kl(np.random.default_rng(0), near(model, data), data, num_draws=1)


class TestProposition1:
    """Greedy selection is steepest alignment of geodesics."""

    @pytest.mark.parametrize("seed", range(6))
    def test_selection_by_correlation_minimises_the_norm(self, seed: int) -> None:
        model, data = linear(num_rows=25, seed=seed)
        rng = np.random.default_rng(seed)
        active = rng.choice(25, size=5, replace=False)
        # Weights large enough that the residual points away from some active rows.
        coreset = weighted(model, data, active, 6.0 * rng.random(5))
        weights = dense_weights(coreset)
        metric = fisher_metric(rng, Problem(model, data), weights)
        residual = 1.0 - weights

        def norm(n: int, t: float) -> float:
            # ‖ξ_{w→1} − ξ_{w→w+t 1_n}‖²_w with ξ_{u→v} = v − u
            gap = residual.copy()
            gap[n] -= t
            return float(gap @ metric @ gap)

        best = np.empty(25)
        for n in range(25):
            span = (-1e3, 1e3) if n in active else (0.0, 1e3)
            best[n] = minimize_scalar(
                lambda t, n=n: norm(n, t), bounds=span, method="bounded", options={"xatol": 1e-9}
            ).fun
        correlations = metric @ residual / np.sqrt(np.diag(metric))
        scores = np.where(np.isin(np.arange(25), active), np.abs(correlations), correlations)
        assert int(np.argmin(best)) == int(np.argmax(scores))

    def test_hilbert_objective_is_the_squared_distance_of_tangents(self) -> None:
        model, data = gaussian_mean(num_rows=12)
        coreset = near(model, data)
        rng = np.random.default_rng(0)
        reference = rng.random(12)
        metric = fisher_metric(rng, Problem(model, data), reference)
        to_full, to_coreset = 1.0 - reference, dense_weights(coreset) - reference
        gap = to_full - to_coreset
        assert hilbert_objective(rng, coreset, data, reference) == pytest.approx(gap @ metric @ gap)

    def test_hilbert_objective_is_the_variance_of_the_residual(self) -> None:
        model, data = gaussian_mean(num_rows=12)
        coreset = near(model, data)
        reference = np.linspace(0.5, 2.0, 12)
        at_reference = weighted(model, data, np.arange(12), reference)
        draws = posteriors(at_reference, data)[0].draw(np.random.default_rng(1), 20_000)
        variance = log_ratios(coreset, data, draws).var()
        value = hilbert_objective(np.random.default_rng(0), coreset, data, reference)
        assert value == pytest.approx(variance, rel=0.05)


@dataclass(frozen=True)
class FixedNormals:
    """Laplace draws from the same standard normals at every w."""

    def draw(self, rng: Any, posterior: Any, num_draws: int, start: Any = None) -> Draws:
        fit = Laplace().fit(posterior)
        values = fit.mean + standard_normals(num_draws, posterior.dim) @ fit.factor.T
        return Draws(values=values[None], location=fit.mean)


class TestProposition2:
    """The Hilbert objective bounds the symmetrised KL."""

    @pytest.mark.parametrize("make", [gaussian_mean, linear])
    @pytest.mark.parametrize("reference", ["coreset", "full", "other"])
    @pytest.mark.parametrize("seed", range(3))
    def test_the_bound_holds(self, make: Any, reference: str, seed: int) -> None:
        model, data = make(num_rows=20, seed=seed)
        coreset = near(model, data, spread=0.5, share=0.7, seed=seed)
        rng = np.random.default_rng(seed)
        weights = {
            "coreset": dense_weights(coreset),
            "full": np.ones(20),
            "other": 3.0 * rng.random(20),
        }[reference]
        constant = metric_constant(rng, coreset, data, weights)
        objective = hilbert_objective(rng, coreset, data, weights)
        symmetrised = exact_kl(coreset, data)["symmetric"]
        assert symmetrised <= constant * objective * (1.0 + 1e-9)
        # The bound says something: it is not merely a huge number.
        assert constant * objective < 100.0 * symmetrised

    def test_the_quadrature_has_converged(self) -> None:
        model, data = linear(num_rows=15)
        coreset, rng = near(model, data, share=0.6), np.random.default_rng(0)
        coarse, fine = (
            metric_constant(rng, coreset, data, np.ones(15), num_nodes=nodes) for nodes in (8, 64)
        )
        assert coarse == pytest.approx(fine, rel=1e-3)

    def test_the_constant_is_one_and_the_bound_sharp_for_a_constant_metric(self) -> None:
        # f_n(θ) = a_nᵀθ under a standard normal prior: log Z(w) = ½ ‖Aᵀw‖², so G = A Aᵀ always.
        rng = np.random.default_rng(3)
        data = open_rows(rng.normal(size=(9, 2)))
        model = CustomModel(
            lambda draws, block: block.X @ draws.T,
            lambda draws: -0.5 * np.sum(np.square(draws), axis=1),
            2,
            log_concave=True,
        ).bind(data)
        coreset = weighted(model, data, [1, 4, 5], [2.0, 1.0, 4.0])
        geometry = MonteCarlo(num_draws=50, sampler=FixedNormals())
        reference = np.full(9, 0.3)
        constant = metric_constant(rng, coreset, data, reference, geometry=geometry)
        assert constant == pytest.approx(1.0, rel=1e-4)
        many = MonteCarlo(num_draws=100_000, sampler=FixedNormals())
        objective = hilbert_objective(rng, coreset, data, reference, geometry=many)
        full = full_posterior(model, data)
        ours = Laplace().fit(Posterior.of(coreset))
        assert objective == pytest.approx(
            gaussian_kl(ours, full) + gaussian_kl(full, ours), rel=0.03
        )


def test_fisher_metric_is_the_covariance_of_potentials() -> None:
    model, data = gaussian_mean(num_rows=10)
    weights = np.linspace(0.0, 2.0, 10)
    exact = fisher_metric(np.random.default_rng(0), Problem(model, data), weights)
    drawn = fisher_metric(
        np.random.default_rng(0), Problem(model, data), weights, MonteCarlo(num_draws=100_000)
    )
    np.testing.assert_allclose(drawn, exact, atol=0.03 * np.abs(exact).max())
