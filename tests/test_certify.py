"""The certificate: right on closed forms, silent where it cannot know, never wrong."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import corebayes as cb
from corebayes.build import build
from corebayes.certify import certify
from corebayes.certify.evidence import LostDigitsError, log_ratios_at
from corebayes.certify.kl import measure_kl, tail_counts
from corebayes.diagnostics import log_ratios
from corebayes.models import (
    CustomModel,
    GaussianMean,
    LogisticRegression,
    Normal,
    StudentTRegression,
)
from corebayes.rows import open_rows
from corebayes.samplers.convergence import max_rhat, standard_error
from corebayes.samplers.draws import Draws
from corebayes.samplers.laplace import Laplace
from corebayes.samplers.nuts import NUTS
from corebayes.samplers.pareto import pareto_k, tail_inflation
from tests.coresets import (
    exact_kl,
    gaussian_mean,
    hidden,
    linear,
    logistic,
    near,
    posteriors,
    weighted,
)

KINDS = {"reverse": "reverse_kl", "forward": "forward_kl", "symmetric": "symmetrised_kl"}


class TestClosedForm:
    @pytest.mark.parametrize("make", [gaussian_mean, linear])
    @pytest.mark.parametrize("share", [0.01, 0.6, 1.2, 30.0])
    def test_conjugate_models_have_no_error(self, make: Any, share: float) -> None:
        model, data = make()
        coreset = near(model, data, share=share)
        truth, certificate = exact_kl(coreset, data), certify(coreset, data)
        for direction, field in KINDS.items():
            kl = getattr(certificate, field)
            assert kl.value == pytest.approx(truth[direction], rel=1e-12)
            assert kl.standard_error == 0.0
        assert certificate.upper == certificate.reverse_kl.value
        assert certificate.num_draws == 0
        assert certificate.certified == (truth["reverse"] <= 0.02)

    def test_one_pass_and_the_same_for_every_seed(self) -> None:
        model, data = linear()
        coreset = near(model, data)
        certify(coreset, data)
        before = data.meter.rows_asked
        first, other = (certify(coreset, data, seed=seed) for seed in (1, 2))
        assert first == other
        assert data.meter.rows_asked == before + 2 * data.num_rows

    def test_at_the_tolerance_the_verdict_turns(self) -> None:
        model, data = gaussian_mean()
        coreset = near(model, data)
        kl = exact_kl(coreset, data)["reverse"]
        assert certify(coreset, data, tol=1.0001 * kl).certified
        assert not certify(coreset, data, tol=0.9999 * kl).certified


class TestEstimates:
    @pytest.mark.parametrize("make", [gaussian_mean, linear])
    @pytest.mark.parametrize("share", [0.3, 0.95, 1.2, 3.0])
    def test_within_two_errors_of_the_exact_kl(self, make: Any, share: float) -> None:
        model, data = make()
        coreset = near(model, data, share=share)
        truth = exact_kl(coreset, data)
        certificates = [certify(hidden(coreset), data, seed=seed) for seed in range(40)]
        for direction, field in KINDS.items():
            found = [getattr(certificate, field) for certificate in certificates]
            assert all(kl is not None and kl.standard_error > 0.0 for kl in found)
            scores = [(kl.value - truth[direction]) / kl.standard_error for kl in found]
            assert np.mean(np.abs(scores) < 2.0) >= 0.9
            assert abs(np.mean(scores)) < 0.6
            assert 0.2 < np.std(scores) < 1.2
            # Pooled over the seeds, reverse and forward cannot be mistaken for each other.
            assert np.mean([kl.value for kl in found]) == pytest.approx(truth[direction], rel=0.1)

    @pytest.mark.parametrize("share", [0.85, 1.15])
    def test_few_above_the_tolerance_are_certified_and_few_far_below_are_not(
        self, share: float
    ) -> None:
        model, data = gaussian_mean(dim=1)
        coreset = hidden(weighted(model, data, np.arange(data.num_rows), share))
        kl = exact_kl(weighted(model, data, np.arange(data.num_rows), share), data)["reverse"]
        at = [certify(coreset, data, seed=seed, tol=kl / 1.0001) for seed in range(100)]
        # 2.5 in the mean; 8 would happen once in 300 times.
        assert sum(certificate.certified for certificate in at) <= 8
        half = [certify(coreset, data, seed=seed, tol=2.0 * kl) for seed in range(40)]
        assert sum(certificate.certified for certificate in half) >= 38

    def test_draws_are_added_until_the_verdict_is_clear(self) -> None:
        model, data = gaussian_mean()
        coreset = near(model, data, share=0.8)
        kl = exact_kl(coreset, data)["reverse"]
        numbers = [
            certify(hidden(coreset), data, tol=tol).num_draws
            for tol in (100.0 * kl, 1.02 * kl, 0.1 * kl)
        ]
        assert numbers[0] <= 110 and numbers[2] <= 300
        assert 4000 <= numbers[1] <= 4100
        assert certify(hidden(coreset), data, tol=1.02 * kl, draws=500).num_draws <= 510

    def test_values_of_plain_draws_are_those_of_the_textbook(self) -> None:
        model, data = linear()
        coreset = near(model, data, share=0.5)
        draws = posteriors(coreset, data)[0].draw(np.random.default_rng(0), 500)
        certificate = certify(coreset, data, draws=500, sampler=Fixed(draws))
        ratios = log_ratios(coreset, data, draws)
        values = [getattr(certificate, field).value for field in KINDS.values()]
        np.testing.assert_allclose(values, both_kl(ratios), rtol=1e-10)
        left_out = np.array([both_kl(np.delete(ratios, s)) for s in range(500)])
        jackknife = np.sqrt(499.0 / 500.0 * np.sum(np.square(left_out - left_out.mean(0)), axis=0))
        found = np.array([getattr(certificate, field).standard_error for field in KINDS.values()])
        # Half of the distance to a bound that knows the skewness is no less than the deviation.
        assert np.all(found > 0.95 * jackknife) and np.all(found < 3.0 * jackknife)

    def test_symmetrised_is_the_sum(self) -> None:
        model, data = linear()
        certificate = certify(near(model, data), data)
        total = certificate.reverse_kl.value + certificate.forward_kl.value
        assert certificate.symmetrised_kl.value == pytest.approx(total, rel=1e-12)

    def test_the_closer_coreset_is_certified_too(self) -> None:
        """Ratios of up to 1.003 with k̂ of 0.8 to 0.9: they were taken for a π_w far away."""
        rng = np.random.default_rng(2)
        X = rng.normal(size=(2000, 3))
        y = (rng.uniform(size=2000) < 1.0 / (1.0 + np.exp(-X @ [1.0, -0.5, 0.2]))).astype(float)
        for size in (15, 30):
            coreset = build(LogisticRegression(prior=Normal()), (X, y), size=size, seed=2)
            found = certify(coreset, (X, y), seed=0)
            assert found.certified and found.reverse_kl.value < 1e-5
            assert found.reverse_kl.standard_error > 0.0

    @pytest.mark.parametrize("size", [1e-2, 1e-4, 1e-6])
    def test_tiny_distances_keep_their_digits_and_sign(self, size: float) -> None:
        model, data = linear()
        weights = 1.0 + size * np.random.default_rng(0).normal(size=data.num_rows)
        coreset = weighted(model, data, np.arange(data.num_rows), weights)
        truth = exact_kl(coreset, data)
        certificate = certify(hidden(coreset), data)
        for direction, field in KINDS.items():
            kl = getattr(certificate, field)
            assert kl.value > 0.0
            assert abs(kl.value - truth[direction]) < 3.0 * kl.standard_error
            assert kl.standard_error < kl.value
        assert certificate.certified

    def test_all_rows_are_at_distance_zero(self) -> None:
        model, data = linear()
        # But for a last digit, so that it is measured.
        everything = weighted(model, data, np.arange(data.num_rows), 1.0 + 1e-14)
        for coreset in (everything, hidden(everything)):
            certificate = certify(coreset, data)
            assert certificate.certified
            assert 0.0 <= certificate.reverse_kl.value < 1e-20
        assert certificate.pareto_k <= 0.0

    def test_counts_are_repetitions(self) -> None:
        model, data = linear(num_rows=60)
        block, counts = data.take(np.arange(60)), 1.0 + np.arange(60.0) % 3
        counted = open_rows((block.X, block.y), counts=counts)
        assert certify(weighted(model, counted, np.arange(60), counts), counted).certified
        assert not certify(weighted(model, counted, np.arange(60), 1.0), counted).certified

    def test_nuts_draws_agree_with_exact_draws(self) -> None:
        model, data = linear()
        coreset = near(model, data, share=0.8)
        truth = exact_kl(coreset, data)
        scores = []
        for seed in range(3):
            certificate = certify(coreset, data, seed=seed, sampler=NUTS(chains=4))
            for direction, field in KINDS.items():
                kl = getattr(certificate, field)
                scores.append((kl.value - truth[direction]) / kl.standard_error)
        assert np.max(np.abs(scores)) < 4.0
        assert np.mean(np.abs(scores)) < 1.8

    def test_logistic(self) -> None:
        model, data = logistic(num_rows=300)
        good = certify(weighted(model, data, np.arange(300), 1.0 + 1e-3 * np.arange(300) % 7), data)
        assert good.certified
        assert good.max_rhat < 1.05
        assert certify(near(model, data, share=0.5), data).certified is False

    def test_same_seed_same_certificate(self) -> None:
        model, data = logistic(num_rows=50)
        coreset = near(model, data)
        first, again, other = (certify(coreset, data, draws=200, seed=seed) for seed in (1, 1, 2))
        assert first == again != other


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

    @pytest.mark.parametrize("make", [gaussian_mean, linear])
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
        right = certify(weighted(model, data, np.arange(16), 1.0), data, draws=400)
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

    def test_laplace_draws_are_refused(self) -> None:
        model, data = logistic(num_rows=50)
        with pytest.raises(ValueError, match="certify the approximation"):
            certify(near(model, data), data, sampler=Laplace())


def both_kl(ratios: np.ndarray) -> np.ndarray:
    """KL both ways and their sum, written as in the textbook."""
    log_mean = np.log(np.mean(np.exp(ratios)))
    shares = np.exp(ratios) / np.sum(np.exp(ratios))
    reverse, forward = log_mean - ratios.mean(), shares @ ratios - log_mean
    return np.array([reverse, forward, reverse + forward])


@dataclass(frozen=True)
class Fixed:
    """Independent draws made beforehand."""

    draws: np.ndarray

    def draw(self, *_: Any, **__: Any) -> Draws:
        return Draws(values=self.draws[None], location=self.draws.mean(axis=0), independent=True)


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
        assert certify(weighted(model, data, np.arange(1501), 1.0), data, draws=200).certified

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
        everything = weighted(model, data, np.arange(300), 1.0)
        assert certify(everything, data, draws=200).certified


class TestData:
    def test_other_rows_are_refused_by_number(self) -> None:
        model, data = linear()
        coreset, block = near(model, data), data.take(np.arange(0, data.num_rows))
        y = block.y.copy()
        y[coreset.indices[5]] += 1.0
        with pytest.raises(ValueError, match=f"row {coreset.indices[5]} of this data .* 'y'"):
            certify(coreset, (block.X, y))

    def test_permuted_rows_are_refused(self) -> None:
        model, data = linear()
        block = data.take(np.arange(0, data.num_rows))
        with pytest.raises(ValueError, match="in its order"):
            certify(near(model, data), (block.X[::-1], block.y[::-1]))

    def test_one_ulp_is_the_same_data(self) -> None:
        model, data = linear()
        block = data.take(np.arange(0, data.num_rows))
        moved = (np.nextafter(block.X, np.inf), block.y)
        ours, theirs = (certify(near(model, data), rows) for rows in (data, moved))
        assert theirs.reverse_kl.value == pytest.approx(ours.reverse_kl.value, rel=1e-9)

    def test_another_number_of_rows_is_refused(self) -> None:
        model, data = linear()
        block = data.take(np.arange(70))
        with pytest.raises(ValueError, match="built from 80 rows"):
            certify(near(model, data), (block.X, block.y))

    def test_forgotten_counts_are_refused(self) -> None:
        model, data = linear()
        block = data.take(np.arange(80))
        counted = open_rows((block.X, block.y), counts=np.full(80, 2.0))
        with pytest.raises(ValueError, match="total count of 160"):
            certify(near(model, counted), (block.X, block.y))

    def test_other_columns_are_refused(self) -> None:
        model, data = linear()
        block = data.take(np.arange(80))
        with pytest.raises(ValueError, match="'X' of shape"):
            certify(near(model, data), (block.X[:, :2], block.y))

    def test_pairs_and_frames_are_taken(self) -> None:
        import pandas

        model, data = linear()
        block = data.take(np.arange(80))
        frame = pandas.DataFrame(block.X, columns=["a", "b", "c"]).assign(y=block.y)
        from_pair = certify(near(model, data), (block.X, block.y))
        from_frame = certify(near(model, data), frame, target="y")
        assert from_pair == from_frame == certify(near(model, data), data)

    @pytest.mark.parametrize("draws", [0, 99, 2.5, True])
    def test_too_few_draws_are_refused(self, draws: Any) -> None:
        model, data = linear()
        with pytest.raises((TypeError, ValueError), match="draws must be"):
            certify(near(model, data), data, draws=draws)

    @pytest.mark.parametrize("tol", [0.0, -1.0, float("nan")])
    def test_a_tolerance_is_positive(self, tol: float) -> None:
        model, data = linear()
        with pytest.raises(ValueError, match="tol must be"):
            certify(near(model, data), data, tol=tol)


class TestReading:
    def test_the_verdict_is_a_sentence_with_the_numbers(self) -> None:
        model, data = linear()
        good = near(model, data, spread=0.01)
        certificate = certify(replace(good, weights=np.ones(good.size)), data, tol=10.0)
        assert certificate.verdict.startswith("The coreset posterior (72 of 80 rows) is within 0.0")
        assert "nats of the full posterior" in certificate.verdict
        assert certificate.verdict.endswith("% of its range [Pinsker].")
        text = str(certificate)
        assert text.startswith(certificate.verdict)
        assert "KL(coreset ‖ full)" in text and "effective draws" not in text
        measured = certify(hidden(good), data)
        assert "effective draws" in str(measured) and "Pareto k̂" in str(measured)

    def test_beyond_the_tolerance_it_says_so(self) -> None:
        model, data = linear()
        certificate = certify(near(model, data, share=0.6), data)
        assert not certificate.certified
        assert certificate.reverse_kl.value > 0.1
        assert certificate.verdict.startswith("Not certified: ")
        assert "tolerance of 0.02 nats" in certificate.verdict

    def test_the_bound_on_probabilities_holds(self) -> None:
        from scipy.stats import norm

        for shift in (0.05, 0.3, 1.0):
            # π = N(a/4, ½) and π_w = N(0, ½) are `shift` standard deviations apart.
            a = 4.0 * shift * np.sqrt(0.5)
            data = open_rows(np.repeat([a, 0.0], 50))
            coreset = weighted(GaussianMean(cov=100.0).bind(data), data, np.arange(50, 100), 2.0)
            certificate = certify(coreset, data, draws=4000)
            assert certificate.reverse_kl.value == pytest.approx(0.5 * shift**2, rel=0.2)
            # Their total variation is 2 Φ(δ/2) − 1.
            assert 2.0 * norm.cdf(shift / 2.0) - 1.0 <= certificate.total_variation <= 1.0

    def test_to_dict_is_json(self) -> None:
        model, data = linear()
        for coreset in (
            near(model, data),
            near(model, data, share=3.0),
            weighted(model, data, [], []),
        ):
            plain = json.loads(json.dumps(certify(coreset, data).to_dict(), allow_nan=False))
            assert set(plain) >= {"reverse_kl", "pareto_k", "certified", "verdict", "num_draws"}
        plain = certify(near(model, data), data).to_dict()
        assert set(plain["reverse_kl"]) == {"value", "standard_error"}


class TestConvergence:
    def test_pareto_k_has_the_right_sign(self) -> None:
        # e^r with r = k · (an exponential) has tail index k; its reciprocal has none.
        heavy = 1.5 * np.random.default_rng(0).exponential(size=(1, 4000))
        assert pareto_k(heavy, 1.0) > 1.0
        assert pareto_k(-heavy, 1.0) < 0.3

    @pytest.mark.parametrize("k", [0.2, 0.5, 0.9])
    def test_pareto_k_finds_the_tail_index(self, k: float) -> None:
        rng = np.random.default_rng(1)
        found = [pareto_k(k * rng.exponential(size=(1, 4000)), 1.0) for _ in range(20)]
        assert np.mean(found) == pytest.approx(k, abs=0.1)

    def test_pareto_k_of_constants_and_single_ratios(self) -> None:
        assert pareto_k(np.zeros((1, 1000)), 1.0) == 0.0
        assert pareto_k(1e-12 * np.random.default_rng(0).normal(size=(1, 1000)), 1.0) == 0.0
        assert pareto_k(np.linspace(0.0, 1e5, 1000)[None], 1.0) == np.inf

    def test_a_tail_counts_by_its_size_and_not_by_its_shape(self) -> None:
        heavy = np.random.default_rng(0).pareto(1.1, size=(1, 1000))
        heavy /= np.ptp(heavy)
        assert pareto_k(0.005 * heavy, 1.0) > 0.7
        assert not tail_counts(0.4 * heavy, 1000.0, 0.02)
        assert tail_counts(0.6 * heavy, 1000.0, 0.02) and not tail_counts(0.6 * heavy, 1000.0, 0.1)
        # Ratios of e and more always count; as few draws as these say little of what was not drawn.
        assert tail_counts(1.1 * heavy, 1e9, 0.02) and tail_counts(0.4 * heavy, 100.0, 0.02)

    def test_standard_errors_know_autocorrelation(self) -> None:
        rng = np.random.default_rng(0)
        steps = rng.normal(size=(4, 4000))
        chain = np.zeros_like(steps)
        for t in range(1, 4000):
            chain[:, t] = 0.9 * chain[:, t - 1] + steps[:, t]
        naive = standard_error(chain, independent=True)
        # The variance of the mean of an AR(1) is (1 + φ)/(1 − φ) = 19 times larger.
        assert standard_error(chain, independent=False) == pytest.approx(
            np.sqrt(19.0) * naive, rel=0.25
        )
        assert standard_error(np.ones((4, 100)), independent=False) == 0.0

    def test_stuck_chains_do_not_agree(self) -> None:
        stuck = np.repeat([[0.0], [1.0]], 100, axis=1)[:, :, None]
        assert max_rhat(stuck) == np.inf
        assert max_rhat(np.zeros((2, 100, 1))) == 1.0
        apart = np.random.default_rng(0).normal(size=(2, 500, 2))
        apart[1, :, 1] += 3.0
        assert max_rhat(apart) > 1.5
        assert max_rhat(apart[:, :, :1]) < 1.02

    def test_the_halves_of_one_chain_must_agree(self) -> None:
        chain = np.random.default_rng(0).normal(size=(1, 400, 2))
        assert max_rhat(chain) < 1.05
        chain[0, 200:, 1] += 3.0
        assert max_rhat(chain) > 1.5

    def test_tail_inflation(self) -> None:
        assert tail_inflation(-0.2, 1000) == 1.0
        assert tail_inflation(0.1, 1000) == pytest.approx(1.0, abs=0.02)
        assert tail_inflation(1.0, 1000) == np.inf
        shapes = [tail_inflation(k, 1000) for k in np.linspace(0.01, 0.99, 99)]
        assert np.all(np.diff(shapes) > 0.0)


def test_sums_of_which_rounding_leaves_nothing_are_no_perfect_match():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(400), rng.normal(size=400)])
    rows = cb.open((X, rng.poisson(np.exp(X @ [0.3, 0.2])).astype(float)))
    coreset = cb.build(cb.PoissonRegression(prior=cb.Normal(0.0, 5.0)), rows, size=20)
    anchor, draws = np.zeros(2), 0.1 * rng.normal(size=(20, 2))
    assert np.all(np.isfinite(log_ratios_at(coreset, rows, anchor, draws)))
    heavy = replace(coreset, weights=1e40 * coreset.weights)
    with pytest.raises(LostDigitsError, match="lost in rounding"):
        log_ratios_at(heavy, rows, anchor, draws)
    assert not cb.certify(heavy, rows).certified


def test_all_rows_as_often_as_they_count_are_the_posterior_itself():
    """As many levels as rows: chains of such a noise may disagree, and the distance is zero."""
    rng = np.random.default_rng(0)
    frame = pa.table({"y": rng.normal(10.0, 3.0, 30), "g": [f"g{k}" for k in range(30)]})
    model, data = cb.from_formula("y ~ g", frame, family="gaussian")
    coreset = cb.build(model, data, size=30, progress=False)
    found = cb.certify(coreset, frame)
    assert found.certified and found.reverse_kl == (0.0, 0.0) and found.num_draws == 0
    heavier = replace(coreset, weights=1.5 * coreset.weights)
    assert cb.certify(heavier, frame, draws=100).reverse_kl != (0.0, 0.0)
