"""Coresets whose posteriors have no modes of their own, and what is said when they must."""

import numpy as np
import pytest

import corebayes as cb
from corebayes.models.custom.finite_differences import difference_gradient, difference_hessian
from corebayes.samplers.modes.high_places import high_places, with_high_modes
from corebayes.samplers.newton import newton
from corebayes.samplers.posterior import Posterior
from corebayes.tangent.monte_carlo import log_volume
from corebayes.types import Block, Gaussian


def frequency(draws, block):
    return -0.5 * np.square(block["y"][:, None] - np.sin((2.0 + draws[:, 0]) * block["t"][:, None]))


def wide(draws):
    return -0.5 * np.square(draws[:, 0] / 3.0)


def aliased(seed, num_rows):
    rng = np.random.default_rng(seed)
    t = rng.integers(0, 60, num_rows) + 0.03 * rng.normal(size=num_rows)
    return {"t": t, "y": np.sin(2.0 * t) + rng.normal(size=num_rows)}


def shares(grid, rows, weights):
    logs = weights @ frequency(grid, rows) + wide(grid)
    return logs - np.logaddexp.reduce(logs)


def kl(coreset, data):
    # All rows have no mass but near the aliases.
    aliases = 2.0 * np.pi * np.arange(-2, 3)
    near = np.concatenate([alias + np.arange(-0.04, 0.04, 4e-4) for alias in aliases])[:, None]
    far = np.arange(-60.0, 60.0, 1e-3)[:, None]
    far = far[np.min(np.abs(far - aliases), axis=1) > 0.04]
    ours = shares(np.concatenate([near, far]), coreset.rows, coreset.weights)
    stray = float(np.exp(ours[len(near) :]).sum())
    full = shares(near, data, np.ones(len(data["t"])))
    # Cells far away are wider; what lies there lies wrong by a hundred nats.
    return float(np.exp(ours[: len(near)]) @ (ours[: len(near)] - full)) + 100.0 * stray


# Without the last look around: 3.1, 200, and all of the mass at θ = 53.
@pytest.mark.parametrize(
    ("seed", "num_rows"),
    [(5, 400), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((34, 400), (3, 5000)))],
)
def test_few_rows_are_at_the_right_alias(seed, num_rows):
    data = aliased(seed, num_rows)
    coreset = cb.build(cb.CustomModel(frequency, wide, 1), data, size=15, seed=seed, progress=False)
    assert kl(coreset, data) < 0.05


@pytest.mark.slow
def test_too_few_rows_for_the_modes_are_said():
    data = aliased(1, 400)
    with pytest.warns(cb.ModeWarning, match=r"near θ = .* Build with a larger size"):
        coreset = cb.build(cb.CustomModel(frequency, wide, 1), data, size=3, progress=False)
    assert kl(coreset, data) > 0.1


def test_a_mode_far_out_does_not_pass_for_width():
    """Two places of deviation 0.1: the entropy is that of each and of which it is."""
    rng = np.random.default_rng(0)
    places = np.array([0.0, 50.0])
    draws = (places[(rng.random(20_000) < 0.3).astype(int)] + 0.1 * rng.normal(size=20_000))[
        :, None
    ]
    fits = [Gaussian(place[None], np.array([[0.1]])) for place in places]
    expected = np.log(0.1) - 0.3 * np.log(0.3) - 0.7 * np.log(0.7)
    assert log_volume(draws, fits) == pytest.approx(expected, abs=0.03)
    assert log_volume(draws) > expected + 4.0


def test_differences_see_shape_that_is_finer_than_their_steps():
    """A wave of length 0.1 at θ = 53, where steps in proportion to θ are 0.04 and 0.13."""

    def wave(draws):
        return 1e3 * np.cos(60.0 * draws[:, 0]) - 0.5 * np.square(draws[:, 1])

    theta = np.array([53.01, 0.3])
    slope = -6e4 * np.sin(60.0 * theta[0])
    assert difference_gradient(wave, theta) == pytest.approx([slope, -0.3], rel=1e-2)
    curved = -3.6e6 * np.cos(60.0 * theta[0])
    expected = [[curved, 0.0], [0.0, -1.0]]
    assert difference_hessian(wave, theta) == pytest.approx(np.array(expected), rel=1e-2, abs=1.0)


def test_newton_gives_up_where_nothing_rises():
    calls = []

    def value(theta):
        calls.append(theta)
        return -1e3

    fit = newton(
        np.array([1.0]),
        lambda theta: (np.array([5.0]), np.array([[-1.0]])),
        value,
        tolerance=1e-8,
        max_steps=200,
    )
    assert fit.mean == pytest.approx([1.0])
    assert len(calls) < 100


# Three prior deviations out, and fifteen, where few rows of large weights can outweigh the prior.
@pytest.mark.parametrize(("place", "height"), [(9.0, 40.0), (45.0, 300.0)])
def test_narrow_modes_are_found_by_their_height(place, height):
    """One of deviation 0.001 with nearly all of the mass."""

    def spike(draws, block):
        near = height - 0.5 * np.square((draws[:, 0] - place) / 0.001)
        return np.logaddexp(0.0, near)[None] * np.ones((len(block), 1))

    model = cb.CustomModel(spike, wide, 1)
    posterior = Posterior(model, Block({"x": np.zeros(1)}), np.ones(1))
    places = high_places(np.random.default_rng(0), posterior)
    modes = with_high_modes(posterior, places, [])
    assert modes[0].fit.mean == pytest.approx([place], abs=1e-3)
