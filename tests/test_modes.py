"""Modes that draws do not visit, with mixtures whose masses are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from corebayes.certify.modes import unvisited_mode

from corebayes.models import CustomModel
from corebayes.rows import open_rows
from tests.coresets import standard_normals, weighted


def mixture(shares: Any, means: Any, sds: Any, num_rows: int = 4) -> tuple[Any, Any]:
    """Rows that share out the log density of a mixture evenly, under a wide prior."""
    shares, means, sds = (np.asarray(values, dtype=float) for values in (shares, means, sds))

    def log_likelihood(draws: np.ndarray, block: Any) -> np.ndarray:
        parts = np.log(shares / sds) - 0.5 * np.square((draws - means) / sds)
        return np.logaddexp.reduce(parts, axis=1) / num_rows + 0.0 * block.X

    data = open_rows(np.zeros((num_rows, 1)))
    model = CustomModel(log_likelihood, lambda draws: -0.5 * np.square(draws[:, 0] / 6.0), 1)
    return model.bind(data), data


def find(model: Any, data: Any, weights: Any, draws: Any) -> str | None:
    coreset = weighted(model, data, np.arange(data.num_rows), weights)
    return unvisited_mode(np.random.default_rng(0), coreset, data, draws)


def test_visited_modes_are_no_trouble() -> None:
    model, data = mixture([0.3, 0.7], [-5.0, 5.0], [0.5, 1.0])
    z = standard_normals(100, 1)
    assert find(model, data, 1.0, np.concatenate([-5.0 + 0.5 * z, 5.0 + z])) is None


def test_an_unvisited_mode_is_named_with_its_mass() -> None:
    model, data = mixture([0.3, 0.7], [-5.0, 5.0], [0.5, 1.0])
    reason = find(model, data, 1.0, 5.0 + standard_normals(100, 1))
    assert reason is not None
    assert "the coreset posterior has a mode near θ = (-4.97)" in reason
    # The prior, of width 6, is almost the same at both.
    assert "about 30.1 % of the mass" in reason


@pytest.mark.parametrize(("share", "trouble"), [(8e-4, False), (1e-2, True)])
def test_mass_counts_not_height(share: float, trouble: bool) -> None:
    # Half as wide, so twice as high for its mass: 8e-4 is negligible, 1.6e-3 would not be.
    model, data = mixture([1.0, share], [4.0, -4.0], [0.1, 0.05])
    found = find(model, data, 1.0, 4.0 + 0.1 * standard_normals(200, 1))
    assert (found is not None) == trouble


def test_a_wide_low_mode_counts() -> None:
    # A thousandth as high as the visited one, but with a sixth of the mass.
    model, data = mixture([1.0, 0.2], [4.0, -4.0], [0.01, 2.0])
    assert find(model, data, 1.0, 4.0 + 0.01 * standard_normals(200, 1)) is not None


@pytest.mark.parametrize("num_rows", [40, 2000])
def test_a_mode_of_the_full_posterior_alone(num_rows: int) -> None:
    """Rows at ±8 with Cauchy noise; the coreset holds those at 8. On the subsample at 2,000."""
    data = open_rows(np.repeat([-8.0, 8.0], num_rows // 2))
    model = CustomModel(
        lambda draws, block: -np.log1p(np.square(block.X - draws[:, 0])),
        lambda draws: -0.5 * np.square(draws[:, 0] / 6.0),
        1,
    ).bind(data)
    kept = np.arange(num_rows // 2, num_rows)
    coreset = weighted(model, data, kept, 1.0)
    draws = 8.0 + standard_normals(200, 1) / np.sqrt(num_rows)
    reason = unvisited_mode(np.random.default_rng(0), coreset, data, draws)
    assert reason is not None and "the full posterior has a mode near θ = (-7.9" in reason
    both = np.concatenate([draws, -draws])
    everything = weighted(model, data, np.arange(num_rows), 1.0)
    assert unvisited_mode(np.random.default_rng(0), everything, data, both) is None
