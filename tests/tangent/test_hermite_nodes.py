"""Hermite spaces of many rows, and how few nodes are enough."""

import numpy as np
import pytest

import corebayes as cb
from corebayes.tangent import hermite
from corebayes.types import Block, Gaussian
from tests.problems import coins


def test_vectors_of_many_blocks_add_up_to_the_total():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(10_000, 3))
    model = cb.LogisticRegression(prior=cb.Normal()).with_names(("a", "b", "c"))
    block = Block({"X": X, "y": coins(rng, X @ [1.0, -0.5, 0.2]).astype(float)})
    at = Gaussian(np.array([0.5, -1.0, 0.1]), np.diag([0.001, 0.02, 0.3]))
    for order in (1, 2, 3, 4):
        space = cb.Hermite(order=order).at(model, at)
        vectors = space.embed(block)
        np.testing.assert_allclose(
            space.combine(vectors, np.ones(10_000)), space.total(block).element, rtol=1e-9
        )
        some = slice(7_000, 7_005)
        few = space.embed(block.take(some))
        np.testing.assert_allclose(vectors.coefficients[some], few.coefficients, rtol=1e-12)
        np.testing.assert_allclose(vectors.beta[some], few.beta, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize(("widest", "nodes"), hermite.NARROW)
def test_few_nodes_are_as_good_as_many_where_predictors_hardly_spread(widest, nodes, monkeypatch):
    rng = np.random.default_rng(nodes)
    X = rng.normal(size=(500, 2))
    for model in (
        cb.LogisticRegression(prior=cb.Normal()),
        cb.PoissonRegression(prior=cb.Normal()),
    ):
        block = Block({"X": X, "y": coins(rng, X @ [1.0, -0.5]).astype(float)})
        scale = 0.999 * widest / np.linalg.norm(X, axis=1).max()
        at = Gaussian(np.array([0.5, -1.0]), scale * np.eye(2))
        space = cb.Hermite(order=3).at(model.with_names(("a", "b")), at)
        assert space._tiers(np.linalg.norm(X @ at.factor, axis=1))[-1][1].nodes.size == nodes
        element, mean = space.total(block)
        with monkeypatch.context() as patched:
            patched.setattr(hermite, "NARROW", ())
            full = space.total(block)
        np.testing.assert_allclose(mean, full.mean, rtol=2e-9)
        # Of these a share is left that no certificate sees.
        np.testing.assert_allclose(element, full.element, atol=1e-6 * np.abs(full.element).max())
