"""Annealing from the prior, on densities whose masses are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from corebayes.models import CustomModel
from corebayes.rows import open_rows
from corebayes.samplers.modes.tempering import anneal
from corebayes.samplers.posterior import Posterior
from tests.coresets import mixture


@pytest.mark.parametrize("sds", [(1.0, 0.05), (0.01, 0.3)])
def test_masses_and_evidence_of_two_modes(sds: Any) -> None:
    model, data = mixture([0.3, 0.7], [-20.0, 20.0], sds)
    posterior = Posterior(model, data.take(np.arange(4)), np.ones(4))
    runs = [anneal(np.random.default_rng(seed), posterior, 1000) for seed in range(6)]
    right = [np.mean(run.particles[:, 0] > 0.0) for run in runs]
    assert np.mean(right) == pytest.approx(0.7, abs=0.12)
    # ∫ e^{Σ f} π_0 = √(2π) · π_0(±20), where the prior lacks its constant
    truth = 0.5 * np.log(2.0 * np.pi) - 0.5 / 9.0
    assert np.mean([run.log_evidence for run in runs]) == pytest.approx(truth, abs=0.5)
    narrow = runs[0].particles[runs[0].particles[:, 0] < 0.0]
    assert narrow.std() == pytest.approx(sds[0], rel=0.4)


def test_heights_that_lie_e_to_the_sixty_apart() -> None:
    """A learned spread that the prior takes for tiny: first steps of β are as small."""
    data = open_rows(np.linspace(-2.0, 3.0, 40)[:, None])
    model = CustomModel(
        lambda draws, block: -0.5 * np.square(block.X * np.exp(-draws[:, 0])) - draws[:, 0],
        lambda draws: -0.5 * np.square((draws[:, 0] + 20.0) / 15.0),
        1,
    )
    posterior = Posterior(model.bind(data), data.take(np.arange(40)), np.ones(40))
    found = anneal(np.random.default_rng(0), posterior, 1000)
    grid = np.linspace(-1.0, 2.5, 2001)
    heights = posterior.log_density(grid[:, None])
    truth = heights.max() + np.log(np.exp(heights - heights.max()).sum() * (grid[1] - grid[0]))
    assert found is not None and found.temperatures[-1] == 1.0
    assert found.log_evidence == pytest.approx(truth, abs=0.5)


def test_a_density_that_rises_without_end_gives_none() -> None:
    data = open_rows(np.ones((3, 2)))
    model = CustomModel(
        lambda draws, block: np.sum(np.square(draws), axis=1) + 0.0 * block.X[:, :1],
        lambda draws: -0.5 * np.sum(np.square(draws / 30.0), axis=1),
        2,
    )
    posterior = Posterior(model.bind(data), data.take(np.arange(3)), np.ones(3))
    assert anneal(np.random.default_rng(0), posterior, 1000) is None


def test_a_density_that_is_nowhere_finite_gives_none() -> None:
    data = open_rows(np.zeros((3, 1)))
    model = CustomModel(
        lambda draws, block: np.where(np.abs(draws[:, 0]) < 1e-9, 0.0, -np.inf) + 0 * block.X,
        lambda draws: -0.5 * np.square(draws[:, 0]),
        1,
    )
    posterior = Posterior(model.bind(data), data.take(np.arange(3)), np.ones(3))
    assert anneal(np.random.default_rng(0), posterior, 200) is None
