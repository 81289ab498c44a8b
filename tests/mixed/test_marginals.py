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


def test_what_is_shared_is_told_where_something_is_not():
    draws, ratios = gaussian_draws(0)
    some = marginals(draws, ratios, tuple("abcdef"), np.arange(3), independent=True)
    every = marginals(draws, ratios, tuple("abcdef"), np.arange(6), independent=True)
    first, _ = str(some).splitlines()
    assert first.startswith("  shared parameters   0.00") and first.endswith("KL of these 3")
    assert str(every).startswith("  marginals")


@pytest.mark.parametrize("seed", range(3))
def test_where_weights_fail_changes_are_read_off_the_ratios(seed):
    """Two hundred parameters that all move a little, and weights of a few draws."""
    rng = np.random.default_rng(seed)
    draws = rng.normal(size=(4, 250, 200))
    shift, scale = 0.08 * rng.normal(size=200), np.exp(0.03 * rng.normal(size=200))
    shift[7] = 0.6
    ratios = np.sum(0.5 * draws**2 - 0.5 * ((draws - shift) / scale) ** 2 - np.log(scale), axis=2)
    names = tuple(f"b[{k}]" for k in range(200))
    found = marginals(draws, ratios, names, np.arange(2), independent=True)
    assert found.first_order and "to first order" in str(found)
    assert found.shifted == "b[7]"
    assert abs(found.shift.value - 0.6) < 4.0 * found.shift.standard_error < 0.4
    # The true ratios are within 0.92 and 1.09; unshrunk estimates reach 0.8 and 1.2.
    assert 0.88 < found.smallest_sd < 1.0 < found.largest_sd < 1.13


def test_nothing_that_moves_is_no_noise():
    draws = np.random.default_rng(5).normal(size=(4, 250, 300))
    ratios = 1.5 * np.random.default_rng(6).normal(size=(4, 250))
    names = tuple(f"b[{k}]" for k in range(300))
    found = marginals(draws, ratios, names, np.arange(3), independent=True)
    assert found.first_order and found.shift.value < 0.1
    assert found.are_fine(0.05)
    assert "the 3 shared parameters are within" in found.sentence
    assert "of all 300 parameters no mean moves by more than" in found.sentence
