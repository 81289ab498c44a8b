"""What a certificate says of marginals, against Gaussians where both posteriors are known."""

import numpy as np
import pytest

from corebayes.certify.marginals import marginals


def gaussian_draws(seed, number=4000, dim=6):
    """Draws of N(0, I), and log ratios to N(m, s²) in the first two parameters."""
    rng = np.random.default_rng(seed)
    draws = rng.normal(size=(4, number // 4, dim))
    shift, scale = np.array([0.10, -0.02]), np.array([1.0, 1.05])
    z = draws[:, :, :2]
    ratios = np.sum(0.5 * z**2 - 0.5 * ((z - shift) / scale) ** 2 - np.log(scale), axis=2)
    return draws, ratios


def test_shifts_and_spreads_are_those_of_the_other_gaussian():
    draws, ratios = gaussian_draws(0)
    found = marginals(draws, ratios, tuple("abcdef"), np.arange(3), independent=True)
    assert found.shifted == "a"
    assert abs(found.shift.value - 0.10) < 4.0 * found.shift.standard_error
    assert found.shift.standard_error < 0.01
    # The standard deviation under π is 1.05 times as large.
    assert found.smallest_sd == pytest.approx(1.0 / 1.05, abs=0.02)


def test_the_share_of_kl_is_that_of_the_shared_parameters():
    # Half of m² plus what the scale adds, in the parameters that are asked for.
    exact_both = 0.5 * (0.10**2 + 0.02**2 / 1.05**2) + 0.5 * (1 / 1.05**2 - 1 + 2 * np.log(1.05))
    for seed in range(5):
        draws, ratios = gaussian_draws(seed)
        both = marginals(draws, ratios, tuple("abcdef"), np.arange(2), independent=True).shared_kl
        assert abs(both.value - exact_both) < 5.0 * both.standard_error + 0.1 * exact_both
        none = marginals(draws, ratios, tuple("abcdef"), np.arange(3, 6), independent=True)
        assert none.shared_kl.value < 5.0 * none.shared_kl.standard_error
        assert none.shared_kl.value < 0.1 * exact_both
