"""Linear predictors from −750 to 750 and counts to a million, against long decimals."""

from __future__ import annotations

from decimal import Decimal, localcontext
from functools import cache

import numpy as np
import pytest

from corebayes.models import Normal, PoissonRegression
from corebayes.models.families.poisson import LAST_EXPONENT
from corebayes.models.special import GAMMA
from corebayes.types import Block
from tests.models.cases import FAMILIES, NAMES

PREDICTORS = [
    *(-750.0, -300.0, -40.0, -37.5, -36.5, -20.0, -7.0, -6.9, -6.91, -2.0),
    *(-1e-3, 0.0, 0.7, 5.0, 36.0, 40.0, 299.0),
]
BEYOND = [301.0, 709.0, 750.0]

families = pytest.mark.parametrize("family", FAMILIES, ids=NAMES)


@cache
def exact(function, eta: float, y: float) -> list[float]:
    """ℓ and its three derivatives in η, from differences a step of 1e-20 apart."""
    with localcontext() as context:
        # e^η beside 1 twice, and the third power of the step
        context.prec = 400 + int(0.9 * max(-eta, 0.0))
        context.Emin, context.Emax = -(10**9), 10**9
        step = Decimal("1e-20")
        far_down, down, here, up, far_up = (
            function(Decimal(eta) + k * step, Decimal(y)) for k in (-2, -1, 0, 1, 2)
        )
        return [
            float(here),
            float((up - down) / (2 * step)),
            float((up - 2 * here + down) / step**2),
            float((far_up - 2 * up + 2 * down - far_down) / (2 * step**3)),
        ]


def potentials(model, eta, y) -> np.ndarray:
    """ℓ at every η (columns) for every y (rows), through the model's own path."""
    block = Block({"X": np.ones((len(y), 1)), "y": np.asarray(y)})
    return model.potentials(np.asarray(eta)[:, None], block)


def predictors(family) -> list[float]:
    return PREDICTORS if family.name == "poisson-log" else PREDICTORS + BEYOND


@families
def test_potentials_at_the_extremes(family):
    eta, targets = predictors(family), family.extreme_targets
    expected = [[exact(family.exact, e, y)[0] for e in eta] for y in targets]
    np.testing.assert_allclose(
        potentials(family.model, eta, targets), expected, rtol=1e-13, atol=2.3e-16
    )


@families
def test_derivatives_at_the_extremes(family):
    eta, targets = predictors(family), family.extreme_targets
    expected = np.array([[exact(family.exact, e, y)[1:] for e in eta] for y in targets])
    values = family.model.derivatives(np.array(eta), np.array(targets)[:, None])
    for order in range(3):
        # Below 1e-290 numbers lose their digits to underflow, and carry no weight.
        np.testing.assert_allclose(values[order], expected[:, :, order], rtol=1e-10, atol=1e-290)


@families
def test_derivatives_of_a_block_that_mixes_all_regimes_equal_those_alone(family):
    eta = np.array(predictors(family))
    y = family.extreme_targets[-1]
    together = family.model.derivatives(eta, y)
    for position, alone in enumerate(eta):
        for one, many in zip(family.model.derivatives(np.array([alone]), y), together, strict=True):
            np.testing.assert_array_equal(one[0], many[position])


@families
def test_everything_is_finite_and_slopes_do_not_overflow(family):
    rng = np.random.default_rng(0)
    model = family.model
    draws = np.linspace(-750.0, 750.0, 301)[:, None] * [1.0, 0.0, 0.0]
    targets = np.array(family.extreme_targets)
    X = np.column_stack([np.ones(targets.size), rng.normal(size=(targets.size, 2))])
    block = Block({"X": X, "y": targets})
    weights = np.full(targets.size, 1e7)
    assert np.all(np.isfinite(model.potentials(draws, block)))
    assert np.all(np.isfinite(model.sum_potentials(draws, block, weights)))
    for theta in draws[::25]:
        gradient, hessian = model.gradient_and_hessian(theta, block, weights)
        assert np.all(np.isfinite(gradient)) and np.all(np.isfinite(hessian))


def test_the_series_has_the_adams_bashforth_coefficients():
    for k in range(GAMMA.size):
        # γ_k + γ_{k−1}/2 + … + γ_0/(k + 1) = 1
        assert GAMMA[k::-1] @ (1.0 / np.arange(1, k + 2)) == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("y", [0.0, 1e6])
def test_the_log_link_goes_on_as_a_parabola(y):
    """Value, slope and curvature are continuous; the rest pulls back towards the data."""
    model = PoissonRegression(link="log", prior=Normal())
    edge = LAST_EXPONENT
    value, slope, curvature, _ = exact(
        lambda eta, t: t * eta - Decimal(edge).exp() * (1 + eta - 300 + (eta - 300) ** 2 / 2),
        750.0,
        y,
    )
    assert potentials(model, [750.0], [y])[0, 0] == pytest.approx(value, rel=1e-12)
    first, second, third = model.derivatives(np.array([750.0]), y)
    assert first[0] == pytest.approx(slope, rel=1e-12)
    assert second[0] == pytest.approx(curvature, rel=1e-12)
    assert third[0] == 0.0
    below, above = np.nextafter(edge, 0.0), np.nextafter(edge, 1e3)
    for k in (0, 1):
        low, high = (model.derivatives(np.array([eta]), y)[k][0] for eta in (below, above))
        assert high == pytest.approx(low, rel=1e-12)
    around = potentials(model, [290.0, below, edge, above, 310.0, 750.0], [y])[0]
    assert np.all(np.diff(around) <= 0.0)
    assert np.all(np.isfinite(np.square(around) * 1e9))
