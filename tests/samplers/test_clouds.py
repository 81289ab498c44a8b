"""Moves within the clouds that particles form, and annealing in many dimensions with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from corebayes.models import CustomModel
from corebayes.rows import open_rows
from corebayes.samplers.modes.clouds import Axes, fit_clouds
from corebayes.samplers.modes.tempering import anneal
from corebayes.samplers.posterior import Posterior

TEETH, SHARES, WIDTH = np.array([-6.0, 1.0, 5.0]), np.array([0.3, 0.6, 0.1]), 0.02


def comb(dim: int, seed: int) -> tuple[Posterior, float, np.ndarray]:
    """A first parameter of three narrow modes, the others Gaussian and correlated; log Z and the
    shares of the modes under the prior N(0, 3²)."""
    rng = np.random.default_rng(seed)
    root = 10.0 * (np.eye(dim - 1) + rng.normal(size=(dim - 1, dim - 1)) / np.sqrt(dim))
    centre = rng.normal(size=dim - 1)

    def log_likelihood(draws: np.ndarray, block: Any) -> np.ndarray:
        parts = np.log(SHARES) - 0.5 * np.square((draws[:, :1] - TEETH) / WIDTH)
        z = (draws[:, 1:] - centre) @ root
        rest = -0.5 * np.einsum("si,si->s", z, z)
        return np.logaddexp.reduce(parts, axis=1) + rest + 0.0 * block.X

    data = open_rows(np.zeros((1, 1)))
    model = CustomModel(
        log_likelihood, lambda draws: -0.5 * np.sum(np.square(draws / 3.0), axis=1), dim
    )
    precision = root @ root.T
    whole = precision + np.eye(dim - 1) / 9.0
    mean = np.linalg.solve(whole, precision @ centre)
    log_z = -0.5 * (centre @ precision @ centre - mean @ whole @ mean)
    log_z += 0.5 * (dim - 1) * np.log(2.0 * np.pi) - 0.5 * np.linalg.slogdet(whole)[1]
    masses = SHARES * np.exp(-0.5 * np.square(TEETH / 3.0)) * WIDTH * np.sqrt(2.0 * np.pi)
    posterior = Posterior(model.bind(data), data.take(np.arange(1)), np.ones(1))
    return posterior, float(log_z + np.log(masses.sum())), masses / masses.sum()


@pytest.mark.parametrize("dim", [1, 3])
def test_moves_leave_a_skewed_density_as_it_is(dim: int) -> None:
    """Gamma variables, accepted by the ratio of p/m, stay gamma: means 2 and variances 2."""
    rng = np.random.default_rng(0)
    draws = rng.gamma(2.0, size=(4000, dim))

    def height(theta: np.ndarray) -> np.ndarray:
        inside = np.all(theta > 0.0, axis=1)
        logs = np.sum(np.log(np.maximum(theta, 1e-300)) - theta, axis=1)
        return np.where(inside, logs, -np.inf)

    clouds, axes = fit_clouds(draws), Axes.of(dim)
    assert clouds is not None
    first = draws.copy()
    for _ in range(60):
        moved = clouds.propose(rng, draws, axes.choose(rng))
        gain = height(moved) - clouds.log_density(moved)
        gain -= height(draws) - clouds.log_density(draws)
        accepted = np.log(rng.uniform(size=len(draws))) < gain
        draws = np.where(accepted[:, None], moved, draws)
    assert np.abs(np.corrcoef(first[:, 0], draws[:, 0])[0, 1]) < 0.2
    np.testing.assert_allclose(draws.mean(axis=0), 2.0, atol=0.1)
    np.testing.assert_allclose(draws.var(axis=0), 2.0, atol=0.3)


def test_clouds_far_apart_are_told_from_one_another() -> None:
    rng = np.random.default_rng(1)
    one, other = rng.normal(size=(700, 4)), rng.normal(size=(300, 4))
    other[:, 1] += 30.0
    clouds = fit_clouds(np.concatenate([one, other]))
    assert clouds is not None
    np.testing.assert_allclose(np.sort(clouds.shares), [0.3, 0.7])
    assert len(fit_clouds(one).parts) == 1


def test_axes_that_stand_in_the_way_are_moved_less() -> None:
    axes, rng = Axes.of(3), np.random.default_rng(2)
    for _ in range(40):
        chosen = axes.choose(rng)
        axes.learn(chosen, 0.02 if chosen[1] else 0.8)
    often = np.mean([axes.choose(rng) for _ in range(400)], axis=0)
    assert often[1] < 0.5 * min(often[0], often[2])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dim", "number"), [(12, 600), pytest.param(30, 1000, marks=pytest.mark.slow)]
)
def test_log_evidence_and_masses_in_many_dimensions(dim: int, number: int) -> None:
    posterior, log_z, shares = comb(dim, seed=dim)
    found = anneal(np.random.default_rng(0), posterior, number)
    assert found is not None
    assert found.log_evidence == pytest.approx(log_z, abs=1.5)
    nearest = np.argmin(np.abs(found.particles[:, :1] - TEETH), axis=1)
    np.testing.assert_allclose(np.bincount(nearest, minlength=3) / number, shares, atol=0.25)
