"""Hot DoG against a literal transcription of its recursions, one coordinate at a time."""

import numpy as np
import pytest

import corebayes as cb


def transcription(gradients, start, r=0.001):
    """v = .999v + .001g², m = .9m + .1g, d = .9d + .1max(|w − w0|, d), all bias-corrected."""
    w, m, v, d = start, 0.0, 0.0, 0.0
    path = []
    for t, g in enumerate(gradients, start=1):
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g**2
        m_hat, v_hat = m / (1 - 0.9**t), v / (1 - 0.999**t)
        if t == 1:
            w = w - r / (v_hat**0.5 + 1e-8) * m_hat
        else:
            d = 0.9 * d + 0.1 * max(abs(w - start), d)
            d_hat = d / (1 - 0.9 ** (t - 1))
            w = w - d_hat / ((t * v_hat) ** 0.5 + 1e-8) * m_hat
        w = max(w, 0.0)
        path.append(w)
    return path


class Scripted:
    def __init__(self, gradients):
        self.gradients, self.seen = iter(gradients), []

    def gradient(self, rng, weights):
        self.seen.append(weights)
        return next(self.gradients)


def test_follows_the_recursions():
    rng = np.random.default_rng(0)
    gradients = rng.normal(size=(60, 4)) * [1.0, 100.0, 1e-3, 5.0] + [-3.0, 50.0, 0.0, 5.0]
    start = np.array([2.0, 0.001, 4.0, 0.02])
    restriction = Scripted(gradients)
    last = cb.HotDoG(num_steps=60).run(rng, restriction, start)
    found = np.array([*restriction.seen[1:], last])
    expected = np.array([transcription(g, w) for g, w in zip(gradients.T, start, strict=True)]).T
    assert np.allclose(found, expected, rtol=1e-12, atol=1e-14)
    assert np.any(expected == 0.0), "the cut at zero must be seen"


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_needs_no_learning_rate(scale):
    """The same distance to go in any unit of the gradient, from a first step of 0.001."""

    class Bowl:
        def gradient(self, rng, weights):
            return scale * (weights - [30.0, 0.7]) + scale * rng.normal(scale=0.1, size=2)

    weights = cb.HotDoG(num_steps=3000).run(np.random.default_rng(0), Bowl(), np.full(2, 5.0))
    assert np.allclose(weights, [30.0, 0.7], rtol=0, atol=0.15)


def test_a_coordinate_without_gradient_stays():
    class Flat:
        def gradient(self, rng, weights):
            return np.array([0.0, 1.0])

    weights = cb.HotDoG(num_steps=20).run(np.random.default_rng(0), Flat(), np.ones(2))
    assert weights[0] == 1.0 and weights[1] < 1.0
