"""What the steps of a coreset add up to, where the truth has a closed form."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import corebayes as cb
from corebayes.certify.chain import added_up
from corebayes.diagnostics import gaussian_kl
from corebayes.types import Gaussian


def _gaussian(rng, dim, spread):
    factor = np.tril(spread * rng.normal(size=(dim, dim)), -1)
    factor += np.diag(np.exp(spread * rng.normal(size=dim)))
    return Gaussian(spread * rng.normal(size=dim), factor)


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 6), st.floats(1e-4, 1.0), st.integers(3, 6))
def test_no_chain_of_gaussians_is_longer(seed, dim, spread, number):
    rng = np.random.default_rng(seed)
    chain = [_gaussian(rng, dim, spread) for _ in range(number)]
    steps = [gaussian_kl(*pair) for pair in pairwise(chain)]
    assert gaussian_kl(chain[0], chain[-1]) <= added_up(steps) * (1 + 1e-6)


def test_scales_that_grow_one_way_are_as_long_as_that():
    """√KL would add up to less: 0.1 nats where 0.11 are true."""
    chain = [Gaussian(np.zeros(1), np.array([[np.exp(-0.15 * k)]])) for k in range(3)]
    steps = [gaussian_kl(*pair) for pair in pairwise(chain)]
    assert gaussian_kl(chain[0], chain[2]) == pytest.approx(added_up(steps), rel=1e-9)
    assert np.sum(np.sqrt(steps)) ** 2 < 0.91 * added_up(steps)


@pytest.mark.parametrize("kl", [0.0, 1e-20, 1e-9, 1e-4, 0.3, 50.0, 1e8])
def test_one_step_is_what_it_is(kl):
    assert added_up([kl]) == pytest.approx(kl, rel=1e-9)
    assert np.isfinite(added_up([kl, kl, 1e300]))


def _nights(rng, dim, number):
    """Rows of a line, or of a mean, more on some nights than on others."""
    theta, is_mean = rng.normal(size=dim), rng.random() < 0.3
    nights = []
    for _ in range(number):
        num_rows = 30 + int(200 * np.exp(rng.normal()))
        X = rng.normal(size=(num_rows, dim))
        y = X @ theta + 0.7 * rng.normal(size=num_rows)
        nights.append({"X": X + theta} if is_mean else (X, y))
    if is_mean:
        return nights, cb.GaussianMean(prior=cb.Normal(0.0, 3.0))
    return nights, cb.LinearRegression(noise_sd=0.7, prior=cb.Normal(0.0, 3.0))


@pytest.mark.parametrize("seed", range(8))
def test_a_sum_is_not_below_the_truth_of_conjugate_models(seed):
    """Too few rows for all quadratics, so that every step misses something."""
    rng = np.random.default_rng([seed, 23])
    dim = int(rng.integers(1, 8))
    nights, model = _nights(rng, dim, int(rng.integers(2, 7)))
    size = max(1, int(rng.uniform(0.3, 0.9) * (dim + 1) * (dim + 2) / 2))
    coreset = cb.build(model, nights[0], size=size, seed=seed)
    coreset = cb.with_certificate(coreset, cb.certify(coreset, nights[0]))
    for number, night in enumerate(nights[1:], start=1):
        coreset = cb.update(coreset, night, size=size, seed=number, certify=True)
    said, true = cb.certify(coreset, tol=1e9).reverse_kl, cb.certify(coreset, nights).reverse_kl
    assert said is None or true.value <= said.value + 2.0 * said.standard_error + 1e-12
