"""Which rows are certified, how often they are read, and when draws are enough."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import corebayes as cb
from corebayes.certify import certify
from corebayes.certify.evidence import LostDigitsError, log_ratios_at
from corebayes.certify.kl import tail_counts
from corebayes.models import (
    GaussianMean,
)
from corebayes.rows import open_rows
from corebayes.samplers.convergence import max_rhat, standard_error
from corebayes.samplers.pareto import pareto_k, tail_inflation
from tests.coresets import (
    hidden,
    linear,
    near,
    weighted,
)


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
