"""Pareto smoothing of many rows is what ArviZ does for one."""

import numpy as np
import pytest
from arviz_stats.base import array_stats

from corebayes.samplers.pareto import pareto_k, smooth, tail_length


@pytest.mark.parametrize("scale", [1e-3, 0.3, 3.0])
def test_as_arviz_row_by_row(scale):
    rng = np.random.default_rng(1)
    ratios = scale * rng.normal(size=(30, 390)) ** 3
    expected, shapes = array_stats.psislw(-ratios)
    weights, found = smooth(ratios.copy(), tail_length(390))
    np.testing.assert_allclose(weights, expected, atol=1e-9)
    np.testing.assert_allclose(found, shapes, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("efficiency", [1.0, 0.3])
@pytest.mark.parametrize("size", [100, 1001])
def test_one_shape_is_that_of_arviz(size, efficiency):
    ratios = np.random.default_rng(size).standard_t(5.0, size=(4, size))
    _, shape = array_stats.psislw(-ratios.ravel(), r_eff=efficiency)
    assert pareto_k(ratios, efficiency) == pytest.approx(float(shape), rel=1e-9)


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_no_shape_fits_what_is_no_number(odd):
    assert pareto_k(np.r_[np.random.default_rng(0).normal(size=99), odd], 1.0) == np.inf


def test_the_shape_of_a_pareto_tail_is_found():
    ratios = np.log(np.random.default_rng(2).pareto(1.0 / 0.9, size=(20, 4000)) + 1.0)
    assert abs(smooth(ratios, tail_length(4000))[1].mean() - 0.9) < 0.1


def test_constant_ratios_stay_and_have_shape_zero():
    weights, shapes = smooth(np.full((2, 500), 7.0), tail_length(500))
    np.testing.assert_allclose(weights, -np.log(500.0))
    assert shapes.tolist() == [0.0, 0.0]


def test_no_row_looks_at_another():
    rng = np.random.default_rng(3)
    ratios = rng.normal(size=(7, 300))
    together = smooth(ratios.copy(), 60)
    for row in range(7):
        alone = smooth(ratios[row : row + 1].copy(), 60)
        np.testing.assert_array_equal(alone[0][0], together[0][row])
        assert alone[1][0] == together[1][row]


def test_repeated_draws_do_not_break_the_fit():
    values = np.repeat(np.random.default_rng(4).normal(size=(3, 50)), 10, axis=1)
    weights, shapes = smooth(values, tail_length(500))
    assert np.all(np.isfinite(weights))
    assert not np.any(np.isnan(shapes))
