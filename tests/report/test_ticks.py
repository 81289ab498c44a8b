"""The two numbers below a small panel."""

import numpy as np
import pytest

from corebayes.figures.plots import two_ticks

pytest.importorskip("matplotlib")


@pytest.mark.parametrize("seed", range(20))
def test_they_are_far_apart(seed: int) -> None:
    """Labels of −1.004 and −0.996 met where the panel was three times as wide."""
    rng = np.random.default_rng(seed)
    middle, half = rng.normal() * 10.0 ** rng.uniform(-3, 3), 10.0 ** rng.uniform(-3, 2)
    for low, high in ((middle - half, middle + half), (-1.0066, -0.9934)):
        first, last = two_ticks(low, high)
        assert low <= first and last <= high and last - first >= 0.65 * (high - low)
