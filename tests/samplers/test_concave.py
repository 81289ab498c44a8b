"""Ridges: what is concave given few parameters, and the modes that lie along it."""

from __future__ import annotations

import numpy as np
import pytest

import corebayes as cb
from corebayes.adapters.local import bound_with_structure
from corebayes.adapters.structure import find_row_structure
from corebayes.certify import search as searching
from corebayes.models.custom.model import CustomModel
from corebayes.rows import open_rows
from corebayes.samplers.laplace import Laplace
from corebayes.samplers.modes.concave import concave_given, ridge_starts
from corebayes.samplers.modes.search import modes_of_particles
from corebayes.samplers.posterior import Posterior
from tests.coresets import weighted

jax = pytest.importorskip("jax")
jnp = jax.numpy
P = 6


def normal(draws):
    return -0.5 * jnp.square(draws).sum(axis=1)


def cauchy(draws):
    return -jnp.log1p(jnp.square(draws)).sum(axis=1)


def logistic(draws, block):
    eta = block.X @ draws[:, :P].T
    return jnp.where(block.y[:, None] > 0.0, -jnp.logaddexp(0.0, -eta), -jnp.logaddexp(0.0, eta))


def gaussian(draws, block):
    residual = block.y[:, None] - block.X @ draws[:, :P].T
    return -draws[:, P] - 0.5 * jnp.square(residual * jnp.exp(-draws[:, P]))


def student(draws, block):
    residual = (block.y[:, None] - block.X @ draws[:, :P].T) * jnp.exp(-draws[:, P])
    return -draws[:, P] - 2.5 * jnp.log1p(jnp.square(residual) / 4.0)


def squared(draws, block):
    """A regression, and of each row what it says of ψ²: ψ and −ψ are alike."""
    residual = block.y[:, None] - block.X @ draws[:, :P].T
    of_square = jnp.square(block.X[:, :1] + 1.0 - jnp.square(draws[:, P]))
    return -0.5 * jnp.square(residual) - 0.05 * of_square


def dip(draws, block):
    """Concave but for the rows of large x, where it has a dent."""
    eta = block.X @ draws[:, :P].T
    dent = jnp.where(block.X[:, :1] > 2.0, jnp.exp(-0.5 * jnp.square(eta - 2.0)), 0.0)
    return -0.5 * jnp.square(block.y[:, None] - eta) + 3.0 * dent


def made(likelihood, prior=normal, dim=P + 1, num_rows=900):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(num_rows, P))
    y = X @ np.linspace(-0.5, 0.5, P) + rng.normal(size=num_rows)
    data = open_rows((X, y))
    model = bound_with_structure(CustomModel(likelihood, prior, dim), data)
    if model.row_structure is None:
        # As if its modes had not shown on the rows that are looked at.
        model.row_structure = find_row_structure(model, model.row_terms, data)
    return model, data


@pytest.mark.parametrize(
    ("likelihood", "prior", "dim", "given"),
    [
        (gaussian, normal, P + 1, [P]),
        (student, normal, P + 1, None),
        (dip, normal, P, None),
        pytest.param(logistic, normal, P, [], marks=pytest.mark.slow),
        pytest.param(squared, normal, P + 1, [P], marks=pytest.mark.slow),
        pytest.param(gaussian, cauchy, P + 1, None, marks=pytest.mark.slow),
    ],
)
def test_which_parameters_are_left_is_seen(likelihood, prior, dim, given):
    model, data = made(likelihood, prior, dim)
    posterior = Posterior(model, data.take(np.arange(100)), np.full(100, 9.0))
    fit = Laplace().try_fit(posterior, np.full(dim, 0.1))
    found = concave_given(np.random.default_rng(1), model, data, fit)
    assert (None if found is None else found.tolist()) == given


def test_every_mode_is_led_to_along_the_ridge():
    model, data = made(squared)
    posterior = Posterior(model, data.take(np.arange(100)), np.full(100, 9.0))
    starts = ridge_starts(np.random.default_rng(0), posterior, np.array([P]))
    heights = posterior.log_density(starts)
    assert 2 <= len(starts) <= 4 and np.all(np.diff(heights) <= 0.0)
    gradients = np.array([posterior.gradient(theta)[:P] for theta in starts])
    assert np.abs(gradients).max() < 1.0
    modes = modes_of_particles(posterior, starts)
    assert sorted(np.sign(mode.fit.mean[P]) for mode in modes) == [-1.0, 1.0]


@pytest.mark.slow
def test_a_coreset_without_one_of_two_modes_is_found_out_without_particles(monkeypatch):
    """The prior has both; a coreset of rows that favour one does not, and no particle is needed."""

    def leaning(draws, block):
        push = 0.02 * jnp.tanh(3.0 * draws[:, P]) * jnp.sign(block.X[:, :1])
        return squared(draws, block) + push

    def refused(*_, **__):
        raise AssertionError("particles are annealed")

    monkeypatch.setattr("corebayes.samplers.modes.places.anneal", refused)
    model, data = made(leaning)
    positive = np.flatnonzero(data.take(np.arange(900)).X[:, 0] > 0.0)[:200]
    one_sided = weighted(model, data, positive, 4.5)
    found = searching.search(np.random.default_rng(0), one_sided, data)
    assert found.on_a_ridge and found.unseen(model) is None
    everything = weighted(model, data, np.arange(900), 1.0)
    of_all = searching.search(np.random.default_rng(0), everything, data)
    assert len(of_all.ours) == 2 and of_all.lost == []
    assert not cb.certify(one_sided, data, tol=0.02).certified
