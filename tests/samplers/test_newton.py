"""Newton's method where there is nothing to climb to."""

from __future__ import annotations

import numpy as np
import pytest

from corebayes.samplers.newton import newton
from corebayes.types import Array


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("good_steps", [0, 2])
def test_a_climb_that_left_the_numbers_ends_there(bad: float, good_steps: int) -> None:
    """Weighted rows make spikes of a mixture that go on for ever: hundreds of starts fall in."""
    asked = 0

    def slopes(theta: Array) -> tuple[Array, Array]:
        nonlocal asked
        asked += 1
        if asked > good_steps:
            return np.full(2, bad), -np.eye(2)
        return np.array([0.2, 0.1]), -np.eye(2)

    with np.errstate(all="ignore"):
        fit = newton(np.zeros(2), slopes, lambda _: 0.0, tolerance=1e-8, max_steps=200)
    assert asked == good_steps + 1
    assert not np.any(np.isfinite(fit.factor))


def test_a_quadratic_is_climbed_in_one_step() -> None:
    precision = np.array([[2.0, 0.5], [0.5, 1.0]])
    mode = np.array([0.1, -0.2])

    def slopes(theta: Array) -> tuple[Array, Array]:
        return -precision @ (theta - mode), -precision

    fit = newton(np.zeros(2), slopes, lambda _: 0.0, tolerance=1e-8, max_steps=200)
    np.testing.assert_allclose(fit.mean, mode, rtol=0, atol=1e-12)
    np.testing.assert_allclose(fit.factor @ fit.factor.T, np.linalg.inv(precision), rtol=1e-12)


def test_a_step_that_is_far_too_long_is_shortened_at_once() -> None:
    """−log cosh has no curvature far out: Newton's step from there is thousands of times too long,
    and halving it one value at a time would take a pass each."""
    asked = [0, 0]

    def value(theta: Array) -> float:
        asked[0] += 1
        return -float(np.logaddexp(theta, -theta)[0])

    def rises(thetas: Array) -> Array:
        asked[1] += 1
        values = -np.logaddexp(thetas, -thetas)[:, 0]
        return values - values[0]

    def slopes(theta: Array) -> tuple[Array, Array]:
        slope = np.tanh(theta)
        return -slope, -np.diag(1.0 - slope**2)

    start = np.array([7.0])
    fit = newton(start, slopes, value, rises=rises, tolerance=1e-8, max_steps=200)
    np.testing.assert_allclose(fit.mean, 0.0, atol=1e-3)
    together = sum(asked)
    asked[:] = [0, 0]
    newton(start, slopes, value, tolerance=1e-8, max_steps=200)
    assert together < 0.5 * sum(asked)
