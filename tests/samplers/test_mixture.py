"""Draws of posteriors with separate modes, whose masses are known."""

import numpy as np
import pytest

from corebayes.models import CustomModel
from corebayes.samplers.mixture import mixture_draws
from corebayes.samplers.mode_search import distinct_modes, find_modes, shares_of
from corebayes.types import Block

MEANS, SDS, SHARES = np.array([-6.0, 5.0]), np.array([0.3, 1.0]), np.array([0.2, 0.8])
ROWS = Block({"X": np.zeros((1, 1))})


def two_normals(draws, block):
    parts = np.log(SHARES / SDS) - 0.5 * np.square((draws[:, :1] - MEANS) / SDS)
    return np.logaddexp.reduce(parts, axis=1)[None, :] - 0.5 * np.square(draws[:, 1])[None, :]


def flat(draws):
    return -0.5 * np.sum(np.square(draws / 1e3), axis=1)


def modes_from(starts):
    model = CustomModel(two_normals, flat, 2)
    return model, distinct_modes(find_modes(model, ROWS, np.ones(1), starts))


def test_masses_and_moments_come_out_right():
    model, modes = modes_from(np.array([[-5.0, 1.0], [4.0, 0.0], [6.0, -1.0]]))
    assert len(modes) == 2 and np.allclose(np.sort(shares_of(modes)), SHARES)
    result = mixture_draws(np.random.default_rng(0), model, ROWS, np.ones(1), 4000, modes)
    left = result.draws[:, 0] < 0.0
    assert np.mean(left) == pytest.approx(0.2, abs=0.02)
    assert np.std(result.draws[left, 0]) == pytest.approx(0.3, rel=0.1)
    assert np.std(result.draws[~left, 0]) == pytest.approx(1.0, rel=0.05)
    assert result.pareto_k < 0.5 and result.effective > 4000


def test_wrong_laplace_masses_are_put_right_by_the_ratios():
    model, modes = modes_from(np.array([[-5.0, 1.0], [4.0, 0.0]]))
    wrong = [mode._replace(log_mass=0.0) for mode in modes]
    result = mixture_draws(np.random.default_rng(1), model, ROWS, np.ones(1), 4000, wrong)
    assert np.mean(result.draws[:, 0] < 0.0) == pytest.approx(0.2, abs=0.02)


def test_the_order_of_draws_says_nothing():
    model, modes = modes_from(np.array([[-5.0, 1.0], [4.0, 0.0]]))
    result = mixture_draws(np.random.default_rng(2), model, ROWS, np.ones(1), 2000, modes)
    first, second = np.split(result.draws[:, 0] < 0.0, 2)
    assert abs(first.mean() - second.mean()) < 0.06
