"""Proposals along directions in which a posterior is as wide as its prior, and walled."""

from __future__ import annotations

import numpy as np
import pytest

import corebayes as cb
from corebayes.samplers.automatic import Automatic
from corebayes.samplers.independence import log_densities, try_proposal
from corebayes.samplers.posterior import Posterior
from corebayes.samplers.wide import wide_proposal
from corebayes.types import Block

PRIOR = cb.Normal(0.0, (3.0, 200.0))


def walled(model, y_rare, *, reference=False):
    """An intercept that eighty rows tell, and a level of three that all agree."""
    rng = np.random.default_rng(3)
    rare = np.r_[np.zeros(80), np.ones(3)]
    # As the reference of a dummy, the level is what the intercept alone stands for.
    X = np.column_stack([np.ones(83), 1.0 - rare if reference else rare])
    y = np.r_[rng.poisson(0.7, 80) if y_rare == 0.0 else rng.random(80) < 0.3, np.full(3, y_rare)]
    rows = Block({"X": X, "y": y.astype(float)})
    weights = np.r_[np.full(80, 4.0), np.ones(3)]
    return Posterior(model.bind(cb.open({"X": X, "y": rows.y})), rows, weights)


def by_quadrature(posterior):
    """log Z, means and deviations on a fine grid, the second axis finest at the wall."""
    first = np.linspace(-3.0, 2.0, 501)
    second = np.sinh(np.linspace(-11.0, 11.0, 4001)) * 0.05
    cells = np.gradient(second)
    places = np.stack(np.meshgrid(first, second, indexing="ij"), axis=-1).reshape(-1, 2)
    with np.errstate(over="ignore"):
        heights = log_densities(posterior, places).reshape(501, 4001)
    masses = np.exp(heights - heights.max()) * cells
    constant = heights.max() + np.log(masses.sum() * (first[1] - first[0]))
    masses /= masses.sum()
    means = np.array([masses.sum(axis=1) @ first, masses.sum(axis=0) @ second])
    squares = np.array([masses.sum(axis=1) @ first**2, masses.sum(axis=0) @ second**2])
    return constant, means, np.sqrt(squares - means**2)


@pytest.mark.parametrize(
    ("model", "y_rare"),
    [
        (cb.PoissonRegression(prior=PRIOR), 0.0),
        pytest.param(cb.LogisticRegression(prior=PRIOR), 1.0, marks=pytest.mark.slow),
    ],
    ids=["poisson", "logistic"],
)
def test_draws_and_ratios_are_those_of_quadrature(model, y_rare):
    posterior = walled(model, y_rare)
    constant, means, deviations = by_quadrature(posterior)
    proposal = wide_proposal(posterior)
    assert len(proposal.directions) == 1
    # Only the rows of the level see its direction.
    assert proposal.directions[0].weights.tolist() == [1.0, 1.0, 1.0]
    with np.errstate(over="ignore"):
        pilot = try_proposal(np.random.default_rng(0), posterior, proposal)
    # E_q[π_w / q] = Z
    ratios = np.exp(pilot.log_ratios - constant)
    assert abs(ratios.mean() - 1.0) < 4.0 * ratios.std() / np.sqrt(ratios.size)
    assert pilot.time < 2.0
    drawn = Automatic().draw(np.random.default_rng(1), posterior, 4000)
    assert drawn.how.startswith("independence")
    values = drawn.values.reshape(-1, 2)
    assert np.all(np.abs(values.mean(axis=0) - means) < 5.0 * deviations / np.sqrt(2000))
    assert np.allclose(values.std(axis=0), deviations, rtol=0.1)


def test_it_does_not_matter_how_the_level_is_coded():
    # The dummy of all other rows, and an intercept as wide as the level is rare.
    prior = cb.Normal(0.0, (200.0, 200.0))
    posterior = walled(cb.PoissonRegression(prior=prior), 0.0, reference=True)
    proposal = wide_proposal(posterior)
    assert [direction.weights.size for direction in proposal.directions] == [3]
    with np.errstate(over="ignore"):
        pilot = try_proposal(np.random.default_rng(0), posterior, proposal)
    assert pilot.time < 2.0


def test_an_ordinary_posterior_has_no_such_direction():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (rng.random(300) < 0.5).astype(float)
    model = cb.LogisticRegression(prior=cb.Normal(0.0, 2.0)).bind(cb.open((X, y)))
    assert wide_proposal(Posterior(model, Block({"X": X, "y": y}), np.ones(300))) is None
