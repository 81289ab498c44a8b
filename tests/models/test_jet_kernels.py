"""Kernels of several predictors are the families' own derivatives, and what they are made of."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from corebayes.models import BUILT_IN
from corebayes.models.compiled.special import (
    digamma,
    digamma_rise,
    log_phi,
    log_rising,
    log_sum,
    phi_ratio,
)
from corebayes.models.families.family import Family
from corebayes.models.families.glm import GLM
from tests.models.predictor_cases import CASES

JETS = [case for case in CASES if case.family.jet_kernels]


def test_every_family_with_groups_has_a_compiled_form():
    """A GLM without constants has kernels of η alone."""
    for case in CASES:
        family = case.family
        alone = isinstance(family, GLM) and not family.learnable
        assert family.density_kernels if alone else family.jet_kernels, case.name
    assert {name for name, one in BUILT_IN.items() if issubclass(one, Family)} <= {
        type(case.family).__name__ for case in CASES
    }


@pytest.mark.parametrize("case", JETS, ids=[case.name for case in JETS])
@pytest.mark.parametrize("shift", [0.0, -2.0, 2.5])
def test_values_and_slopes_are_the_familys(case, shift):
    rng, linear = np.random.default_rng(11), len(case.family.linear)
    etas = [value + rng.normal(size=50) for value in case.at[:linear]]
    u = np.array(case.at[linear:]) + 0.3 * shift
    at = [*etas, *(np.full(50, one) for one in u)]
    row = case.rows(rng, at)
    # Rows of another θ than the one at which they are seen.
    etas = np.stack(etas) + shift * rng.normal(size=(linear, 50))
    expected = case.family.jet([*etas, *(np.full(1, one) for one in u)], row, 1)
    value, first = np.empty(50), np.empty((linear + u.size, 50))
    # Bits of a double wrap around when they are added, as they should.
    with np.errstate(over="ignore"):
        case.family.jet_kernels[0](etas, u, case.family.compiled_row(row), value, first)
    np.testing.assert_allclose(value, expected.value + 0.0 * etas[0], rtol=1e-11, atol=1e-11)
    for found, one in zip(first, expected.first, strict=True):
        np.testing.assert_allclose(found, one + 0.0 * etas[0], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("x", [1e-8, 1e-3, 0.3, 1.7, 7.9, 8.0, 63.9, 64.1, 1e3])
def test_digamma_is_scipys(x):
    assert digamma(x) == pytest.approx(special.digamma(x), rel=3e-14, abs=3e-14)
    for y in (0.0, 0.5, 1.0, 7.0, 1e4):
        assert log_rising(x, y) == pytest.approx(
            special.gammaln(x + y) - special.gammaln(x), rel=1e-12, abs=1e-11
        )
        assert digamma_rise(x, y) == pytest.approx(
            special.digamma(x + y) - special.digamma(x), rel=1e-11, abs=1e-13
        )


@pytest.mark.parametrize("x", [1e6, 1e9, 1e13])
def test_differences_do_not_cancel(x):
    # Γ(x + 3)/Γ(x) = x (x + 1)(x + 2), and ψ(x + 2) − ψ(x) = 1/x + 1/(x + 1)
    rising = np.log(x) + np.log1p(x) + np.log(x + 2.0)
    assert log_rising(x, 3.0) == pytest.approx(rising, rel=1e-14)
    assert digamma_rise(x, 2.0) == pytest.approx(1.0 / x + 1.0 / (x + 1.0), rel=1e-9)


@pytest.mark.parametrize("x", [-300.0, -37.1, -36.9, -4.0, 0.0, 0.9, 1.1, 8.0, 40.0])
def test_the_normal_tail_is_scipys(x):
    assert log_phi(x) == pytest.approx(special.log_ndtr(x), rel=1e-13)
    ratio = np.exp(-0.5 * x * x - 0.5 * np.log(2.0 * np.pi) - special.log_ndtr(x))
    assert phi_ratio(x) == pytest.approx(ratio, rel=1e-11)


def test_log_sum_of_nothing():
    assert log_sum(-np.inf, -np.inf) == -np.inf
    assert log_sum(0.3, -1.2) == pytest.approx(np.logaddexp(0.3, -1.2))
