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
