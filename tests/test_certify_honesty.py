"""What no certificate may hide: chains that hardly move, heavy tails, modes that only π has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from corebayes.certify import certify
from corebayes.certify.kl import measure_kl
from corebayes.models import (
    CustomModel,
    GaussianMean,
    Normal,
    StudentTRegression,
)
from corebayes.rows import open_rows
from corebayes.samplers.draws import Draws
from corebayes.samplers.laplace import Laplace
from corebayes.samplers.nuts import NUTS
from tests.coresets import (
    ALMOST_ONE,
    Fixed,
    exact_kl,
    gaussian_mean,
    hidden,
    linear,
    logistic,
    near,
    posteriors,
    weighted,
)


class TestHonesty:
    def test_a_heavy_tail_withholds_all_numbers(self) -> None:
        model, data = linear()
        # Three times the weight: π_w is narrower than π, so π/π_w is unbounded.
        coreset = near(model, data, share=3.0)
        draws = posteriors(coreset, data)[0].draw(np.random.default_rng(0), 1000)
        certificate = certify(coreset, data, sampler=Fixed(draws))
        assert certificate.pareto_k > 0.6
        assert certificate.reverse_kl is certificate.forward_kl is None
        assert certificate.symmetrised_kl is certificate.total_variation is None
        assert not certificate.certified and certificate.fault == "coreset"
        assert "k̂" in certificate.verdict and "larger size" in certificate.verdict
        assert "withheld" in str(certificate)

    def test_one_row_of_many_is_far_away(self) -> None:
        model, data = logistic(num_rows=2000)
        certificate = certify(weighted(model, data, [3], [1.0]), data)
        assert not certificate.certified
        assert certificate.reverse_kl is None or certificate.reverse_kl.value > 5.0

    def test_few_effective_draws_withhold_all_numbers(self) -> None:
        # π_w is 30 times wider than π, so that π/π_w is bounded but almost everywhere zero.
        data = open_rows(np.linspace(-1.0, 1.0, 1000))
        model = GaussianMean(prior=Normal(0.0, 100.0)).bind(data)
        coreset = weighted(model, data, np.arange(1000), 1e-3)
        draws = posteriors(coreset, data)[0].draw(np.random.default_rng(0), 1000)
        certificate = certify(coreset, data, sampler=Fixed(draws))
        assert certificate.effective_sample_size < 100
        assert certificate.reverse_kl is None and "withheld" in str(certificate)
        # Draws that cover both see it well.
        covered = certify(hidden(coreset), data)
        truth = exact_kl(coreset, data)["reverse"]
        assert covered.reverse_kl.value == pytest.approx(truth, rel=0.2)

    def test_ratios_that_barely_differ_are_never_refused_for_their_tail(self) -> None:
        heavy = np.random.default_rng(0).pareto(1.1, size=(1, 1000))
        for size in (0.04, 0.004):
            tiny = measure_kl(
                size * heavy / np.ptp(heavy), None, independent=True, level=0.025, tol=0.02
            )
            assert tiny.trouble is None and tiny.upper < 0.02

    @pytest.mark.parametrize("make", [gaussian_mean, pytest.param(linear, marks=pytest.mark.slow)])
    def test_never_certified_with_wrong_weights(self, make: Any) -> None:
        model, data = make()
        rng = np.random.default_rng(0)
        certified = 0
        for seed in range(50):
            weights = np.ones(data.num_rows)
            wrong = rng.choice(data.num_rows, size=rng.integers(1, 4), replace=False)
            weights[wrong] *= np.exp(rng.normal(scale=2.5, size=wrong.size))
            coreset = weighted(model, data, np.arange(data.num_rows), weights)
            certificate = certify(hidden(coreset), data, seed=seed)
            certified += certificate.certified
            if certificate.certified:
                assert exact_kl(coreset, data)["reverse"] < 0.022
        # Both outcomes were tried.
        assert 5 < certified < 45

    def test_zero_rows_are_the_prior_and_not_certified(self) -> None:
        model, data = logistic(num_rows=100)
        certificate = certify(weighted(model, data, [], []), data)
        assert not certificate.certified

    def test_disagreeing_chains_withhold_all_numbers(self) -> None:
        model, data = cauchy(np.repeat([-60.0, 60.0], 8))
        exact = weighted(model, data, np.arange(16), 1.0)
        certificate = certify(exact, data, draws=400, sampler=NUTS(chains=4))
        assert not certificate.certified
        assert certificate.reverse_kl is None

    def test_separate_modes_are_drawn_from_by_their_masses(self) -> None:
        model, data = cauchy(np.repeat([-6.0, 6.0], 8))
        right = certify(weighted(model, data, np.arange(16), ALMOST_ONE), data, draws=400)
        assert right.certified and right.reverse_kl is not None
        # The masses of the two modes are wrong, their shapes hardly.
        lopsided = np.where(np.arange(16) < 8, 1.05, 0.95)
        wrong = certify(weighted(model, data, np.arange(16), lopsided), data)
        assert not wrong.certified

    def test_divergences_withhold_all_numbers(self) -> None:
        model, data = linear()
        result = certify(near(model, data), data, draws=200, sampler=Diverging())
        assert result.reverse_kl is None and result.num_divergences == 3
        assert "diverged" in result.verdict

    def test_a_chain_of_ones_own_is_not_taken_for_independent_draws(self) -> None:
        model, data = linear()
        coreset = near(model, data, share=0.8)
        for seed in range(3):
            chains, alone = (
                certify(coreset, data, draws=2000, seed=seed, sampler=Walk(independent))
                for independent in (False, True)
            )
            assert chains.reverse_kl.value == alone.reverse_kl.value
            # Ten steps or so make one independent draw.
            ratio = chains.reverse_kl.standard_error / alone.reverse_kl.standard_error
            assert 2.0 < ratio < 5.0
            assert chains.effective_sample_size < 0.3 * alone.effective_sample_size
            assert 1.0 < chains.max_rhat < 1.05 and alone.max_rhat == 1.0

    def test_chains_of_ones_own_must_agree(self) -> None:
        model, data = linear()
        stuck = certify(near(model, data), data, sampler=Walk(False, step=1e-3))
        assert stuck.reverse_kl is None and stuck.max_rhat > 1.05
        assert "(a walk) disagree" in stuck.verdict

    @pytest.mark.parametrize("sampler", ["gibbs", NUTS, 3])
    def test_what_is_no_sampler_is_refused(self, sampler: Any) -> None:
        data = open_rows(np.zeros((4, 1)))
        coreset = weighted(GaussianMean().bind(data), data, [0], [4.0])
        with pytest.raises((TypeError, ValueError), match=r"sampler must be .* such as NUTS"):
            certify(coreset, data, sampler=sampler)

    @pytest.mark.parametrize("name", ["nuts", "independence"])
    def test_a_sampler_is_named_as_in_sample(self, name: str) -> None:
        model, data = logistic(num_rows=80)
        coreset = near(model, data)
        named, alone = certify(coreset, data, sampler=name), certify(coreset, data)
        assert named.reverse_kl is not None and alone.reverse_kl is not None
        apart = abs(named.reverse_kl.value - alone.reverse_kl.value)
        assert apart < 4 * (named.reverse_kl.standard_error + alone.reverse_kl.standard_error)

    def test_laplace_draws_are_refused(self) -> None:
        model, data = logistic(num_rows=50)
        with pytest.raises(ValueError, match="certify the approximation"):
            certify(near(model, data), data, sampler=Laplace())


@dataclass(frozen=True)
class Walk:
    """A user's own sampler: four chains of random-walk Metropolis."""

    independent: bool
    step: float = 1.4

    def draw(self, rng: Any, posterior: Any, num_draws: int, start: Any = None) -> Draws:
        fit = Laplace().fit(posterior, start)
        chains = fit.draw(rng, 4)
        heights, values = posterior.log_density(chains), []
        for _ in range(num_draws // 4):
            moved = chains + self.step * rng.standard_normal(chains.shape) @ fit.factor.T
            new = posterior.log_density(moved)
            accepted = np.log(rng.uniform(size=4)) < new - heights
            chains = np.where(accepted[:, None], moved, chains)
            heights = np.where(accepted, new, heights)
            values.append(chains)
        return Draws(
            values=np.stack(values, axis=1),
            location=fit.mean,
            independent=self.independent,
            how="a walk",
        )


@dataclass(frozen=True, kw_only=True)
class Diverging(NUTS):
    """Good draws that are said to have diverged."""

    def draw(self, *arguments: Any, **options: Any) -> Draws:
        return replace(NUTS(chains=2).draw(*arguments, **options), num_divergences=3)


def cauchy(locations: Any) -> tuple[Any, Any]:
    """Cauchy noise around an unknown location: potentials that are not log-concave."""
    data = open_rows(np.asarray(locations, dtype=float))
    model = CustomModel(
        lambda draws, block: -np.log1p(np.square(block.X - draws[:, 0])),
        lambda draws: -0.5 * np.square(draws[:, 0] / 10.0),
        1,
        gradient=lambda theta, block, weights: np.array(
            [weights @ (2.0 * (block.X[:, 0] - theta) / (1.0 + np.square(block.X[:, 0] - theta)))]
        ),
        log_prior_gradient=lambda theta: -theta / 100.0,
    )
    return model.bind(data), data


class TestSeveralModes:
    def test_a_mode_of_the_posterior_that_the_coreset_misses(self) -> None:
        model, data = cauchy(np.concatenate([np.linspace(-5.3, -4.7, 8), np.linspace(4.7, 5.3, 8)]))
        one_sided = weighted(model, data, np.arange(8, 16), 1.0)
        for seed in range(3):
            certificate = certify(one_sided, data, draws=200, seed=seed)
            assert not certificate.certified and certificate.fault == "coreset"
            assert certificate.reverse_kl.value > 0.3
            assert "the full posterior has a mode near θ = (-4.8" in certificate.verdict

    @pytest.mark.slow
    def test_a_mode_of_the_coreset_that_the_posterior_lacks(self) -> None:
        rng = np.random.default_rng(0)
        model, data = cauchy(np.append(rng.normal(size=400), 25.0))
        # All rows at weight one, but for the outlier, whose mode then has half of the mass.
        weights = np.append(np.ones(400), 380.0)
        spurious = weighted(model, data, np.arange(401), weights)
        for seed in range(3):
            assert not certify(spurious, data, draws=200, seed=seed).certified

    def test_one_mode_is_certified_on_a_subsample_too(self) -> None:
        rng = np.random.default_rng(0)
        model, data = cauchy(np.append(rng.normal(size=1500), 25.0))
        everything = weighted(model, data, np.arange(1501), ALMOST_ONE)
        assert certify(everything, data, draws=200).certified

    def test_a_missed_mode_among_more_rows_than_the_subsample(self) -> None:
        rng = np.random.default_rng(0)
        half = rng.normal(scale=0.1, size=700)
        model, data = cauchy(np.concatenate([-8.0 + half, 8.0 - half]))
        one_sided = weighted(model, data, np.arange(700, 1400), 1.0)
        certificate = certify(one_sided, data, draws=200)
        assert not certificate.certified

    def test_student_t_regression(self) -> None:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 2))
        data = open_rows((X, X @ [1.0, -2.0] + rng.standard_t(4.0, size=300)))
        model = StudentTRegression(df=4.0, scale=1.0, prior=Normal()).bind(data)
        everything = weighted(model, data, np.arange(300), ALMOST_ONE)
        assert certify(everything, data, draws=200).certified
