"""The certificate: right on closed forms, silent where it cannot know, never wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import corebayes as cb
from corebayes.build import build
from corebayes.certify import certify
from corebayes.diagnostics import log_ratios
from corebayes.models import (
    LogisticRegression,
    Normal,
)
from corebayes.rows import open_rows
from corebayes.samplers.nuts import NUTS
from tests.coresets import (
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
    @pytest.mark.parametrize(
        ("make", "share"),
        [
            (linear, 0.3),
            (gaussian_mean, 1.2),
            *(pytest.param(linear, share, marks=pytest.mark.slow) for share in (0.95, 1.2, 3.0)),
            *(
                pytest.param(gaussian_mean, share, marks=pytest.mark.slow)
                for share in (0.3, 0.95, 3.0)
            ),
        ],
    )
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

    @pytest.mark.parametrize(
        ("share", "runs", "most"),
        [
            # One of 40 in the mean; 6 would happen once in 1,500 times. Of 100, 8 once in 300.
            (0.85, 40, 5),
            *(pytest.param(share, 100, 8, marks=pytest.mark.slow) for share in (0.85, 1.15)),
        ],
    )
    def test_few_above_the_tolerance_are_certified_and_few_far_below_are_not(
        self, share: float, runs: int, most: int
    ) -> None:
        model, data = gaussian_mean(dim=1)
        coreset = hidden(weighted(model, data, np.arange(data.num_rows), share))
        kl = exact_kl(weighted(model, data, np.arange(data.num_rows), share), data)["reverse"]
        at = [certify(coreset, data, seed=seed, tol=kl / 1.0001) for seed in range(runs)]
        assert sum(certificate.certified for certificate in at) <= most
        half = [certify(coreset, data, seed=seed, tol=2.0 * kl) for seed in range(20)]
        assert sum(certificate.certified for certificate in half) >= 19

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


def both_kl(ratios: np.ndarray) -> np.ndarray:
    """KL both ways and their sum, written as in the textbook."""
    log_mean = np.log(np.mean(np.exp(ratios)))
    shares = np.exp(ratios) / np.sum(np.exp(ratios))
    reverse, forward = log_mean - ratios.mean(), shares @ ratios - log_mean
    return np.array([reverse, forward, reverse + forward])


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
