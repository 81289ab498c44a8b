"""A Gaussian as wide as the prior, also for priors that have no Laplace fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from corebayes.models import CustomModel
from corebayes.rows import open_rows
from corebayes.samplers.laplace import Laplace, prior_fit
from corebayes.samplers.nuts import NUTS
from corebayes.types import Block

NOTHING = Block({"X": np.zeros((0, 1))})


def nothing_said(draws: Any, block: Any) -> Any:
    return np.zeros((len(block), len(draws)))


def fit_of(log_prior: Any, dim: int) -> Any:
    return prior_fit(CustomModel(nothing_said, log_prior, dim), NOTHING)


def test_a_gaussian_is_its_own_fit():
    fit = fit_of(lambda d: -0.5 * ((d[:, 0] - 3.0) / 0.2) ** 2 - 0.5 * (d[:, 1] / 40.0) ** 2, 2)
    np.testing.assert_allclose(fit.mean, [3.0, 0.0], atol=1e-6)
    np.testing.assert_allclose(np.abs(np.diag(fit.factor)), [0.2, 40.0], rtol=1e-4)


def test_a_kink_has_the_width_at_which_half_a_nat_is_lost():
    fit = fit_of(lambda d: -np.abs(d[:, 0]) / 8.0 - np.abs(d[:, 1]) * 32.0, 2)
    # log p(0) − log p(x) = ½ at x = 4 and at x = 1/64.
    np.testing.assert_array_equal(fit.mean, [0.0, 0.0])
    np.testing.assert_allclose(np.diag(fit.factor), [4.0, 1.0 / 64.0])


def test_a_hierarchy_has_no_mode_and_a_width():
    def funnel(draws: Any) -> Any:
        # τ half-normal, u_j ~ N(0, τ²), θ = (log τ, u): unbounded at τ = u = 0.
        log_scale, effects = draws[:, 0], draws[:, 1:]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            spread = np.square(effects / np.exp(log_scale)[:, None]).sum(axis=1)
            return -0.5 * np.exp(2 * log_scale) + log_scale - 9 * log_scale - 0.5 * spread

    fit = fit_of(funnel, 10)
    np.testing.assert_array_equal(fit.mean, np.zeros(10))
    widths = np.diag(fit.factor)
    assert np.all(widths > 0.05) and np.all(widths <= 2.0)
    np.testing.assert_allclose(widths[1:], 1.0)


@pytest.mark.parametrize("height", [0.0, np.nan])
def test_nothing_to_go_by_gives_units(height):
    fit = fit_of(lambda draws: np.full(len(draws), height), 3)
    np.testing.assert_array_equal(fit.factor, np.eye(3))


def test_chains_start_where_a_prior_has_a_kink():
    data = open_rows({"x": np.array([[1.5], [2.5], [2.0]])})
    model = CustomModel(
        lambda draws, block: -0.5 * np.square(block["x"] - draws[:, :1].T),
        lambda draws: -np.abs(draws[:, 0]),
        1,
    ).bind(data)
    rows = data.take(np.arange(3))
    draws, _ = NUTS(chains=4).draw(np.random.default_rng(0), model, rows, np.full(3, 20.0), 2000)
    # Away from the kink: N(2 − 1/60, 1/60).
    assert draws.mean() == pytest.approx(2.0 - 1.0 / 60.0, abs=0.01)
    assert draws.std() == pytest.approx(60.0**-0.5, rel=0.1)


def test_a_density_without_a_fit_is_said_to_have_none():
    """Beyond θ = 0, where its slope leads, it is not defined."""
    model = CustomModel(
        lambda draws, block: np.where(draws[:, 0] < 0.0, np.exp(draws[:, 0]), np.nan)[None, :],
        lambda draws: np.zeros(len(draws)),
        1,
    )
    rows, rng = Block({"X": np.zeros((1, 1))}), np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"coreset posterior of size 1.*sampler=NUTS\(\)"):
        Laplace().draw(rng, model, rows, np.ones(1), 20, np.array([-1e-4]))


def test_draws_of_a_fit_without_curvature_stay_where_the_density_is():
    """Flat at the top, x⁴: the fit is far too wide, and its draws would be nowhere."""
    model = CustomModel(
        lambda draws, block: -np.square(np.square(draws[:, 0]))[None, :],
        lambda draws: -0.5 * np.square(draws[:, 1]),
        2,
    )
    rows = Block({"X": np.zeros((1, 1))})
    wide = Laplace().fit(model, rows, np.ones(1))
    draws, _ = Laplace().draw(np.random.default_rng(0), model, rows, np.ones(1), 500)
    assert np.linalg.norm(wide.factor[0]) > 30.0 and np.abs(draws[:, 0]).max() < 30.0
    assert draws[:, 0].std() > 0.3


def test_chains_do_not_start_in_a_spike_that_holds_nothing():
    """Higher by 5 than the rest, but 0.05¹⁰ of its volume: e⁻²⁵ of the mass."""

    def spiked(draws: Any, block: Any) -> Any:
        broad = -0.5 * np.square(draws).sum(axis=1)
        narrow = 5.0 - 0.5 * np.square((draws - 4.0) / 0.05).sum(axis=1)
        return np.logaddexp(broad, narrow)[None, :]

    model = CustomModel(spiked, lambda draws: -0.5 * np.square(draws / 20.0).sum(axis=1), 10)
    rows, spike = Block({"X": np.zeros((1, 1))}), np.full(10, 4.0)
    draws, location = NUTS(chains=2, num_tune=100).draw(
        np.random.default_rng(0), model, rows, np.ones(1), 400, spike
    )
    assert np.all(np.abs(location) < 0.1)
    assert np.all(np.abs(draws.mean(axis=0)) < 0.3) and 0.8 < draws.std() < 1.2
