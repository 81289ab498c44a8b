"""Weight updates on restrictions small enough to know the answer."""

import numpy as np
import pytest

import corebayes as cb
from corebayes.tangent.geometry import Level, Moments


class Quadratic:
    """KL(w) = ½ (w − optimum)ᵀ gram (w − optimum): the metric is the same everywhere."""

    def __init__(self, gram, optimum):
        self.gram, self.optimum = np.array(gram), np.array(optimum)

    def gradient(self, rng, weights):
        return self.gram @ (weights - self.optimum)

    def moments(self, rng, weights):
        away = weights - self.optimum
        return Moments(self.gram, self.gram @ self.optimum, Level(0.5 * away @ self.gram @ away))


GRAM = [[2.0, 0.3, 0.1], [0.3, 1.0, -0.2], [0.1, -0.2, 0.5]]


@pytest.mark.parametrize(
    ("update", "error"),
    [
        (cb.SGD(num_steps=4000, rate=lambda t: 0.3), 1e-6),
        (cb.Adam(num_steps=4000, rate=lambda t: 0.3 / np.sqrt(t)), 1e-2),
        (cb.NaturalGradient(), 1e-6),
    ],
)
def test_finds_the_optimum_and_stays_nonnegative(update, error):
    rng = np.random.default_rng(0)
    inside = update.run(rng, Quadratic(GRAM, [3.0, 1.0, 7.0]), np.zeros(3))
    assert np.allclose(inside, [3.0, 1.0, 7.0], atol=10 * error)
    # The unconstrained optimum has a negative weight, so the constraint must bind.
    outside = update.run(rng, Quadratic(GRAM, [3.0, -2.0, 7.0]), np.ones(3))
    assert np.all(outside >= 0.0) and outside[1] == pytest.approx(0.0, abs=error)


@pytest.mark.parametrize("update", [cb.SGD(num_steps=1), cb.Adam(num_steps=1, rate=5.0)])
def test_one_huge_gradient_stops_at_zero(update):
    weights = update.run(np.random.default_rng(0), Quadratic(GRAM, [-1e6, 4.0, 4.0]), np.ones(3))
    assert weights[0] == 0.0 and np.all(weights >= 0.0)


class Deceptive(Quadratic):
    """The covariances promise a long step, but KL rises far from the start."""

    def moments(self, rng, weights):
        honest = super().moments(rng, weights)
        distance = float(np.linalg.norm(weights))
        return honest._replace(level=Level(-distance if distance < 0.5 else distance))


def test_natural_gradient_shortens_a_step_that_would_raise_kl():
    restriction = Deceptive(GRAM, [3.0, 1.0, 7.0])
    weights = cb.NaturalGradient(num_steps=1).run(
        np.random.default_rng(0), restriction, np.zeros(3)
    )
    assert 0.0 < np.linalg.norm(weights) < 0.5


def test_natural_gradient_gets_past_a_row_that_it_must_not_drop():
    """The first row is nearly constant here, so every damped step drops it; without it all is lost,
    as with a count of zero whose rate is nearly zero."""
    gram, cross = np.diag([1e-12, 1.0]), np.array([-1e-3, 5.0])

    def look(weights):
        energy = 0.5 * (weights[1] - 5.0) ** 2 + (0.0 if weights[0] > 0.0 else 1e6)
        return Moments(gram, cross, Level(energy)), weights

    start = np.array([100.0, 0.0])
    weights, seen = cb.NaturalGradient().descend(look, start, look(start))
    assert weights[0] > 0.0 and weights[1] > 0.1
    np.testing.assert_array_equal(seen, weights)


@pytest.mark.parametrize("away, looks", [(0.5, 0), (5.0, 1)])
def test_natural_gradient_takes_no_small_share_of_what_is_left_within_a_nat(away, looks):
    """A step that promises 5e-4 nats, beside `away` that no weight can mend."""
    seen = []

    def look(weights):
        seen.append(weights)
        rest = 0.5 * float((weights[0] - 1.0) ** 2)
        return Moments(np.eye(1), np.ones(1), Level(rest, away + rest)), None

    start = np.array([1.0 - np.sqrt(1e-3)])
    update = cb.NaturalGradient(num_steps=1)
    update.descend(look, start, look(start))
    assert len(seen) == 1 + looks


@pytest.mark.parametrize(
    "level, lower",
    [
        (Level(-10.0, 50.0), True),  # far: by the energy
        (Level(-9.0, 0.3), False),
        (Level(-10.0, 0.19), True),  # near: by the variance,
        (Level(-10.01, 0.21), False),
        (Level(-10.03, 0.21), True),  # unless the energy clearly falls
    ],
)
def test_levels_compare_by_energy_when_far_and_by_variance_when_near(level, lower):
    other = Level(-9.5, 20.0) if level.half_variance > 1.0 else Level(-10.0, 0.2)
    assert level.lower_than(other) is lower
