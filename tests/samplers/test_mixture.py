"""Draws of posteriors with separate modes, whose masses are known."""

import numpy as np
import pytest

from corebayes.models import CustomModel
from corebayes.samplers.mixture import mixture_draws
from corebayes.samplers.modes.search import Mode, distinct_modes, find_modes, shares_of
from corebayes.samplers.posterior import Posterior
from corebayes.types import Block

MEANS, SDS, SHARES = np.array([-6.0, 5.0]), np.array([0.3, 1.0]), np.array([0.2, 0.8])
ROWS = Block({"X": np.zeros((1, 1))})


def two_normals(draws, block):
    parts = np.log(SHARES / SDS) - 0.5 * np.square((draws[:, :1] - MEANS) / SDS)
    return np.logaddexp.reduce(parts, axis=1)[None, :] - 0.5 * np.square(draws[:, 1])[None, :]


def flat(draws):
    return -0.5 * np.sum(np.square(draws / 1e3), axis=1)


def modes_from(starts):
    posterior = Posterior(CustomModel(two_normals, flat, 2), ROWS, np.ones(1))
    return posterior, distinct_modes(find_modes(posterior, starts))


def test_masses_and_moments_come_out_right():
    posterior, modes = modes_from(np.array([[-5.0, 1.0], [4.0, 0.0], [6.0, -1.0]]))
    assert len(modes) == 2 and np.allclose(np.sort(shares_of(modes)), SHARES)
    result = mixture_draws(np.random.default_rng(0), posterior, 20_000, modes)
    draws, drawn_weights = result.flat, result.weights.ravel()
    left = draws[:, 0] < 0.0
    assert result.independent and result.weights.mean() == pytest.approx(1.0)
    assert np.mean(drawn_weights * left) == pytest.approx(0.2, abs=0.01)
    for side, mean, sd in ((left, -6.0, 0.3), (~left, 5.0, 1.0)):
        weights = drawn_weights[side] / drawn_weights[side].sum()
        away = draws[side, 0] - mean
        assert weights @ away == pytest.approx(0.0, abs=0.05 * sd)
        assert np.sqrt(weights @ np.square(away)) == pytest.approx(sd, rel=0.05)
    assert result.pareto_k < 0.5


def test_weights_have_the_mean_one_beside_heights_that_leave_no_digit():
    """A coreset of one row may be all but impossible wherever its fit says."""
    steep = CustomModel(lambda draws, block: np.full((1, len(draws)), -1e18), flat, 2)
    posterior, (mode, *_) = Posterior(steep, ROWS, np.ones(1)), modes_from(np.zeros((1, 2)))[1]
    result = mixture_draws(np.random.default_rng(0), posterior, 400, [mode])
    assert result.weights.mean() == pytest.approx(1.0)


def test_wrong_laplace_masses_are_put_right_by_the_ratios():
    posterior, modes = modes_from(np.array([[-5.0, 1.0], [4.0, 0.0]]))
    wrong = [mode._replace(log_mass=0.0) for mode in modes]
    result = mixture_draws(np.random.default_rng(1), posterior, 20_000, wrong)
    draws, drawn_weights = result.flat, result.weights.ravel()
    left = draws[:, 0] < 0.0
    assert np.mean(left) == pytest.approx(0.5, abs=0.02)
    assert np.mean(drawn_weights * left) == pytest.approx(0.2, abs=0.01)


def test_a_missed_mode_shows_in_the_tail():
    posterior, modes = modes_from(np.array([[-5.0, 1.0], [4.0, 0.0]]))
    narrow = modes[0].fit._replace(factor=0.2 * modes[0].fit.factor)
    result = mixture_draws(np.random.default_rng(2), posterior, 5000, [Mode(narrow, 0.0)])
    assert result.pareto_k > 0.5
