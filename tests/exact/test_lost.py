"""Corrected draws of posteriors with two modes: each mode has its share, or nothing is returned."""

import numpy as np
import pytest

import corebayes as cb
from corebayes.certify.search import Found
from corebayes.coreset import Coreset
from corebayes.exact.chains import draw_exactly
from corebayes.exact.lost import told_apart
from corebayes.rows import open_rows
from corebayes.samplers.modes.search import Mode
from corebayes.types import Gaussian

NUM_ROWS, PLACE, SHARE = 800, 11.0, 0.15


def likelihood(draws, block):
    """Rows of one kind share −θ²/2, those of the other a mode at PLACE with a SHARE of the mass."""
    theta = draws[:, 0]
    height = np.log(SHARE / (1.0 - SHARE))
    second = np.logaddexp(0.0, PLACE * theta - 0.5 * PLACE**2 + height)
    both = np.stack([-0.5 * np.square(theta), second])
    return 2.0 / NUM_ROWS * both[block["kind"].astype(int)]


def two_modes(weights):
    """Rows, and the coreset of one row of each kind with weights of so many times what is right."""
    rows = open_rows({"kind": np.arange(NUM_ROWS) % 2.0}).check()
    prior = lambda draws: -0.5 * np.square(draws[:, 0] / 20.0)  # noqa: E731
    model = cb.CustomModel(likelihood, prior, 1).bind(rows)
    chosen = np.flatnonzero(np.array(weights) > 0.0)
    right = np.array(weights)[chosen] * NUM_ROWS / 2.0
    return rows, Coreset(chosen, right, rows.take(chosen), model, NUM_ROWS, float(NUM_ROWS))


def share_beyond(rows, model):
    grid = np.linspace(-15.0, 30.0, 9001)[:, None]
    everything = rows.take(np.arange(NUM_ROWS))
    logs = model.sum_potentials(grid, everything, np.ones(NUM_ROWS)) + model.log_prior(grid)
    mass = np.exp(logs - logs.max())
    return mass[grid[:, 0] > 0.5 * PLACE].sum() / mass.sum()


# The second mode too light, which made draws of the first alone; too heavy; and not there.
@pytest.mark.slow
@pytest.mark.parametrize(
    "weights", [(1.0, 0.91), (1.0, 0.88), (1.0, 1.04), (1.02, 0.97), (1.0, 0.0)]
)
@pytest.mark.parametrize("seed", [0, 1])
def test_both_modes_have_their_share(weights, seed):
    rows, coreset = two_modes(weights)
    found = draw_exactly(np.random.default_rng(seed), coreset, rows, 500, 4)
    assert found.good
    expected = share_beyond(rows, coreset.model)
    beyond = (found.values > 0.5 * PLACE).mean(axis=(1, 2))
    # An autocorrelation time of three at most.
    error = np.sqrt(3.0 * expected * (1.0 - expected) / 2000.0)
    assert abs(beyond.mean() - expected) < 4.0 * error


def test_modes_that_the_coreset_has_mass_at_are_not_lost():
    def mode(place):
        return Mode(Gaussian(np.array([place]), np.eye(1)), 0.0)

    rows, right = two_modes((1.0, 1.0))
    found, never = told_apart(right, rows, Found([mode(0.0)], None, [mode(PLACE)]))
    assert len(found.ours) == 2
    assert not found.lost
    assert not never
    rows, without = two_modes((1.0, 0.0))
    found, never = told_apart(without, rows, Found([mode(0.0)], None, [mode(PLACE)]))
    assert len(found.ours) == 1
    assert len(found.lost) == 1
    assert never
    # One that it has in a thousandth of what there should be is climbed to on all rows.
    rows, light = two_modes((1.0, 0.91))
    found, never = told_apart(light, rows, Found([mode(0.0), mode(9.99)], None, []))
    assert found.lost[0].fit.mean == pytest.approx([PLACE], abs=0.1)
    assert not never


def steps(draws, block):
    """A fall of `depth` to one side of every x, as sharp as to leave no slope elsewhere."""
    away = 200.0 * block["side"][:, None] * (draws[:, 0] - block["x"][:, None])
    return -block["depth"][:, None] / (1.0 + np.exp(np.clip(-away, -500.0, 500.0)))


# Draws of the mixture around one plateau never showed that it left out the others.
@pytest.mark.parametrize("seed", [3, pytest.param(5, marks=pytest.mark.slow)])
def test_plateaus_have_their_shares(seed):
    rng = np.random.default_rng(seed)
    x, side = rng.uniform(-3.0, 3.0, 300), rng.choice([-1.0, 1.0], 300)
    rows = open_rows({"x": x, "side": side, "depth": rng.exponential(0.3, 300)}).check()
    prior = lambda draws: -0.5 * np.square(draws[:, 0] / 3.0)  # noqa: E731
    model = cb.CustomModel(steps, prior, 1).bind(rows)
    everything = rows.take(np.arange(300))
    weights = np.exp(0.02 * rng.normal(size=300))
    coreset = Coreset(np.arange(300), weights, everything, model, 300, 300.0)
    found = draw_exactly(np.random.default_rng(seed), coreset, rows, 500, 4)
    assert found.good
    grid = np.linspace(-15.0, 15.0, 30_001)[:, None]
    logs = model.sum_potentials(grid, everything, np.ones(300)) + prior(grid)
    expected = np.cumsum(np.exp(logs - np.logaddexp.reduce(logs)))
    draws = np.sort(found.values.ravel())
    ours = (np.arange(draws.size) + 0.5) / draws.size
    distance = np.max(np.abs(ours - np.interp(draws, grid[:, 0], expected)))
    assert distance < 2.0 / np.sqrt(draws.size / 2.0)
