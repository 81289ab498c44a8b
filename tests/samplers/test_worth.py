"""Diagnostics of all parameters at once against arviz-stats, one at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from arviz_stats.base import array_stats

from corebayes.samplers.worth import worth

AXES: dict[str, Any] = {"chain_axis": 0, "draw_axis": 1}


def autoregressive(chains: int, draws: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    factors = np.array([-0.5, 0.3, 0.97])
    values = rng.normal(size=(chains, draws, 3))
    for step in range(1, draws):
        values[:, step] += factors * values[:, step - 1]
    return values + rng.choice([0.0, 0.5]) * rng.normal(size=(chains, 1, 3))


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize(("chains", "draws"), [(4, 1000), (2, 711), (3, 10), (5, 402), (2, 167)])
def test_as_arviz_stats(chains: int, draws: int, ties: bool) -> None:
    values = autoregressive(chains, draws, seed=chains * draws)
    values = np.round(values) if ties else values
    found = worth(values)
    assert found.max_rhat == pytest.approx(array_stats.rhat(values, **AXES).max(), rel=1e-9)
    bulk = array_stats.ess(values, **AXES, method="bulk").min()
    tail = array_stats.ess(values, **AXES, method="tail", prob=(0.05, 0.95)).min()
    assert found.min_ess_bulk == pytest.approx(bulk, rel=1e-9)
    assert found.min_ess_tail == pytest.approx(tail, rel=1e-9)


def test_chains_that_stick_at_different_values_never_agree() -> None:
    values = np.zeros((4, 100, 2))
    values[:, :, 0] = np.random.default_rng(0).normal(size=(4, 100))
    values[:, :, 1] = np.arange(4)[:, None]
    assert worth(values).max_rhat == np.inf
    # What is the same everywhere is passed over, and too few draws say nothing.
    values[:, :, 1] = 7.0
    assert worth(values).max_rhat < 1.1
    assert np.all(np.isnan(worth(values[:, :3])))
