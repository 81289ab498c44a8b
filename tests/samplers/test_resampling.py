"""Draws by importance resampling: the right moments, and NUTS where the proposals do not cover."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from scipy import integrate

from corebayes.models import CustomModel
from corebayes.samplers.draws import Draws
from corebayes.samplers.posterior import Posterior
from corebayes.samplers.resampling import Resampling
from corebayes.types import Block
from tests.samplers.test_mixture import MEANS, SDS, SHARES, flat, two_normals

ONE = Block({"X": np.zeros((1, 1))})


@dataclass(frozen=True)
class Refuses:
    """In the place of NUTS: counts how often it is asked."""

    asked: list[int] = field(default_factory=list)

    def draw(self, rng: Any, posterior: Any, num_draws: int, start: Any = None) -> Draws:
        self.asked.append(num_draws)
        return Draws(values=np.full((1, num_draws, posterior.dim), np.nan), location=np.zeros(1))


def gamma(draws: Any, block: Any) -> Any:
    # θ = log of a gamma variable of shape 4: skewed to the left.
    return (4.0 * draws[:, 0] - np.exp(np.minimum(draws[:, 0], 50.0)))[None, :]


def test_a_skewed_posterior_is_not_its_laplace_fit():
    model = CustomModel(gamma, lambda draws: np.zeros(len(draws)), 1)
    other = Refuses()
    sampler = Resampling(otherwise=other)
    draws = sampler.draw(np.random.default_rng(0), Posterior(model, ONE, np.ones(1)), 20_000).flat
    density = lambda x: np.exp(gamma(np.array([[x]]), ONE)[0, 0])  # noqa: E731
    moments = [integrate.quad(lambda x, k=k: x**k * density(x), -12.0, 6.0)[0] for k in range(4)]
    mean = moments[1] / moments[0]
    sd = np.sqrt(moments[2] / moments[0] - mean**2)
    third = moments[3] / moments[0] - 3.0 * mean * sd**2 - mean**3
    assert not other.asked
    assert draws.mean() == pytest.approx(mean, abs=0.02)
    assert draws.std() == pytest.approx(sd, rel=0.02)
    assert np.mean((draws - draws.mean()) ** 3) == pytest.approx(third, rel=0.15) and third < 0.0


def test_both_modes_are_drawn_from_with_their_masses():
    model, other = CustomModel(two_normals, flat, 2), Refuses()
    # The prior is wide, so a draw of it lies beyond one of the modes or the other.
    posterior = Posterior(model, ONE, np.ones(1))
    draws = (
        Resampling(otherwise=other)
        .draw(np.random.default_rng(3), posterior, 4000, np.array([-5.0, 0.0]))
        .flat
    )
    left = draws[:, 0] < 0.0
    assert not other.asked and left.mean() == pytest.approx(SHARES[0], abs=0.03)
    assert draws[left, 0].mean() == pytest.approx(MEANS[0], abs=0.1)
    assert draws[~left, 0].std() == pytest.approx(SDS[1], rel=0.05)


def test_what_the_proposals_do_not_cover_is_left_to_the_other_sampler():
    def cauchy(draws: Any, block: Any) -> Any:
        return -np.log1p(np.square(draws)).sum(axis=1)[None, :]

    model, other = CustomModel(cauchy, lambda draws: np.zeros(len(draws)), 3), Refuses()
    posterior = Posterior(model, ONE, np.ones(1))
    Resampling(otherwise=other).draw(np.random.default_rng(0), posterior, 700)
    assert other.asked == [700]


def test_the_same_numbers_at_weights_nearby_give_draws_nearby():
    model = CustomModel(gamma, lambda draws: -0.5 * draws[:, 0] ** 2, 1)
    posteriors = [Posterior(model, ONE, np.array([w])) for w in (10.0, 10.0, 10.01)]
    draws = [
        np.sort(Resampling().draw(np.random.default_rng(1), posterior, 400).flat[:, 0])
        for posterior in posteriors
    ]
    np.testing.assert_array_equal(draws[0], draws[1])
    np.testing.assert_allclose(draws[0], draws[2], atol=0.2 * draws[0].std())
    assert abs((draws[0] - draws[2]).mean()) < 0.01 * draws[0].std()
